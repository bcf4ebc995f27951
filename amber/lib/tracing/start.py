"""Begin and end tracing in a process: only if the operator has named a collector.

To be called before the modules with spans are imported (`amber.lib.tracing.spans`).
"""

import os
from typing import TYPE_CHECKING

from amber.lib import environment
from amber.lib.tracing import spans

if TYPE_CHECKING:
    from amber.lib.tracing.exporting import OtlpRecorder

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_recorders: "list[OtlpRecorder]" = []


def is_wanted() -> bool:
    """Return whether the environment names a collector, and nothing there turns traces off."""
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_elsewhere = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "otlp")
    return any(os.environ.get(name) for name in ENDPOINTS) and not is_off and not is_elsewhere


def start_tracing(process: str) -> None:
    """Record spans from now on, if that is wanted. Nothing is imported otherwise."""
    if not is_wanted():
        return
    from amber.lib.tracing.exporting import OtlpRecorder

    recorder = OtlpRecorder(process, trusts_callers=environment.flag("AMBER_TRACE_CALLERS", False))
    _recorders.append(recorder)
    spans.use(recorder)


def stop_tracing() -> None:
    """Send the last spans, for two seconds at most."""
    for recorder in _recorders:
        recorder.stop()
