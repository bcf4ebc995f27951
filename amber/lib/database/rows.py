"""Give every row a UUIDv7, made here, and the times when it was created and changed."""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from amber.lib.ids import new_id


class Row(models.Model):
    """A row; abstract. The times are aware; bulk writers set `updated_at` themselves."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class ExpiringQuerySet(models.QuerySet[Any]):
    """Rows with `expired_at`, null for those that stay. They are absent from then on, and deleted later."""

    def before_expiry(self) -> Self:
        return self.filter(is_before_expiry())

    def past_expiry(self) -> Self:
        return self.filter(expired_at__lte=timezone.now())


def is_before_expiry(prefix: str = "") -> Q:
    never = Q(**{f"{prefix}expired_at__isnull": True})
    return never | Q(**{f"{prefix}expired_at__gt": Now()})


AnyRow = TypeVar("AnyRow", bound=Row)


def save_changes(row: AnyRow, changes: Mapping[str, Any]) -> AnyRow:
    """Write these columns of a row, and no others: what else was changed meanwhile stays. One statement."""
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=[*changes, "updated_at"])
    return row


def delete_row(row: models.Model) -> None:
    """Delete a row with what cascades from it, also while others refer to it anew.

    A reference that is committed after Django has looked for them would break its constraint at the
    commit. From the row's DELETE on nobody can commit one: so a second round finds the rest. To lock the
    row first would deadlock with those who hold what refers to it, and want the row.
    """
    for _ in range(2):
        # Of a copy: a row that is deleted loses its id.
        copy(row).delete()


def minute_of(moment: datetime | None) -> str:
    """Return a time as the names of rows have it that nobody named."""
    return _write_moment(moment, "%Y-%m-%d %H:%M")


def second_of(moment: datetime | None) -> str:
    return _write_moment(moment, "%Y-%m-%d %H:%M:%S")


def _write_moment(moment: datetime | None, form: str) -> str:
    return timezone.localtime(moment).strftime(form) if moment else "now"
