"""Sets Django up while pytest loads its plugins: those that come after it may import models.

Loaded after `tests.services`, whose servers Django's settings name. pytest-django would set it up
later, and only if something had read the settings by then.
"""

import os
from collections.abc import Callable
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


# Each test client loads the middleware anew, and this one would look at 500 files each time: a third
# of what a test of the REST API costs.
def _find_once(find: Callable[..., None]) -> Callable[..., None]:
    """The static files of a folder, as they were when they were looked for first."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}

    def add_files(middleware: WhiteNoiseMiddleware, *place: str) -> None:
        if place not in found:
            others, middleware.files = middleware.files, {}
            find(middleware, *place)
            found[place], middleware.files = middleware.files, others
        middleware.files.update(found[place])

    return add_files


for _name in ("add_files_from_finders", "update_files_dictionary"):
    setattr(WhiteNoiseMiddleware, _name, _find_once(getattr(WhiteNoiseMiddleware, _name)))
