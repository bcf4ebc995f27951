"""Give back documents and Git imports whose workers were lost."""

from uuid import UUID

import structlog

from amber.lib.workers.leases import sweep_expired
from libraries.git import importing
from libraries.ingestion import endings
from libraries.models import Document, Repository

logger = structlog.get_logger(__name__)


def sweep_documents() -> None:
    sweep_expired("sweep_documents", Document, _give_back_document)


def sweep_repositories() -> None:
    sweep_expired("sweep_repositories", Repository, _give_back_repository)


def _give_back_document(document_id: UUID) -> None:
    document = Document.objects.defer("text", "pages").lock_expired(document_id)
    if document is not None:
        logger.warning("document_lost_its_worker", document_id=str(document_id))
        endings.end_lost(document)


def _give_back_repository(repository_id: UUID) -> None:
    repository = Repository.objects.lock_expired(repository_id)
    if repository is not None:
        logger.warning("import_lost_its_worker", repository_id=str(repository_id))
        importing.end_lost(repository)
