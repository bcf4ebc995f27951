"""Amber's settings with one tool more, whose calls last: for workers that die during a call.

Nobody guesses the passwords of tests: hashing each as slowly as it should be costs 0.3 s of a core.
"""

from amber.settings import *  # noqa: F403
from amber.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.e2e.kit"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
