"""Take every check of Amber's own out of the way, and look whether anything of others' comes through.

The door (`visible_to` and what is built on it) is opened at its few places: then only Postgres
keeps tenants apart.
"""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Q, Value

from accounts.models import OrganizationQuerySet, Role
from accounts.tenancy import access
from accounts.tenancy.wall import TABLES
from accounts.tenant_rows import Right, SharedQuerySet, TenantQuerySet
from chats.tests.event_streams import read_parts
from tests.wall.rows import MODELS, OF_PERSONS, pk_of

MARK: Final = "hers and nobody else's"
"""The text of those rows that are looked for."""

Stored = dict[tuple[str, str], tuple[str, str]]
"""By table and id: a row as text, and its organization ('' for what hangs on another row)."""


def open_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody through every door: each row is visible, writable and managed."""

    def everything(rows: Any, _principal: Any) -> Any:
        return rows.all()

    def every_organization(rows: Any, _principal: Any) -> Any:
        return rows.annotate(role=Value(Role.OWNER))

    def every_row(model: Any, *_: Any, pk: UUID, **_options: Any) -> Any:
        return model._default_manager.filter(pk=pk)

    for name in ("visible_to", "writable_by"):
        monkeypatch.setattr(TenantQuerySet, name, everything)
        monkeypatch.setattr(OrganizationQuerySet, name, every_organization)
    monkeypatch.setattr(SharedQuerySet, "managed_by", everything)
    monkeypatch.setattr(SharedQuerySet, "_managed_by", lambda *_: Q(pk__isnull=False))
    monkeypatch.setattr(access, "access_to", lambda *_: Right.OWN)
    monkeypatch.setattr(access, "_seen_by_person", every_row)


_ALL_SQL: Final = " UNION ALL ".join(
    f"SELECT '{table}', {pk_of(table)}::text, to_jsonb(t)::text,"
    f" {'organization_id' if _has else 'NULL'}::text FROM {table} AS t"
    for table in TABLES
    for _has in [any(f.column == "organization_id" for f in MODELS[table]._meta.concrete_fields)]
)


def stored() -> Stored:
    """Every walled row there is, as the superuser of the tests sees it."""
    with connection.cursor() as cursor:
        cursor.execute(_ALL_SQL)
        return {(table, pk): (row, org or "") for table, pk, row, org in cursor.fetchall()}


def text_of(answer: Any) -> str:
    """The whole body, also of a stream."""
    if not answer.streaming:
        return str(answer.content.decode(errors="replace"))
    if answer.is_async:
        return read_parts(answer).decode(errors="replace")
    return b"".join(answer.streaming_content).decode(errors="replace")


def shown(text: str, ids: Iterable[UUID], *, but: str = "") -> list[str]:
    """Which of these ids the text has, and MARK; not what the question named itself (`but`)."""
    known = [str(pk) for pk in ids] + [pk.hex for pk in ids]
    return [each for each in (*known, MARK) if each in text and each not in but]


def written(
    before: Stored, after: Stored, ids: Iterable[UUID], *, organization_id: UUID, personal: bool
) -> list[str]:
    """Rows of the organization that were changed or deleted, or that are new there; with `personal`
    of persons alone, whose own new rows are nobody's loss. And new rows that name one of the ids.
    """
    tables = OF_PERSONS if personal else frozenset(TABLES)
    known = [str(pk) for pk in ids]
    theirs = []
    for table, pk in before.keys() | after.keys():
        (was, owner), (now, new_owner) = (
            each.get((table, pk), ("", "")) for each in (before, after)
        )
        if table not in tables or was == now:
            continue
        is_theirs = str(organization_id) in (owner, new_owner, pk) and not (personal and not was)
        if is_theirs or (not was and any(each in now for each in known)):
            theirs.append(f"{table} {pk}: {was[:200]} -> {now[:400]}")
    return theirs
