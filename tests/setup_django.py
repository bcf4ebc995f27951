"""Sets Django up while pytest loads its plugins: those that come after it may import models.

Loaded after `tests.services`, whose servers Django's settings name. pytest-django would set it up
later, and only if something had read the settings by then.
"""

import os

import django

from tests import services

services.start()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
django.setup()
