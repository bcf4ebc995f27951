"""The wire form of files: one form, for REST and inside messages."""

from typing import Any

from libraries.models import File


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


def _time(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
