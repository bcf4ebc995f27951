"""Amber: a self-hosted, multi-tenant assistant platform backend."""

import sys

# redis-py imports OpenTelemetry's SDK for metrics, where that is installed: 3 MB in each process for metrics
# that nobody collects. So it finds none; traces (amber.lib.tracing) need another part of the SDK.
sys.modules.setdefault("opentelemetry.sdk.metrics", None)  # type: ignore[arg-type]
