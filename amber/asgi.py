"""Start the web process: one ASGI application."""

import os

import django

from amber.lib.tracing.start import start_tracing
from amber.lib.workers import garbage
from amber.processes import name_process

name_process("web")
garbage.put_off()
start_tracing("web")  # before the modules that have spans
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "amber.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from amber.lib.egress.policy import EgressPolicy  # noqa: E402
from amber.lib.rest.request_spans import trace_requests  # noqa: E402
from amber.lib.rest.stopping import drain_on_stop  # noqa: E402
from amber.lib.tracing import spans  # noqa: E402
from amber.lib.workers import interpreter_watch  # noqa: E402
from amber.web.body_limit import limit_bodies  # noqa: E402
from amber.web.metrics import count_requests  # noqa: E402
from amber.web.request_log import MACHINE_ADDRESSES, log_requests  # noqa: E402
from amber.web.single_thread_handler import SingleThreadHandler  # noqa: E402  (what follows reads models)

# A wrong list of allowed hosts fails here, not at the first call of a tool.
EgressPolicy.allowing(settings.AMBER_TOOL_ALLOWED_HOSTS)

interpreter_watch.start()
garbage.set_aside()

application = log_requests(count_requests(limit_bodies(SingleThreadHandler())))
if spans.is_on():
    application = trace_requests(application, besides=MACHINE_ADDRESSES)
application = drain_on_stop(application)
