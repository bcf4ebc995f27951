"""Make a document of what is added to a library: a new one, the existing one, or its new content.

With a `path`, the path says which document it is; without one, the content does. The bytes are kept
as a file that nobody owns: it is seen through its document alone, and goes with it.

Refuses images, empty content and what is over the limit. What a file is, and whether it can be
read, is found out by the worker.
"""

import enum
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.cached_update import insert_row
from amber.lib.database.rows import save_changes
from amber.lib.errors import Conflict, Invalid, TooLarge
from libraries.files.names import clean_name
from libraries.files.new_files import unsaved_file
from libraries.files.payload import Payload
from libraries.files.storage import erase_bytes, erasing_unstored, remove_files
from libraries.ingestion.endings import QUEUED_ANEW
from libraries.models import Document, DocumentChunk, DocumentStage, DocumentStatus, File, Library

_IMAGES: Final = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|II\*\x00|MM\x00\*|\x00\x00\x01\x00"
    rb"|RIFF....WEBP|....ftyp(heic|heix|mif1|avif)",
    re.DOTALL,
)
"""Matches how JPEG, PNG, GIF, TIFF, icons, WebP, HEIC and AVIF begin."""
IMAGE_HEAD_BYTES: Final = 16
NO_IMAGES: Final = (
    "This is an image. Libraries hold texts: add the document it was made from, or send the image "
    "in a chat whose model reads images."
)


class IntakeResult(enum.Enum):
    NEW = "new"
    SAME = "same"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """A document's content and where it came from.

    Without a `path` the content alone says which document it is.
    """

    name: str
    data: bytes | Payload = field(repr=False)
    path: str | None = None
    source: str = ""
    mime_type: str = ""
    metadata: Mapping[str, Any] | None = None
    user_id: UUID | None = None
    repository_id: UUID | None = None

    @property
    def content_hash(self) -> str:
        return self.payload.sha256

    @property
    def payload(self) -> Payload:
        return Payload.of(self.data)


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A document, and whether it is new, the same as before, or has new content."""

    document: Document
    outcome: IntakeResult


def check(given: DocumentSource) -> None:
    """Raise TooLarge or Invalid (empty, an image) for what cannot be a document."""
    most = settings.AMBER_MAX_UPLOAD_BYTES
    payload = given.payload
    if payload.size > most:
        raise TooLarge(f"A document may have at most {most:,} bytes.")
    if payload.is_blank:
        raise Invalid("The document is empty.")
    if _IMAGES.match(payload.head(IMAGE_HEAD_BYTES)):
        raise Invalid(NO_IMAGES)


def put(
    library: Library,
    given: DocumentSource,
    *,
    into: UUID | None = None,
    also: Callable[[PlacedDocument], None] = lambda _: None,
) -> PlacedDocument:
    """Store it and queue it for indexing, unless the library has it already.

    `into` names the document it is the content of, whatever its path. `also` runs inside the
    transaction. What failed or was cancelled before is tried again. No message is enqueued: the
    caller does that after all it puts. Raises as `check`, Unavailable, and Conflict for an `into`
    that is gone.
    """
    check(given)
    file = unsaved_file(
        name=clean_name(given.name),
        data=given.payload,
        mime_type=given.mime_type[:120],
        text=None,
        organization_id=library.organization_id,
        user_id=None,
        guest_id=None,
    )
    with erasing_unstored([file.path]):
        placed = _place(library, given, file, into, also)
    if placed.outcome is IntakeResult.SAME:
        erase_bytes(file.path)
    return placed


# Durable: by its outcome `put` keeps or erases the bytes, so no caller may roll it back later.
@transaction.atomic(durable=True)
def _place(
    library: Library,
    given: DocumentSource,
    file: File,
    into: UUID | None,
    also: Callable[[PlacedDocument], None],
) -> PlacedDocument:
    _one_at_a_time(library, str(into or given.path or given.content_hash))
    found = _find_document(library, given, into)
    if found is None and into is not None:
        raise Conflict("The document was deleted in the meantime.")
    if found is None:
        placed = PlacedDocument(_new_document(library, given, file), IntakeResult.NEW)
    elif found.content_hash == given.content_hash:
        _try_again(found)
        placed = PlacedDocument(found, IntakeResult.SAME)
    else:
        _replace(found, given, file)
        placed = PlacedDocument(found, IntakeResult.REPLACED)
    also(placed)
    return placed


def _one_at_a_time(library: Library, identity: str) -> None:
    """Take the document's advisory lock: two that add it at once make one document."""
    digest = hashlib.sha256(f"{library.pk} {identity}".encode()).digest()
    key = int.from_bytes(digest[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def _find_document(library: Library, given: DocumentSource, into: UUID | None) -> Document | None:
    """Return the document that the library has already, locked; None if it has none."""
    if into is not None:
        found = _lock_named(library_id=library.pk, document_id=into)
    elif given.path is None:
        found = _lock_document("content_hash", library_id=library.pk, value=given.content_hash)
    else:
        found = _lock_document("path", library_id=library.pk, value=given.path)
    return found[0] if found else None


@cache_sql
def _lock_named(*, library_id: UUID, document_id: UUID) -> QuerySet[Document]:
    return _oldest_locked(Document.objects.filter(library=library_id, pk=document_id))


@cache_sql
def _lock_document(column: str, /, *, library_id: UUID, value: str) -> QuerySet[Document]:
    return _oldest_locked(Document.objects.filter(library=library_id, **{column: value}))


def _oldest_locked(documents: QuerySet[Document]) -> QuerySet[Document]:
    oldest = documents.defer("text", "pages").order_by("created_at")[:1]
    return oldest.select_for_update(no_key=True, of=("self",))


def _new_document(library: Library, given: DocumentSource, file: File) -> Document:
    insert_row(file)
    document = Document(
        organization_id=library.organization_id,
        library=library,
        user_id=given.user_id,
        file=file,
        name=clean_name(given.name),
        path=given.path,
        source=given.source,
        mime_type=given.mime_type[:120],
        content_hash=given.content_hash,
        metadata=dict(given.metadata or {}),
        repository_id=given.repository_id,
    )
    insert_row(document)
    return document


def _replace(document: Document, given: DocumentSource, file: File) -> None:
    """Give a document new content. A worker on the old one finds it queued, and stops.

    The old text and its chunks stay until the new ones take their place (`progress.replaces`).
    """
    file.save(force_insert=True)
    old_file_id = document.file_id
    is_searchable = DocumentChunk.objects.filter(document=document).exists()
    changes: dict[str, Any] = {
        **QUEUED_ANEW,
        "file": file,
        "name": clean_name(given.name),
        "source": given.source,
        "content_hash": given.content_hash,
        "stage": DocumentStage.STORED,
        "progress": {"replaces": True} if is_searchable else {},
        "timings": {},
    }
    if given.metadata is not None:
        changes["metadata"] = dict(given.metadata)
    if not is_searchable:
        changes |= {"text": None, "pages": []}
    save_changes(document, changes)
    remove_document_files([old_file_id])


def _try_again(document: Document) -> None:
    if document.status in (DocumentStatus.FAILED, DocumentStatus.CANCELLED):
        save_changes(document, dict(QUEUED_ANEW))


def remove_document_files(file_ids: list[UUID | None]) -> None:
    """Delete documents' own files in the caller's transaction, and their bytes after it.

    Only files that belong to nobody are deleted; people's own files stay.
    """
    ids = [pk for pk in file_ids if pk is not None]
    remove_files(File.objects.filter(pk__in=ids, user=None, guest_id=None))
