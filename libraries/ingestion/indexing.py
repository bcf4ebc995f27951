"""Indexes what waits, batch after batch. The stages themselves: `libraries.ingestion.stages`.

The outer boundary of ingestion: whatever a document or a provider does, the document reaches a
state, in words for people, and the worker lives.
"""

import time
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError

from amber.lib.database.connections import release_connections
from amber.lib.secrets import DecryptError
from amber.lib.workers.worker import Worker
from engine.provider.model import ProviderError
from libraries.ingestion import claims, endings, holds, stages
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
"""For the documents that have not asked yet: one of them finds out whether the provider is back."""


def work(worker: Worker, *, seconds: float) -> bool:
    """Index what waits, for about so long. True when there may be more."""
    deadline = time.monotonic() + seconds
    while not worker.is_draining and time.monotonic() < deadline:
        batch = claims.claim_batch(worker.name)
        if batch is None:
            return False
        run(batch)
    return True


def run(batch: Batch) -> None:
    """Work on claimed documents until each is ready, or has ended or waits for another reason.

    Without Postgres nothing can be written: the leases run out, and the documents are taken again.
    """
    ids = [document.pk for document in batch.documents]
    try:
        with structlog.contextvars.bound_contextvars(
            organization_id=str(batch.library.organization_id), library_id=str(batch.library.pk)
        ):
            _run(batch)
    except (OperationalError, InterfaceError) as exc:
        logger.warning("documents_lost_postgres", reason=type(exc).__name__)
    finally:
        holds.drop(ids)
        release_connections()


def _run(batch: Batch) -> None:
    """A fault of one document must not be the others': what fails together is tried one by one."""
    try:
        stages.take(batch)
    except (OperationalError, InterfaceError):
        raise
    except ModelFault as fault:
        _meet(fault, batch)
    except DecryptError as exc:
        for document in batch.documents:
            endings.fail(document, f"The key of the embedding model's provider: {exc}")
    except Exception:
        logger.exception("documents_broke", documents=[str(d.pk) for d in batch.documents])
        if not _one_by_one(batch):
            endings.fail(batch.documents[0], endings.INTERNAL)


def _meet(fault: ModelFault, batch: Batch) -> None:
    """Wait where that helps; else the provider's words are the document's error."""
    error = fault.error
    if error.code in PASSING:
        claims.rest(fault.model.pk, _put_off(batch, error))
    elif not _one_by_one(batch):
        endings.fail(batch.documents[0], error.message)


def _put_off(batch: Batch, error: ProviderError) -> float:
    """How long the first of them waits, in seconds."""
    pauses = [_pause_seconds(document, error) for document in batch.documents]
    for document, seconds in zip(batch.documents, pauses, strict=True):
        why = f"{error.message} Amber tries again by itself."
        endings.put_off(document, seconds=seconds, why=why)
    return min(min(pauses), LONGEST_REST_SECONDS)


def _pause_seconds(document: Document, error: ProviderError) -> float:
    """What the provider asks for, else twice as long each time."""
    if error.retry_after_seconds is not None:
        return min(error.retry_after_seconds, LONGEST_PAUSE_SECONDS)
    waits = min(int(document.progress.get("waits", 0)), 10)
    return float(min(FIRST_PAUSE_SECONDS * 2**waits, LONGEST_PAUSE_SECONDS))


def _one_by_one(batch: Batch) -> bool:
    """False where there is only one, which was tried alone already."""
    if len(batch.documents) < 2:
        return False
    for document in batch.documents:
        _run(Batch(batch.library, batch.models, [document]))
    return True
