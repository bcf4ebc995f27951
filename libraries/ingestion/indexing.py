"""Index the documents that wait, batch after batch, by `libraries.ingestion.stages`.

This is the outer boundary of ingestion: whatever a document or a provider does, the document
reaches a state, with an error in words for people, and the worker lives.
"""

import time
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError

from amber.lib.database.connections import release_connections
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.secrets import DecryptError
from amber.lib.tracing import names, spans
from amber.lib.tracing.spans import trace
from amber.lib.workers.worker import Worker
from engine.provider.model import ProviderError
from libraries.ingestion import claims, endings, stages
from libraries.ingestion.claims import Batch
from libraries.ingestion.stages import ModelFault
from libraries.models import Document

logger = structlog.get_logger(__name__)

PASSING: Final = frozenset(
    {"provider_rate_limited", "provider_timeout", "provider_unavailable", "provider_lost"}
)
"""Faults of a provider that go away by themselves."""
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 600.0
LONGEST_REST_SECONDS: Final = 60.0
"""For the other documents of the model: one of them finds out whether the provider is back."""


def index_waiting(worker: Worker, *, seconds: float) -> bool:
    """Index waiting documents for about so long. Return whether there may be more."""
    deadline = time.monotonic() + seconds
    while not worker.is_draining and time.monotonic() < deadline:
        with across_tenants():
            batch = claims.claim_batch(worker.name)
        if batch is None:
            return False
        with as_tenant(Tenant(batch.documents[0].organization_id, is_whole=True)):
            if claims.reread_as_tenant(batch):
                index_batch(batch)
            else:
                _refuse(batch)
    return True


def _refuse(batch: Batch) -> None:
    """Fail documents that lie in another organization's library, which no code of Amber's does."""
    logger.error("documents_of_another_library", library_id=str(batch.library.pk))
    for document in batch.documents:
        endings.fail(document, endings.INTERNAL)
    claims.running_documents.remove(batch.documents)


@trace(names.INDEX)
def index_batch(batch: Batch) -> None:
    """Work on claimed documents until each is ready, has ended, or waits again.

    Without Postgres nothing can be written: the leases run out, and the documents are taken again.
    """
    # What ends on the way leaves `batch.documents`, but is listed as running until the end.
    claimed = list(batch.documents)
    spans.current().set(
        {
            names.DOCUMENTS: len(claimed),
            names.ORGANIZATION_ID: str(batch.library.organization_id),
        }
    )
    try:
        with structlog.contextvars.bound_contextvars(
            organization_id=str(batch.library.organization_id), library_id=str(batch.library.pk)
        ):
            _run_together(batch)
    except (OperationalError, InterfaceError) as exc:
        logger.warning("documents_lost_postgres", reason=type(exc).__name__)
    finally:
        claims.running_documents.remove(claimed)
        release_connections()


def _run_together(batch: Batch) -> None:
    """Take the batch through its stages; if it fails together, its documents are tried one by one.

    So the fault of one document does not become the others'.
    """
    try:
        stages.run_stages(batch)
    except (OperationalError, InterfaceError):
        raise
    except ModelFault as fault:
        _handle_fault(fault, batch)
    except DecryptError as exc:
        for document in batch.documents:
            endings.fail(document, f"The embedding provider's key cannot be used: {exc}")
    except Exception:
        logger.exception("documents_broke", documents=[str(d.pk) for d in batch.documents])
        if not _run_one_by_one(batch):
            endings.fail(batch.documents[0], endings.INTERNAL)


def _handle_fault(fault: ModelFault, batch: Batch) -> None:
    """Put the documents off where waiting helps; else fail them with the provider's words."""
    error = fault.error
    if error.code in PASSING:
        claims.rest_model(fault.model.pk, _put_off(batch, error))
    elif not _run_one_by_one(batch):
        endings.fail(batch.documents[0], error.message)


def _put_off(batch: Batch, error: ProviderError) -> float:
    """Put the documents off. Returns how long the first of them waits, in seconds."""
    pauses = [_pause_seconds(document, error) for document in batch.documents]
    for document, seconds in zip(batch.documents, pauses, strict=True):
        why = f"{error.message} Amber will try again automatically."
        endings.put_off(document, seconds=seconds, why=why)
    return min(min(pauses), LONGEST_REST_SECONDS)


def _pause_seconds(document: Document, error: ProviderError) -> float:
    """Return the pause that the provider asks for; without one, it doubles each time."""
    if error.retry_after_seconds is not None:
        return min(error.retry_after_seconds, LONGEST_PAUSE_SECONDS)
    waits = min(int(document.progress.get("waits", 0)), 10)
    return float(min(FIRST_PAUSE_SECONDS * 2**waits, LONGEST_PAUSE_SECONDS))


def _run_one_by_one(batch: Batch) -> bool:
    """Run each document alone. Returns False for a batch of one, which was tried alone already."""
    if len(batch.documents) < 2:
        return False
    for document in batch.documents:
        _run_together(Batch(batch.library, batch.models, [document]))
    return True
