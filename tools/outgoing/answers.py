"""Turn what a discovery tool's service answers into a call's result for the model.

    {"content": "text for the model", "files": [{"name", "mime_type", "base64"}]?}

or any other JSON, or text: then the model reads the body as it is. A status other than 2xx is an
error, and the model reads what the service says of it, if that is text. The tool's key is masked in
every text. Pure; a file's name and type are a stranger's words.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from amber.lib.egress import FetchError, Response
from amber.lib.json_text import numbers
from amber.lib.shortening import shorten
from tools.outgoing.requests import ServiceError
from tools.protocol import ProducedFile, ToolOutput

MAX_FILES: Final = 20
MAX_NAME_CHARS: Final = 200
MAX_JSON_VALUES: Final = 200_000
"""Larger JSON is not parsed, as each value costs up to 64 bytes of memory."""

MAX_REFUSAL_CHARS: Final = 1_000
MAX_DETAIL_CHARS: Final = 500
MASK: Final = "•••"
_MIN_SECRET_CHARS: Final = 4
"""A shorter key occurs in texts by chance and is not masked."""


def output_of(answer: Response, secrets: Sequence[str] = ()) -> ToolOutput:
    """Return the result of a successful call."""
    parsed = _parse_json(answer)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("content"), str):
        return ToolOutput(mask_secrets(answer.text(), secrets))
    files, left_out = _files(parsed.get("files"))
    note = (
        f"\n[{left_out} file(s) of the answer could not be read, or were too many.]"
        if left_out
        else ""
    )
    return ToolOutput(mask_secrets(parsed["content"], secrets) + note, tuple(files))


def refusal_of(answer: Response, secrets: Sequence[str] = ()) -> ServiceError:
    """Return the error for an answer with a status other than 2xx."""
    said = mask_secrets(_reason(answer), secrets)
    shown = f": {shorten(said, MAX_REFUSAL_CHARS)}" if said else "."
    text = f"The tool's service answered with status {answer.status}{shown}"
    return ServiceError(text, detail=shorten(text, MAX_DETAIL_CHARS), status=answer.status)


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace the secrets in the text."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_CHARS:
            text = text.replace(secret, MASK)
    return text


def _parse_json(answer: Response) -> Any:
    """Parse the answer; None if it is not JSON, or too much of it."""
    if answer.body.count(b",") + answer.body.count(b"[") > MAX_JSON_VALUES:
        return None
    try:
        return answer.json()
    except FetchError:
        return None


def _files(given: Any) -> tuple[list[ProducedFile], int]:
    """Return the files that can be read, and how many cannot or are too many."""
    entries = given if isinstance(given, list) else []
    read = [_file(entry) for entry in entries[:MAX_FILES]]
    files = [file for file in read if file is not None]
    return files, len(entries) - len(files)


def _file(entry: Any) -> ProducedFile | None:
    if not isinstance(entry, dict):
        return None
    encoded, name, mime_type = (entry.get(field) for field in ("base64", "name", "mime_type"))
    if not isinstance(encoded, str):
        return None
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return ProducedFile(
        name=name[:MAX_NAME_CHARS] if isinstance(name, str) else "",
        mime_type=mime_type[:MAX_NAME_CHARS] if isinstance(mime_type, str) else "",
        content=content,
    )


def _reason(answer: Response) -> str:
    """Return what the service says of the error; empty for a page meant for browsers."""
    if answer.mime_type == "text/html":
        return ""
    parsed = _parse_json(answer)
    return (
        _find_error_text(parsed) if isinstance(parsed, Mapping) else ""
    ) or answer.text().strip()


def _find_error_text(parsed: Mapping[str, Any]) -> str:
    """Look for an error's text in the usual fields; empty if it is in none of them."""
    for field in ("content", "error", "message", "detail"):
        value = parsed.get(field)
        if isinstance(value, Mapping):
            value = value.get("message") or numbers.write(value).decode()
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
