"""Serialise files, libraries, documents, chunks and imports, each to one form."""

from typing import Annotated, Any, TypedDict

from accounts.tenant_rows import ACCESS, Right
from amber.lib.wire_fields import Id, Time, write_id, write_time
from libraries.models import (
    Document,
    DocumentChunk,
    DocumentStage,
    DocumentStatus,
    File,
    Library,
    Repository,
)


class FileWire(TypedDict):
    id: Id
    name: str
    mime_type: Annotated[str, "Detected from the bytes."]
    size: Annotated[int, "In bytes, as stored."]
    file_hash: Annotated[str, "SHA-256 of the stored bytes, in hexadecimal."]
    url: Annotated[str | None, "The URL it was fetched from."]
    is_read: Annotated[
        bool, "Whether Amber has read it for models. Images are never read, they are shown."
    ]
    unreadable: Annotated[str | None, "Why models are not given its text, for people."]
    expired_at: Annotated[Time | None, "When it is deleted."]
    created_at: Time


class LibraryWire(TypedDict):
    id: Id
    name: str
    description: str
    default: bool
    shared: bool
    access: Annotated[str, Right, ACCESS]
    embedding_model: Annotated[str, "The alias of the model that search uses."]
    next_embedding_model: Annotated[
        str | None, "The model that search will use, while all documents are embedded anew."
    ]
    chunk_tokens: int
    overlap_tokens: int
    chunk_count: Annotated[int, "The number of chunks in search."]
    user_id: Id | None
    created_at: Time
    updated_at: Time


class DocumentCountsWire(TypedDict):
    queued: int
    running: int
    ready: int
    failed: int
    cancelled: int


class LibraryWithCountsWire(LibraryWire):
    """One library, with its documents counted by status."""

    documents: Annotated[DocumentCountsWire, "The number of documents by status."]


class IngestionStepsWire(TypedDict):
    fetching: Annotated[int, "Git imports that wait or run; each brings documents."]
    queued: int
    parsing: int
    chunking: int
    embedding: int
    indexing: int
    ready: int
    failed: int
    cancelled: int


class IngestionWire(TypedDict):
    """Where a library's documents are in ingestion, and how fast it goes."""

    steps: Annotated[IngestionStepsWire, "The number of documents by step."]
    put_off: Annotated[int, "Those of the queued that wait for their provider."]
    documents_per_minute: Annotated[float, "Made ready in the last ten minutes."]
    chunks_per_minute: Annotated[float, "Those of the same documents."]
    mean_ms: Annotated[
        dict[str, int], "The mean milliseconds of each finished stage, of the same documents."
    ]
    oldest_waiting_at: Annotated[Time | None, "When the oldest queued document was added."]


class DocumentProgressWire(TypedDict):
    chunks: int
    embedded: int


class DocumentWire(TypedDict):
    id: Id
    library_id: Id
    name: str
    path: str | None
    source: Annotated[str, "The URL it was fetched from; empty for uploads."]
    mime_type: Annotated[str, "Detected from the content by the parser."]
    content_hash: Annotated[str, "SHA-256 of the content, in hexadecimal."]
    stage: Annotated[str, DocumentStage, "The last finished stage."]
    status: Annotated[str, DocumentStatus]
    chunked: bool
    attempt: Annotated[int, "The number of attempts so far."]
    error: Annotated[str, "Why it failed or what it waits for, in words."]
    progress: DocumentProgressWire
    timings: Annotated[dict[str, int], "Milliseconds of each finished stage."]
    metadata: dict[str, Any]
    not_before: Annotated[
        Time | None,
        "The document waits until then, because its provider limits requests or fails.",
    ]
    repository_id: Id | None
    user_id: Id | None
    created_at: Time
    updated_at: Time
    started_at: Time | None
    ended_at: Time | None


class ChunkWire(TypedDict):
    id: Id
    order: Annotated[int, "Counts from 0."]
    content: Annotated[str, "`text[start:end]` of the document's text."]
    start: int
    end: int
    page: int | None
    heading: str | None
    tokens: int
    vectorized: bool


