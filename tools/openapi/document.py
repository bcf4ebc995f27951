"""Read an OpenAPI 3.0, 3.1 or 3.2 document of a stranger's bytes, and resolve `$ref` in it. One of
Swagger 2.0 is turned into OpenAPI 3.0.

The bytes are JSON or YAML (https://spec.openapis.org/oas/v3.1.0#format). A reference leads to
another place in the same document or nowhere: nothing is ever fetched for one.

What is too large, too deep or neither is refused.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import orjson

from amber.lib.json_text.depth import is_deeper
from tools.openapi.reading.plain_yaml import YamlError, read_yaml
from tools.openapi.reading.swagger import swagger_as_openapi

MAX_DOCUMENT_BYTES: Final = 10_000_000
MAX_DEPTH: Final = 50
MAX_VALUES: Final = 1_000_000
"""In YAML, which is read at some 500,000 values a second; 10 MB of JSON are read in 0.1 s."""

MAX_REFERENCES: Final = 20
"""How many references may lead to one another; real documents have two or three."""


class DocumentError(Exception):
    """The document cannot be used because of `place`, such as `openapi`; empty: all of it."""

    def __init__(self, text: str, *, place: str = "") -> None:
        self.place = place
        super().__init__(text)


def read_document(content: bytes) -> dict[str, Any]:
    """Parse and check the document. Raises DocumentError."""
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DocumentError(f"It is larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB.")
    content = content.removeprefix(b"\xef\xbb\xbf")
    is_json = content.lstrip()[:1] == b"{"
    document: Any = _read_json(content) if is_json else _read_yaml(content)
    if not isinstance(document, dict):
        raise DocumentError("It is neither a JSON nor a YAML object.")
    if document.get("swagger") in ("2.0", 2.0) and "openapi" not in document:
        document = swagger_as_openapi(document, partial(resolve_reference, document))
    _check(document)
    found: dict[str, Any] = document
    return found


def _read_json(content: bytes) -> Any:
    if is_deeper(content, MAX_DEPTH):
        raise DocumentError(f"It is nested more than {MAX_DEPTH} deep, or cut off.")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DocumentError(f"It is not valid JSON: {error}.") from None


def _read_yaml(content: bytes) -> Any:
    try:
        text = content.decode()
        return read_yaml(text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except UnicodeDecodeError:
        raise DocumentError("It is neither JSON nor YAML in UTF-8.") from None
    except YamlError as error:
        raise DocumentError(f"It is neither JSON nor YAML that can be read: {error}.") from None


def _check(document: Mapping[str, Any]) -> None:
    version = document.get("openapi")
    if version is None and "swagger" in document:
        raise DocumentError(
            "Swagger before 2.0 is not supported. Convert the document to OpenAPI 3.",
            place="swagger",
        )
    if not isinstance(version, str) or not re.match(r"3\.[012](\.|$)", version):
        raise DocumentError("It must be 3.0.x, 3.1.x or 3.2.x.", place="openapi")
    paths = document.get("paths")
    if not isinstance(paths, dict) or not paths:
        raise DocumentError("There are no paths, so there is nothing to call.", place="paths")


def is_version_3_0(document: Mapping[str, Any]) -> bool:
    return str(document.get("openapi")).startswith("3.0")


def resolve_reference(document: Mapping[str, Any], part: Any) -> Any:
    """Return `part`, or what its `$ref` leads to, perhaps through others; None if nowhere."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(part, dict) or not isinstance(part.get("$ref"), str):
            return part
        part = at_pointer(document, part["$ref"])
    return None


def at_pointer(document: Mapping[str, Any], reference: str) -> Any:
    """Return what lies at `#/a/b~1c` (RFC 6901, section 6); None if nothing in this document."""
    if not reference.startswith("#/"):
        return document if reference == "#" else None
    part: Any = document
    for step in unquote(reference[2:]).split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict):
            part = part.get(step)
        elif isinstance(part, list) and re.fullmatch(r"[0-9]{1,6}", step):
            part = part[int(step)] if int(step) < len(part) else None
        else:
            return None
    return part
