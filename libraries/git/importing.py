"""Import Git repositories: claim a row (`Repository`), fetch it, make documents of its files.

Files whose content changed since the last import are indexed anew, those that vanished are deleted
with their chunks, the others are not touched. Each document is one transaction under the fence of
the repository's row, so a worker that was only slow stores nothing after another took over; one
that was killed leaves a row that the sweep gives back, and what it stored is found unchanged.

A file's `path` is its document's, unless another document of the library has that path: then the
repository's name stands in front of it. What is wrong with a repository is stored in its `error`,
in words for people.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from amber.lib.database.connections import release_connections
from amber.lib.database.lease import QUEUED, RUNNING, Fenced
from amber.lib.errors import AmberError
from amber.lib.secrets import DecryptError, decrypt_column
from amber.lib.workers.leases import Runs, RunStoppedError
from amber.lib.workers.worker import Worker
from libraries.failure_mails import tell_of_repository
from libraries.git.fetching import GitRefused, fetch_commit
from libraries.git.packs import PackReader, PathFilter, RepositoryFile
from libraries.ingestion import intake
from libraries.ingestion.document_deletion import remove_document
from libraries.ingestion.intake import DocumentSource, IntakeResult, PlacedDocument
from libraries.models import Document, DocumentStatus, Library, Repository
from libraries.parsing import ParserLost

logger = structlog.get_logger(__name__)

running_imports: Final = Runs(Repository)

PROGRESS_SECONDS: Final = 2.0
WORKER_LOST: Final = (
    "The import was interrupted too often because its workers stopped. Import the repository again."
)


def claim(worker: Worker) -> Repository | None:
    """Claim the next waiting repository under a new fence; None if there is none.

    The organization with the fewest running imports comes first; then the one that waited longest.
    """
    for pk in _waiting_rows().values_list("pk", flat=True)[:10]:
        claimed: Repository | None = Repository.objects.claim(
            pk, worker=worker.name, lease_seconds=settings.AMBER_LEASE_SECONDS
        )
        if claimed is not None:
            return claimed
    return None


def is_anything_waiting() -> bool:
    return _waiting_rows().exists()


def _waiting_rows() -> QuerySet[Repository]:
    running = Repository.objects.filter(status=RUNNING, organization=OuterRef("organization"))
    counted = running.order_by().values("organization").annotate(n=Count("pk")).values("n")
    rows: QuerySet[Repository] = Repository.objects.filter(
        Q(not_before=None) | Q(not_before__lte=Now()),
        status=QUEUED,
        library__deleted_at__isnull=True,
    )
    return rows.annotate(running=Coalesce(Subquery(counted), 0)).order_by("running", "updated_at")


def run(repository: Repository, *, enqueue: Callable[[], None] = lambda: None) -> None:
    """Import a claimed repository until it has ended. `enqueue` wakes workers for new documents.

    Without Postgres nothing can be written: the lease runs out, and the row is claimed again.
    """
    with structlog.contextvars.bound_contextvars(
        organization_id=str(repository.organization_id), repository_id=str(repository.pk)
    ):
        try:
            with running_imports.listing([repository]):
                _Import(repository, enqueue).run()
        except (Fenced, RunStoppedError):
            logger.info("import_fenced")
        except (OperationalError, InterfaceError) as exc:
            logger.warning("import_lost_postgres", reason=type(exc).__name__)
        except (GitRefused, DecryptError) as refusal:
            _fail(repository, str(refusal))
        except AmberError as error:
            _fail(repository, error.message)
        except ParserLost:
            end_lost(repository)
        finally:
            release_connections()


def end_lost(repository: Repository) -> None:
    """Queue an import again whose worker or child was lost; fail it after too many attempts."""
    if repository.is_last_attempt:
        _fail(repository, WORKER_LOST)
    else:
        Repository.objects.give_back(repository)


@dataclass
class _Tally:
    """The counts that people see of an import, while it runs and after."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def progress(self, step: str) -> dict[str, Any]:
        return {"step": step, **self.__dict__}


