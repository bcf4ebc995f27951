"""Add documents from addresses, and refresh them: fetch what the address answers.

The address is the document's `source` and says which document it is: added again, it is fetched
anew into the same one. What it answered before stays searchable until the new text takes its place.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from accounts.models import IdempotencyRecord
from amber.lib.errors import Conflict, blame_field
from libraries.files.url_fetching import fetch_url
from libraries.ingestion import intake
from libraries.ingestion.document_services import settle_and_enqueue
from libraries.ingestion.intake import DocumentSource, PlacedDocument
from libraries.models import Document, Library
from libraries.queue import enqueue_ingestion

OF_REPOSITORY: Final = "This document comes from a Git repository. Import the repository again."
NOT_FETCHED: Final = "This document was not fetched from an address. Upload it again instead."


def add_from_url(
    library: Library,
    *,
    url: str,
    user_id: UUID | None,
    name: str = "",
    path: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    claim: IdempotencyRecord | None = None,
) -> PlacedDocument:
    """Fetch an address and add its answer as a document.

    Raises UnsafeAddress, FetchError, TooLarge, Invalid (all name `url`), Unavailable.
    """
    with blame_field("url"):
        fetched = fetch_url(url)
        given = DocumentSource(
            name=name or fetched.name,
            data=fetched.data,
            path=path,
            source=url,
            mime_type=fetched.mime_type,
            metadata=metadata,
            user_id=user_id,
        )
        intake.check(given)
    into = _find_earlier(library, url) if path is None else None
    return intake.put(library, given, into=into, also=partial(settle_and_enqueue, claim))


def refresh_document(document: Document) -> PlacedDocument:
    """Fetch a document again. Raises Conflict if it has no address, else as `add_from_url`."""
    if document.repository_id is not None or not document.source:
        raise Conflict(OF_REPOSITORY if document.repository_id else NOT_FETCHED)
    fetched = fetch_url(document.source)
    given = DocumentSource(
        name=document.name,
        data=fetched.data,
        path=document.path,
        source=document.source,
        mime_type=fetched.mime_type,
        user_id=document.user_id,
    )
    return intake.put(document.library, given, into=document.pk, also=_enqueue)


def _find_earlier(library: Library, url: str) -> UUID | None:
    """Return the id of the document that was added from this address before, or None."""
    rows = Document.objects.filter(library=library, source=url, path=None, repository=None)
    found: UUID | None = rows.order_by("created_at").values_list("pk", flat=True).first()
    return found


def _enqueue(_: PlacedDocument) -> None:
    transaction.on_commit(enqueue_ingestion)
