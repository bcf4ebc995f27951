"""Find out how an OpenAPI service wants its key, if the owner did not say (`tools.outgoing.auth`).

Where the key may go is decided by the owner's own addresses (`tools.openapi.source`), never by a
document. Keys in the query or in cookies are refused, as addresses end up in logs.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.openapi.document import resolve_reference

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")


def find_auth(document: Mapping[str, Any]) -> tuple[dict[str, str] | None, str]:
    """Return the first kind that Amber can send, or None and a warning.

    (None, "") means that the document asks for nothing.
    """
    schemes = list(_schemes(document))
    for scheme in schemes:
        kind, name = scheme.get("type"), scheme.get("name")
        if kind == "http" and str(scheme.get("scheme")).lower() in ("bearer", "basic"):
            return {"type": str(scheme["scheme"]).lower()}, ""
        if kind in ("oauth2", "openIdConnect"):
            return {"type": "bearer"}, ""
        if kind == "apiKey" and scheme.get("in") == "header" and _is_token(name):
            return {"type": "header", "name": str(name)}, ""
    if not schemes:
        return None, ""
    return None, (
        "The service wants its credentials in a way that Amber does not support. Amber can send a "
        "bearer token, basic authentication or a header."
    )


def _schemes(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemes that the document requires, then the others."""
    components = resolve_reference(document, document.get("components"))
    described = components.get("securitySchemes") if isinstance(components, dict) else None
    described = described if isinstance(described, dict) else {}
    required = document.get("security")
    names = [
        name
        for each in (required if isinstance(required, list) else [])
        if isinstance(each, dict)
        for name in each
    ]
    for name in dict.fromkeys([*names, *described]):
        scheme = resolve_reference(document, described.get(name))
        if isinstance(scheme, dict):
            yield scheme


def _is_token(name: Any) -> bool:
    return isinstance(name, str) and bool(_TOKEN.fullmatch(name))
