"""Claim the documents to work on next: fairly between organizations, several small ones at once.

The organization with the fewest running documents comes first; of those, the one this process has
not served for longest; then the one that waits for longest. So neither many workers nor a single
one lets an organization's ten thousand documents hide another's one. What is taken together is of
one library and needs the same work, so that it is embedded and written together. A row that others
have locked is passed over.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import BigIntegerField, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Now

from amber.lib.database.lease import QUEUED
from amber.lib.workers.leases import Runs
from libraries.models import Document, DocumentStage, File, Library
from providers.models import EmbeddingModel

HELD_AT_ONCE: Final = 96
"""Limit of one process. A claim takes half of what is free, so that each thread gets some: with two
threads 48 and 24. Each batch costs two dozen statements and five commits, whatever its size: with 12
documents they were a fifth of the CPU of a document of 4 KB. But whoever comes next waits for a whole
batch, half a second."""
FEW: Final = 12
"""Taken together at most while another organization waits, and at least where the queue ends: of what
is left each thread and each worker gets a part."""
BATCH_BYTES: Final = 256_000
"""Limit of what is taken together: about 250 chunks. A larger document goes alone."""


@dataclass(slots=True)
class Batch:
    """Documents of one library that need vectors of the same models. Never empty."""

    library: Library
    models: tuple[EmbeddingModel, ...]
    documents: list[Document] = field(default_factory=list)


running_documents: Final = Runs(Document)

_lock = threading.Lock()
_served: dict[UUID, float] = {}
_resting: dict[UUID, float] = {}
"""Embedding model -> time.monotonic() before which its provider wants no requests."""


def rest_model(model_id: UUID, seconds: float) -> None:
    """Take no documents for this model for so long: its provider limits requests or fails."""
    with _lock:
        _resting[model_id] = time.monotonic() + seconds


def claim_batch(worker: str) -> Batch | None:
    """Claim the next documents under new fences, and list them as running.

    Returns None when nobody's document waits. Cost: one query that looks at each waiting
    organization once, and seven for the batch.
    """
    resting = _list_resting()
    organizations = _order_organizations(resting)
    most = _most_at_once() if len(organizations) == 1 else min(_most_at_once(), FEW)
    for organization_id in organizations:
        batch = _claim_from(organization_id, worker, resting, most)
        if batch is not None:
            with _lock:
                _served[organization_id] = time.monotonic()
            for document in batch.documents:
                running_documents.add(document)
            return batch
    return None


def is_anything_waiting() -> bool:
    """Return whether a claim would find something. One query."""
    return _claimable(_list_resting()).exists()


# One index probe an organization (index document_queue), whatever the length of its queue.
# The recursion ends with a row of NULL, which `oldest` joins with nothing.
_WAITING_SQL: Final = """
WITH RECURSIVE waiting AS (
    (SELECT organization_id FROM libraries_document
     WHERE status = 'queued' ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.organization_id FROM libraries_document d
            WHERE d.status = 'queued' AND d.organization_id > w.organization_id
            ORDER BY d.organization_id LIMIT 1)
    FROM waiting w WHERE w.organization_id IS NOT NULL
)
SELECT w.organization_id, COALESCE(r.documents, 0)
FROM waiting w
CROSS JOIN LATERAL (
    SELECT d.created_at FROM libraries_document d JOIN libraries_library l ON l.id = d.library_id
    WHERE d.status = 'queued' AND d.organization_id = w.organization_id
      AND (d.not_before IS NULL OR d.not_before <= now())
      AND l.deleted_at IS NULL
      AND l.embedding_model_id <> ALL(%(resting)s)
      AND (l.next_embedding_model_id IS NULL OR l.next_embedding_model_id <> ALL(%(resting)s))
    ORDER BY d.created_at LIMIT 1
) oldest
LEFT JOIN (
    SELECT organization_id, count(*) AS documents FROM libraries_document
    WHERE status = 'running' GROUP BY organization_id
) r ON r.organization_id = w.organization_id
ORDER BY 2, oldest.created_at
"""


def _order_organizations(resting: Sequence[UUID]) -> list[UUID]:
    """Return the organizations whose documents wait, in the order in which they are served."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SQL, {"resting": list(resting)})
        waiting = cursor.fetchall()
    with _lock:
        for gone in set(_served) - {organization_id for organization_id, _ in waiting}:
            del _served[gone]
        # Stable: of equals the one that waits the longest stays first, as in the statement.
        ranked = sorted(waiting, key=lambda row: (row[1], _served.get(row[0], 0.0)))
    return [organization_id for organization_id, _ in ranked]


