"""Forget the log of tool calls when its time is up."""

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models.functions import Now

from amber.lib.database.batches import delete_in_batches
from tools.models import ToolCallRecord

_RECORDS_AT_ONCE: Final = 1_000


def forget_tool_calls() -> None:
    """Delete the records of calls after AMBER_TOOL_LOG_DAYS."""
    kept = timedelta(days=settings.AMBER_TOOL_LOG_DAYS)
    old = ToolCallRecord.objects.filter(created_at__lt=Now() - kept)
    delete_in_batches(old, at_most=_RECORDS_AT_ONCE)
