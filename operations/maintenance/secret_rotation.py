"""Encrypt every stored secret with the newest key, while Amber runs, so that older keys can go.

A secret that somebody changes meanwhile stays as they wrote it. The work may be interrupted and repeated:
secrets that have the newest key are not touched again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.apps import apps
from django.db.models import Model

from amber.lib.secrets import DecryptError, cell_of, decrypt, encrypt, is_of_newest_key

BATCH_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class SecretColumn:
    """A column `<name>_sealed` of a model, and the name that its texts are encrypted for."""

    model: str
    name: str
    cell: str

    @property
    def field(self) -> str:
        return f"{self.name}_sealed"


SECRET_COLUMNS: Final = (
    SecretColumn("accounts.OutgoingMail", "details", "details"),
    SecretColumn("libraries.Repository", "token", "token"),
    SecretColumn("providers.Provider", "api_key", "api_key"),
    SecretColumn("providers.Provider", "environment", "environment"),
    SecretColumn("public_api.Webhook", "secret", "secret"),
    # A webhook's old secret is its secret of before, as it was.
    SecretColumn("public_api.Webhook", "old_secret", "secret"),
    SecretColumn("tools.Tool", "api_key", "api_key"),
    SecretColumn("tools.Tool", "oauth", "oauth"),
)


@dataclass(slots=True)
class RotationReport:
    """How many secrets have the newest key, how many of them were given it now, and which cannot be read."""

    current_count: int = 0
    rotated_count: int = 0
    unreadable: list[str] = field(default_factory=list)


def rotate_secrets() -> RotationReport:
    """Encrypt what older keys encrypted. Raises SecretKeyError before anything is changed."""
    report = RotationReport()
    for column in SECRET_COLUMNS:
        for row in _rows_with_secret(column):
            _rotate(row, column, report)
    return report


def _rotate(row: Model, column: SecretColumn, report: RotationReport) -> None:
    old = getattr(row, column.field)
    if is_of_newest_key(old):
        report.current_count += 1
        return
    cell = cell_of(row, column.cell)
    try:
        new = encrypt(decrypt(old, **cell), **cell)
    except DecryptError as error:
        report.unreadable.append(f"{column.model} {row.pk}, {column.name}: {error}")
        return
    same = type(row)._default_manager.filter(pk=row.pk, **{column.field: old})
    report.rotated_count += same.update(**{column.field: new})


def _rows_with_secret(column: SecretColumn) -> Iterator[Any]:
    """Read the rows by their ids, a batch at a time. New ones have the newest key."""
    model = apps.get_model(column.model)
    rows = model._default_manager.exclude(**{column.field: ""}).order_by("pk")
    wanted = [name for name in ("organization_id",) if hasattr(model, name)]
    last = None
    while batch := list(
        (rows.filter(pk__gt=last) if last else rows).only(column.field, *wanted)[:BATCH_ROWS]
    ):
        yield from batch
        last = batch[-1].pk
