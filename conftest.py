"""What every test may use. Services come first: Django's settings read where they are."""

import os

pytest_plugins = ["tests.services", "tests.personas"]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