class _Import:
    """One import. Raises Fenced or RunStoppedError once this worker has lost the row, or its
    library was deleted."""

    def __init__(self, repository: Repository, enqueue: Callable[[], None]) -> None:
        self._repository = repository
        self._library: Library = Library.objects.get(pk=repository.library_id)
        self._enqueue = enqueue
        self._tally = _Tally()
        self._shown_at = 0.0
        self._places = _Places(repository)
        self._seen: set[str] = set()

    def run(self) -> None:
        self._show("fetching")
        with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as into:
            release_connections()
            fetched = fetch_commit(
                self._repository.git_url,
                ref=self._repository.ref,
                token=decrypt_column(self._repository, "token"),
                into=into,
                max_bytes=settings.AMBER_MAX_REPOSITORY_BYTES,
                max_file_bytes=settings.AMBER_MAX_UPLOAD_BYTES,
            )
            reader = PackReader(fetched, self._wanted_paths())
            for file in reader:
                running_imports.check(self._repository)
                self._take(file)
                self._show_now_and_then()
            self._tally.skipped = reader.skipped
        self._remove_vanished()
        progress = self._tally.progress("done")
        Repository.objects.end(
            self._repository,
            DocumentStatus.READY,
            error="",
            commit=reader.commit,
            progress=progress,
        )
        self._enqueue()

    def _wanted_paths(self) -> PathFilter:
        return PathFilter(
            include=self._repository.include,
            exclude=self._repository.exclude,
            known=self._places.hashes(),
            max_file_bytes=settings.AMBER_MAX_UPLOAD_BYTES,
        )

    def _take(self, file: RepositoryFile) -> None:
        path = self._places.path_of(file.path)
        self._seen.add(path)
        if file.data is None:
            self._tally.unchanged += 1
            return
        given = DocumentSource(
            name=PurePosixPath(file.path).name,
            data=file.data,
            path=path,
            source=self._repository.git_url,
            user_id=self._repository.user_id,
            repository_id=self._repository.pk,
        )
        try:
            placed = intake.put(self._library, given, also=self._check_fence)
        except AmberError as refusal:
            if refusal.status >= 500:
                raise
            self._refuse(file.path, refusal.message)
            return
        self._count(placed.outcome)

    def _check_fence(self, _: PlacedDocument | None = None) -> None:
        """Check the fence as the last step of a document's transaction. Raises Fenced.

        The row lock is held until the commit, so no other worker can claim the import in between.
        """
        Repository.objects.holding(self._repository.pk, self._repository.fence, "pk")

    def _refuse(self, path: str, why: str) -> None:
        """Count a file that cannot be a document; reasons are kept for as many as people read."""
        self._tally.skipped["refused"] = self._tally.skipped.get("refused", 0) + 1
        if len(self._tally.refused) < 20:
            self._tally.refused[path] = why

    def _count(self, outcome: IntakeResult) -> None:
        if outcome is IntakeResult.NEW:
            self._tally.new += 1
        elif outcome is IntakeResult.REPLACED:
            self._tally.changed += 1
        else:
            self._tally.unchanged += 1

    def _remove_vanished(self) -> None:
        for pk, path in self._places.documents():
            if path not in self._seen:
                running_imports.check(self._repository)
                with transaction.atomic():
                    remove_document(pk, library_id=self._library.pk)
                    self._check_fence()
                self._tally.removed += 1

    def _show_now_and_then(self) -> None:
        if time.monotonic() - self._shown_at >= PROGRESS_SECONDS:
            self._show("reading")
            # What is stored by now is indexed while this goes on.
            self._enqueue()

    def _show(self, step: str) -> None:
        self._shown_at = time.monotonic()
        held = Repository.objects.held_by(self._repository)
        held.update(progress=self._tally.progress(step), updated_at=Now())


class _Places:
    """Knows which document each file of the repository is."""

    def __init__(self, repository: Repository) -> None:
        library = Document.objects.filter(library=repository.library_id)
        self._mine = library.filter(repository=repository)
        others = library.filter(path__isnull=False).exclude(repository=repository)
        self._taken = set(others.values_list("path", flat=True))
        self._front = f"{repository_name(repository.git_url)}/"

    def path_of(self, file_path: str) -> str:
        return self._front + file_path if file_path in self._taken else file_path

    def hashes(self) -> dict[str, str]:
        """Return the content hash of each document that is there, by the file's path."""
        rows = dict(self._mine.values_list("path", "content_hash"))
        moved = {
            path.removeprefix(self._front): content_hash
            for path, content_hash in rows.items()
            if path.startswith(self._front) and path.removeprefix(self._front) in self._taken
        }
        return {path: value for path, value in rows.items() if path not in self._taken} | moved

    def documents(self) -> list[tuple[UUID, str]]:
        return list(self._mine.values_list("pk", "path"))


def repository_name(git_url: str) -> str:
    """Return the last part of the address, as the repository's name."""
    return PurePosixPath(urlsplit(git_url).path).name.removesuffix(".git") or "repository"


def _fail(repository: Repository, why: str) -> None:
    """Fail the import, for a reason that people read; whoever began it is mailed."""
    with transaction.atomic():
        if Repository.objects.end(repository, DocumentStatus.FAILED, error=why[:2_000]):
            tell_of_repository(repository, why[:2_000])
