"""Sets Django up while pytest loads its plugins: those that come after it may import models.

Loaded after `tests.services`, whose servers Django's settings name. pytest-django would set it up
later, and only if something had read the settings by then.
"""

import os

import django
from django.conf import settings

from tests import services

services.start()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
django.setup()

# Nobody guesses these passwords: hashing each as slowly as it should be costs 0.3 s of a core.
settings.PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    *settings.PASSWORD_HASHERS,
]
