"""Sets Django up while pytest loads its plugins: those that come after it may import models.

Loaded after `tests.services`, whose servers Django's settings name. pytest-django would set it up
later, and only if something had read the settings by then.
"""

import os
from typing import Any

import django
from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

from amber import database_roles
from amber.lib.database.tenant import act_as
from tests import services

services.start()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
django.setup()

# The tests log in as a superuser, which no policy binds: what runs for a tenant takes the app's role.
settings.DATABASES["default"]["TENANT_ROLE"] = database_roles.APP
for _role, _login in (("app", database_roles.APP), ("system", database_roles.SYSTEM)):
    settings.AMBER_DATABASES[_role] = settings.AMBER_DATABASES["owner"] | {"USER": _login}


def pytest_runtest_teardown() -> None:
    """What a test did for a tenant ends with it."""
    act_as(None)


# Nobody guesses these passwords: hashing each as slowly as it should be costs 0.3 s of a core.
settings.PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    *settings.PASSWORD_HASHERS,
]

# Each test client loads the middleware anew, and this one would look at 199 files each time.
_static_files: dict[str, Any] = {}
_find_static_files = WhiteNoiseMiddleware.add_files_from_finders


def _find_static_files_once(middleware: WhiteNoiseMiddleware) -> None:
    if not _static_files:
        _find_static_files(middleware)
        _static_files.update(middleware.files)
    middleware.files.update(_static_files)


WhiteNoiseMiddleware.add_files_from_finders = _find_static_files_once
