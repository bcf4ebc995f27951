"""Verbs of Git imports: begin one, cancel it, delete it with its documents. Workers do the work.

The same repository and ref again is the same row, imported anew. A token that is not given again
is kept; one that is given takes its place.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from accounts.models import IdempotencyRecord
from accounts.tenancy.idempotency import settle
from amber.lib.database.lease import QUEUED, RUNNING
from amber.lib.errors import Conflict
from libraries.git.fetching import check_git_url
from libraries.git.tokens import encrypt_token
from libraries.ingestion.endings import AFRESH
from libraries.models import DocumentStatus, Library, Repository
from libraries.queue import enqueue_erasure, enqueue_imports
from libraries.wire import repository_wire

UNDER_WAY: Final = "This repository is being imported already."
GOING: Final = "The documents of an earlier import of this repository are being deleted. Try later."


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
    """Raises Invalid, UnsafeAddress (both name `git_url`), Conflict while it is under way."""
    git_url = git_url.rstrip("/")
    check_git_url(git_url)
    changes = {"include": include or [], "exclude": exclude or [], "user_id": user_id}
    try:
        with transaction.atomic(durable=True):
            repository = _row(library, git_url, ref)
            _queue(repository, changes, token)
            settle(claim, status=202, answer=repository_wire(repository))
            transaction.on_commit(partial(enqueue_imports))
    except IntegrityError:
        raise Conflict(UNDER_WAY) from None  # two asked for a new one at once
    return repository


@transaction.atomic(durable=True)
def cancel_import(repository: Repository) -> Repository:
    """It ends here; what was imported by then stays. What has ended stays as it is."""
    _end_now(repository)
    repository.refresh_from_db()
    return repository


@transaction.atomic(durable=True)
def delete_import(repository: Repository) -> None:
    """It ends and is gone; its documents go after it, in the background."""
    _end_now(repository)
    Repository.objects.filter(pk=repository.pk).update(deleted_at=Now(), token_sealed="")
    transaction.on_commit(partial(enqueue_erasure))


def _end_now(repository: Repository) -> None:
    """Under another fence: whoever works on it stores nothing more, and stops."""
    live = Repository.objects.filter(pk=repository.pk, status__in=(QUEUED, RUNNING))
    live.update(
        status=DocumentStatus.CANCELLED,
        fence=F("fence") + 1,
        worker="",
        lease_until=None,
        not_before=None,
        error="",
        ended_at=Now(),
        updated_at=Now(),
    )


def _row(library: Library, git_url: str, ref: str) -> Repository:
    """The row there is, locked, or a new one that is not saved. Raises Conflict."""
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
    columns = {name: value for name, value in AFRESH.items() if name != "cancel_requested_at"}
    for name, value in {**columns, **changes, "progress": {}}.items():
        setattr(repository, name, value)
    if token is not None:
        encrypt_token(repository, token)
    repository.save()