class RepositoryProgressWire(TypedDict, total=False):
    step: Annotated[str, "`fetching`, `reading` or `done`; absent before the import begins."]
    new: int
    changed: int
    unchanged: int
    removed: int
    skipped: Annotated[dict[str, int], "How many files were left out, by reason."]
    refused: Annotated[dict[str, str], "Some of the refused files, each with the reason in words."]


class RepositoryWire(TypedDict):
    id: Id
    library_id: Id
    git_url: str
    ref: str
    commit: Annotated[str, "The last imported commit; empty before."]
    include: list[str]
    exclude: list[str]
    has_token: bool
    status: Annotated[str, DocumentStatus]
    attempt: int
    error: Annotated[str, "Why it failed, in words."]
    progress: RepositoryProgressWire
    user_id: Id | None
    created_at: Time
    updated_at: Time
    started_at: Time | None
    ended_at: Time | None


def file_wire(file: File) -> FileWire:
    return {
        "id": str(file.pk),
        "name": file.name,
        "mime_type": file.mime_type,
        "size": file.size,
        "file_hash": file.file_hash,
        "url": file.url,
        "is_read": file.read_at is not None and not file.unreadable,
        "unreadable": file.unreadable or None,
        "expired_at": write_time(file.expired_at),
        "created_at": write_time(file.created_at),
    }


def library_wire(library: Library, access: Right) -> LibraryWire:
    """Return the library's wire form for somebody with this access.

    It reads both embedding models: select them with the row.
    """
    upcoming = library.next_embedding_model
    return {
        "id": str(library.pk),
        "name": library.name,
        "description": library.description,
        "default": library.default,
        "shared": library.shared,
        "access": access,
        "embedding_model": library.embedding_model.alias,
        "next_embedding_model": None if upcoming is None else upcoming.alias,
        "chunk_tokens": library.chunk_tokens,
        "overlap_tokens": library.overlap_tokens,
        "chunk_count": library.chunk_count,
        "user_id": write_id(library.user_id),
        "created_at": write_time(library.created_at),
        "updated_at": write_time(library.updated_at),
    }


def document_wire(document: Document) -> DocumentWire:
    """Return the document's wire form, without its text."""
    return {
        "id": str(document.pk),
        "library_id": str(document.library_id),
        "name": document.name,
        "path": document.path,
        "source": document.source,
        "mime_type": document.mime_type,
        "content_hash": document.content_hash,
        "stage": document.stage,
        "status": document.status,
        "chunked": document.chunked,
        "attempt": document.attempt,
        "error": document.error,
        "progress": {
            "chunks": int(document.progress.get("chunks", 0)),
            "embedded": int(document.progress.get("embedded", 0)),
        },
        "timings": document.timings,
        "metadata": document.metadata,
        "not_before": write_time(document.not_before),
        "repository_id": write_id(document.repository_id),
        "user_id": write_id(document.user_id),
        "created_at": write_time(document.created_at),
        "updated_at": write_time(document.updated_at),
        "started_at": write_time(document.started_at),
        "ended_at": write_time(document.ended_at),
    }


def chunk_wire(chunk: DocumentChunk) -> ChunkWire:
    return {
        "id": str(chunk.pk),
        "order": chunk.order,
        "content": chunk.content,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "heading": chunk.heading,
        "tokens": chunk.tokens,
        "vectorized": chunk.vectorized,
    }


def repository_wire(repository: Repository) -> RepositoryWire:
    """Return the import's wire form, without its token."""
    return {
        "id": str(repository.pk),
        "library_id": str(repository.library_id),
        "git_url": repository.git_url,
        "ref": repository.ref,
        "commit": repository.commit,
        "include": list(repository.include),
        "exclude": list(repository.exclude),
        "has_token": bool(repository.token_sealed),
        "status": repository.status,
        "attempt": repository.attempt,
        "error": repository.error,
        "progress": repository.progress,
        "user_id": write_id(repository.user_id),
        "created_at": write_time(repository.created_at),
        "updated_at": write_time(repository.updated_at),
        "started_at": write_time(repository.started_at),
        "ended_at": write_time(repository.ended_at),
    }
