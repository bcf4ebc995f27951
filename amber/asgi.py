"""The web process: one ASGI application."""

import os
from typing import cast

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")

_django = get_asgi_application()

from amber.lib.egress_policy import EgressPolicy  # noqa: E402
from amber.metrics import measured  # noqa: E402  (reads models: Django must be set up first)
from amber.request_id import Application, identified  # noqa: E402

# A wrong list of allowed hosts fails here, not at the first call of a tool.
EgressPolicy.allowing(settings.AMBER_TOOL_ALLOWED_HOSTS)

application = identified(measured(cast(Application, _django)))
