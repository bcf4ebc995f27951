"""The web process: one ASGI application."""

import gc
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from amber.body_limit import limited  # noqa: E402
from amber.lib import interpreter_watch  # noqa: E402
from amber.lib.egress_policy import EgressPolicy  # noqa: E402
from amber.metrics import measured  # noqa: E402
from amber.one_hop import OneHopHandler  # noqa: E402  (what follows reads models)
from amber.request_log import logged  # noqa: E402

# A wrong list of allowed hosts fails here, not at the first call of a tool.
EgressPolicy.allowing(settings.AMBER_TOOL_ALLOWED_HOSTS)

interpreter_watch.start()

# What start-up made stays; collecting it again and again costs pauses while streams flow.
gc.freeze()
gc.set_threshold(50_000, 20, 50)

application = logged(measured(limited(OneHopHandler())))
