"""Start, cancel and delete Git imports; workers do the work.

The same repository and ref again is the same row, imported anew. A stored token is kept until
another one is given.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from accounts.models import IdempotencyRecord
from accounts.tenancy.idempotency import settle
from amber.lib.database.lease import NO_WORKER, QUEUED, RUNNING
from amber.lib.errors import Conflict
from amber.lib.secrets import encrypt_column
from libraries.git.fetching import check_git_url
from libraries.ingestion.endings import QUEUED_ANEW
from libraries.models import DocumentStatus, Library, Repository
from libraries.queue import enqueue_erasure, enqueue_imports
from libraries.wire import repository_wire

UNDER_WAY: Final = "This repository is already being imported."
GOING: Final = (
    "The documents of an earlier import of this repository are being deleted. Try again later."
)


def start_import(
    library: Library,
    *,
    user_id: UUID | None,
    git_url: str,
    ref: str = "",
    token: str | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    claim: IdempotencyRecord | None = None,
) -> Repository:
    """Queue a repository to be imported, or imported again.

    Raises Invalid, UnsafeAddress (both name `git_url`), and Conflict while an import is running or
    the documents of an earlier one are being deleted.
    """
    git_url = git_url.rstrip("/")
    check_git_url(git_url)
    changes = {"include": include or [], "exclude": exclude or [], "user_id": user_id}
    try:
        with transaction.atomic(durable=True):
            repository = _get_or_build_row(library, git_url, ref)
            _queue(repository, changes, token)
            settle(claim, status=202, answer=repository_wire(repository))
            transaction.on_commit(enqueue_imports)
    except IntegrityError:
        raise Conflict(UNDER_WAY) from None  # two asked for a new one at once
    return repository


@transaction.atomic(durable=True)
def cancel_import(repository: Repository) -> Repository:
    """End an import now; what was imported by then stays. An ended one stays as it is."""
    _end_now(repository)
    repository.refresh_from_db()
    return repository


@transaction.atomic(durable=True)
def delete_import(repository: Repository) -> None:
    """End an import and hide it; its documents are deleted in the background."""
    _end_now(repository)
    Repository.objects.filter(pk=repository.pk).update(deleted_at=Now(), token_sealed="")
    transaction.on_commit(enqueue_erasure)


def _end_now(repository: Repository) -> None:
    """Cancel the row under a new fence: a worker that imports it stores nothing more, and stops."""
    live = Repository.objects.filter(pk=repository.pk, status__in=(QUEUED, RUNNING))
    live.update(
        status=DocumentStatus.CANCELLED,
        fence=F("fence") + 1,
        **NO_WORKER,
        not_before=None,
        error="",
        ended_at=Now(),
        updated_at=Now(),
    )


def _get_or_build_row(library: Library, git_url: str, ref: str) -> Repository:
    """Return the existing row, locked, or a new one that is not saved. Raises Conflict."""
    rows = Repository.objects.select_for_update().filter(library=library)
    found: Repository | None = rows.filter(git_url=git_url, ref=ref).first()
    if found is None:
        return Repository(
            organization_id=library.organization_id, library=library, git_url=git_url, ref=ref
        )
    if found.deleted_at is not None:
        raise Conflict(GOING)
    if found.status in (QUEUED, RUNNING):
        raise Conflict(UNDER_WAY)
    return found


def _queue(repository: Repository, changes: Mapping[str, Any], token: str | None) -> None:
    columns = {name: value for name, value in QUEUED_ANEW.items() if name != "cancel_requested_at"}
    for name, value in {**columns, **changes, "progress": {}}.items():
        setattr(repository, name, value)
    if token is not None:
        encrypt_column(repository, "token", token)
    repository.save()
