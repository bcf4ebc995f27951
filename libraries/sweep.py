"""Give back documents and Git imports whose workers were lost.

Every statement is safe to run in several processes at once; one of them sweeps at a time.
"""

from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction

from amber.lib.workers.guard import guard_row
from libraries.git import importing
from libraries.ingestion import endings
from libraries.models import Document, Repository

logger = structlog.get_logger(__name__)

_SWEEP_LOCK: Final = 0x616D6269
"""Key of the advisory lock: "ambi" in ASCII."""
_BATCH: Final = 200


def sweep_documents() -> None:
    """Give back the documents that lost workers held, at most _BATCH a call."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_SWEEP_LOCK])
            if not cursor.fetchone()[0]:
                return
        Document.objects.shorten_leases(settings.AMBER_LEASE_SECONDS)
        expired = list(Document.objects.expired().values_list("pk", flat=True)[:_BATCH])
    for pk in expired:
        with guard_row("sweep_documents", document_id=str(pk)):
            _give_back(pk)


@transaction.atomic
def _give_back(document_id: UUID) -> None:
    """End the lost attempt at one document, in a transaction of its own.

    A row that is locked is skipped: its worker is alive and about to end its work.
    """
    rows = Document.objects.expired().select_for_update(no_key=True, skip_locked=True)
    document = rows.defer("text", "pages").filter(pk=document_id).first()
    if document is not None:
        logger.warning("document_lost_its_worker", document_id=str(document_id))
        endings.end_lost(document, most_attempts=settings.AMBER_MAX_ATTEMPTS)


def sweep_repositories() -> None:
    """Give back the Git imports that lost workers held."""
    Repository.objects.shorten_leases(settings.AMBER_LEASE_SECONDS)
    for pk in Repository.objects.expired().values_list("pk", flat=True)[:_BATCH]:
        with guard_row("sweep_repositories", repository_id=str(pk)), transaction.atomic():
            rows = Repository.objects.expired().select_for_update(no_key=True, skip_locked=True)
            repository = rows.filter(pk=pk).first()
            if repository is not None:
                logger.warning("import_lost_its_worker", repository_id=str(pk))
                importing.end_lost(repository)
