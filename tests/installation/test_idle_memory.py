"""What idle processes do not hold: libraries that the first use of a feature loads (docs/performance.md)."""

import os
import subprocess
import sys

import pytest

ANYWHERE = (
    *("numpy", "tiktoken", "lxml", "trafilatura", "pypdf", "docx", "openpyxl", "pptx", "dulwich"),
    *("PIL", "mcp", "limits", "jsonschema", "referencing", "cryptography.hazmat.bindings"),
    *("boto3", "botocore", "storages"),
    *(
        "opentelemetry.sdk.trace",
        "opentelemetry.sdk.resources",
        "google.protobuf",
        "amber.lib.tracing.exporting",
    ),
)
"""Nobody needs them before a file, a tool, a page or a secret comes, or an operator names a collector of traces."""

WEB = """
import amber.asgi, amber.urls
"""
WORKER = """
import os
os.environ |= {{"AMBER_ROLE": "worker", "CELERY_SKIP_CHECKS": "1"}}  # as amber.worker does
from amber.celery import _queue_maintenance, app
app.loader.import_default_modules()
_queue_maintenance({queue!r})
"""
PAGES = ("rest_framework.views", "drf_spectacular", "unfold", "corsheaders", "requests")


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        pytest.param(WEB, ("httpx2", "httpx_aiohttp", "chats.running.runner"), id="web"),
        pytest.param(WORKER.format(queue="chat"), PAGES, id="chat"),
        pytest.param(
            WORKER.format(queue="ingest"),
            (*PAGES, "httpx2", "httpx_aiohttp", "uvloop", "chats.running.runner"),
            id="ingest",
        ),
    ],
)
def test_an_idle_process_does_not_hold_what_only_some_feature_needs(code, absent):
    code += f"import sys; print(sorted(set({ANYWHERE + absent}) & set(sys.modules)))"
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "amber.settings"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip().splitlines()[-1] == "[]"
