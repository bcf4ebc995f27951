"""The web process: one ASGI application."""

import os
from typing import cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")

_django = get_asgi_application()

from amber.metrics import Application, measured  # noqa: E402  (reads models: Django must be set up first)

application = measured(cast(Application, _django))
