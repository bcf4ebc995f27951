"""Forget the ledger's rows that are older than AMBER_USAGE_MONTHS: a periodic job.

A partition whose rows are all that old is dropped at once; rows of a plain table, or of the
partition from before the conversion, are deleted in batches. Whole months go, so that a partition
of one month never needs batches.
"""

from datetime import date
from typing import Final

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from amber.lib.database.batches import delete_batch
from amber.lib.workers.time_slice import TimeSlice
from operations.partitions.catalog import is_partitioned, list_partitions, short_locks
from operations.partitions.months import add_months, first_id, month_of
from providers.models import UsageRecord

logger = structlog.get_logger(__name__)

ROWS_AT_ONCE: Final = 2_000


def forget_usage() -> None:
    """Forget months that are over for longer than they are kept; none if all are kept."""
    if not settings.AMBER_USAGE_MONTHS:
        return
    oldest = add_months(month_of(timezone.now()), -settings.AMBER_USAGE_MONTHS)
    if is_partitioned():
        _drop_partitions(oldest)
    _delete_rows(oldest)


def _drop_partitions(oldest: date) -> None:
    """Drop what lies before the month. Raises OperationalError if a lock is not free."""
    for part in list_partitions():
        if part.high is not None and part.high <= first_id(oldest):
            with short_locks() as cursor:
                cursor.execute(f"DROP TABLE {connection.ops.quote_name(part.name)}")
            logger.info("partition_dropped", partition=part.name, rows=part.estimated_rows)


def _delete_rows(oldest: date) -> None:
    old = UsageRecord.objects.filter(pk__lt=first_id(oldest))
    time_slice = TimeSlice()
    while not time_slice.is_over() and delete_batch(old, at_most=ROWS_AT_ONCE):
        pass
