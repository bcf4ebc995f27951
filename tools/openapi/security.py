"""Find out how an OpenAPI service wants its key, if the owner did not say (`tools.outgoing.auth`).

An operation's own `security` counts before the document's: an empty one wants no key, and of several
alternatives the first is taken that Amber can send in full. Where the key may go is decided by the
owner's own addresses (`tools.openapi.source`), never by a document.
https://spec.openapis.org/oas/v3.1.0#security-requirement-object
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tools.openapi.document import resolve_reference

Auth = dict[str, str]

NOT_SUPPORTED: Final = (
    "The service wants its credentials in a way that Amber does not support. Amber can send a "
    "bearer token, basic authentication, a header, a cookie or a part of the address."
)
_KEY_PLACES: Final = ("header", "query", "cookie")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")


def find_auth(document: Mapping[str, Any]) -> tuple[Auth | None, str]:
    """Return the first kind that Amber can send, or None and a warning.

    (None, "") means that the document asks for nothing.
    """
    schemes = list(_schemes(document))
    for scheme in schemes:
        if auth := _auth_of(scheme):
            return auth, ""
    return None, NOT_SUPPORTED if schemes else ""


def auth_of_operation(
    document: Mapping[str, Any], operation: Mapping[str, Any]
) -> tuple[Sequence[Auth] | None, str]:
    """Return all that one call needs, each with the name of its `scheme`; none if it needs no key.

    None means that neither operation nor document says anything that Amber can send; the text then
    says why.
    """
    required = operation.get("security", document.get("security"))
    if not isinstance(required, list):
        return None, ""
    alternatives = [each for each in required if isinstance(each, dict)]
    described = _schemes_of(document)
    for names in filter(None, alternatives):
        schemes = {name: resolve_reference(document, described.get(name)) for name in names}
        auths = [
            {**auth, "scheme": name}
            for name, scheme in schemes.items()
            if isinstance(scheme, dict) and (auth := _auth_of(scheme))
        ]
        if len(auths) == len(names):
            return auths, ""
    is_open = not required or any(not each for each in alternatives)
    return ([], "") if is_open else (None, NOT_SUPPORTED)


def _auth_of(scheme: Mapping[str, Any]) -> Auth | None:
    """Return the scheme as an option (`tools.outgoing.auth`), None if Amber cannot send it."""
    kind, name, place = scheme.get("type"), scheme.get("name"), scheme.get("in")
    if kind == "http" and str(scheme.get("scheme")).lower() in ("bearer", "basic"):
        return {"type": str(scheme["scheme"]).lower()}
    if kind in ("oauth2", "openIdConnect"):
        return {"type": "bearer"}
    if kind == "apiKey" and place in _KEY_PLACES and _is_token(name):
        return {"type": str(place), "name": str(name)}
    return None


def _schemes(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemes that the document requires, then the others."""
    described = _schemes_of(document)
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


def _schemes_of(document: Mapping[str, Any]) -> dict[str, Any]:
    components = resolve_reference(document, document.get("components"))
    described = components.get("securitySchemes") if isinstance(components, dict) else None
    return described if isinstance(described, dict) else {}


def _is_token(name: Any) -> bool:
    return isinstance(name, str) and bool(_TOKEN.fullmatch(name))