def _list_resting() -> list[UUID]:
    now = time.monotonic()
    with _lock:
        for model_id in [pk for pk, until in _resting.items() if until <= now]:
            del _resting[model_id]
        return list(_resting)


def _claimable(resting: Sequence[UUID]) -> QuerySet[Document]:
    rows: QuerySet[Document] = Document.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=Now()),
        status=QUEUED,
        library__deleted_at__isnull=True,
    )
    if resting:
        is_resting = Q(library__embedding_model__in=resting)
        is_resting |= Q(library__next_embedding_model__in=resting)
        rows = rows.exclude(is_resting)
    return rows


@transaction.atomic
def _claim_from(
    organization_id: UUID, worker: str, resting: Sequence[UUID], most: int
) -> Batch | None:
    waiting = (
        _claimable(resting)
        .filter(organization_id=organization_id)
        .select_for_update(of=("self",), skip_locked=True, no_key=True)
        .annotate(bytes=Coalesce(F("file__size"), Value(0), output_field=BigIntegerField()))
        .order_by("created_at", "pk")
        .values_list("pk", "library_id", "stage", "attempt", "bytes")
    )
    found = list(waiting[:most])
    if len(found) < most:  # the end of the queue
        found = found[: max(FEW, (len(found) + 1) // 2)]
    ids = _choose_batch(found)
    if not ids:
        return None
    Document.objects.take(ids, worker, settings.AMBER_LEASE_SECONDS)
    put_off = Document.objects.filter(pk__in=ids, not_before__isnull=False)
    put_off.update(not_before=None)
    return _load_batch(ids)


def _most_at_once() -> int:
    return max(1, (HELD_AT_ONCE - len(running_documents.ids())) // 2)


def _choose_batch(waiting: list[tuple[UUID, UUID, str, int, int]]) -> list[UUID]:
    """Return the id of the first document and of those after it that need the same work.

    A document with an earlier attempt goes alone: it may be why the worker was lost.
    """
    taken: list[UUID] = []
    first: tuple[UUID, bool, bool] | None = None
    total_bytes = 0
    for pk, library_id, stage, attempt, size_bytes in waiting:
        kind = (library_id, stage == DocumentStage.READY, attempt > 0)
        if first is None:
            first = kind
        elif kind != first or attempt > 0 or total_bytes + size_bytes > BATCH_BYTES:
            continue  # one behind it may still fit
        taken.append(pk)
        total_bytes += size_bytes
    return taken


def _load_batch(ids: list[UUID]) -> Batch:
    rows: Any = Document.objects.select_related("file").defer("text", "pages")
    documents: list[Document] = list(rows.filter(pk__in=ids).order_by("created_at", "pk"))
    models = ("embedding_model__provider", "next_embedding_model__provider")
    library = Library.objects.select_related(*models).get(pk=documents[0].library_id)
    wanted = models_wanted(library, documents[0].stage)
    return Batch(library, wanted, documents)


def reread_as_tenant(batch: Batch) -> bool:
    """Read the documents' files again as the tenant; return False if the library is not the tenant's.

    A claim sees the rows of all tenants, so a document could refer to a library or a file of
    another one. Two queries.
    """
    ids = [document.file_id for document in batch.documents if document.file_id]
    files = File.objects.in_bulk(ids)
    for document in batch.documents:
        document.file = files.get(document.file_id)
    return bool(Library.objects.filter(pk=batch.library.pk).exists())


def models_wanted(library: Library, stage: str) -> tuple[EmbeddingModel, ...]:
    """Return the models that a document needs vectors of.

    A queued document at stage `ready` has those of the library's current model, and is embedded
    anew for the next one. Any other gets both, so that it can be found before and after.
    """
    upcoming = library.next_embedding_model
    if stage == DocumentStage.READY:
        return () if upcoming is None else (upcoming,)
    if upcoming is None:
        return (library.embedding_model,)
    return (library.embedding_model, upcoming)
