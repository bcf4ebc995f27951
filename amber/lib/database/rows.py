"""Give every row a UUIDv7, made here, and the times when it was created and changed."""

from datetime import datetime

from django.db import models
from django.utils import timezone

from amber.lib.ids import new_id


class Row(models.Model):
    """A row; abstract. The times are aware; bulk writers set `updated_at` themselves."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


def minute_of(moment: datetime | None) -> str:
    """Return a time as the names of rows have it that nobody named."""
    return _write_moment(moment, "%Y-%m-%d %H:%M")


def second_of(moment: datetime | None) -> str:
    return _write_moment(moment, "%Y-%m-%d %H:%M:%S")


def _write_moment(moment: datetime | None, form: str) -> str:
    return timezone.localtime(moment).strftime(form) if moment else "now"
