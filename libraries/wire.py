"""Serialise files, libraries, documents, chunks and imports, each to one form."""

from typing import Any

from libraries.models import Document, DocumentChunk, File, Library, Repository


def file_wire(file: File) -> dict[str, Any]:
    return {
        "id": str(file.pk),
        "name": file.name,
        "mime_type": file.mime_type,
        "size": file.size,
        "file_hash": file.file_hash,
        "url": file.url,
        "expired_at": _time(file.expired_at),
        "created_at": _time(file.created_at),
    }


def library_wire(library: Library) -> dict[str, Any]:
    """Return the library's wire form. It reads both embedding models: select them with the row."""
    upcoming = library.next_embedding_model
    return {
        "id": str(library.pk),
        "name": library.name,
        "description": library.description,
        "default": library.default,
        "shared": library.shared,
        "embedding_model": library.embedding_model.alias,
        "next_embedding_model": None if upcoming is None else upcoming.alias,
        "chunk_tokens": library.chunk_tokens,
        "overlap_tokens": library.overlap_tokens,
        "chunk_count": library.chunk_count,
        "user_id": _id(library.user_id),
        "created_at": _time(library.created_at),
        "updated_at": _time(library.updated_at),
    }


def document_wire(document: Document) -> dict[str, Any]:
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
        "not_before": _time(document.not_before),
        "repository_id": _id(document.repository_id),
        "user_id": _id(document.user_id),
        "created_at": _time(document.created_at),
        "updated_at": _time(document.updated_at),
        "started_at": _time(document.started_at),
        "ended_at": _time(document.ended_at),
    }


def chunk_wire(chunk: DocumentChunk) -> dict[str, Any]:
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


def repository_wire(repository: Repository) -> dict[str, Any]:
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
        "user_id": _id(repository.user_id),
        "created_at": _time(repository.created_at),
        "updated_at": _time(repository.updated_at),
        "started_at": _time(repository.started_at),
        "ended_at": _time(repository.ended_at),
    }


def _id(value: Any) -> str | None:
    return None if value is None else str(value)


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
