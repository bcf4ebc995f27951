"""Turn a function's arguments into one HTTP request, after its plan (`tools.openapi.plan`).

The model's arguments are hostile until proven otherwise: it may have read a stranger's page. So a
value that enters an address is percent-encoded whole; in a path it may be neither empty nor a dot
segment, nor contain one (a server that decodes before it routes would leave the path); in a header
it is one line without control characters. Whatever breaks this is an ArgumentsError that the model
can act on. Only what the plan names is sent; a body is JSON, a urlencoded form, multipart or plain text.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from tools.openapi.plan import FORM, MULTIPART, Place, Plan, is_json
from tools.openapi.styles import as_json, as_text, form_pairs, header_value, path_value, query_pairs
from tools.protocol import ArgumentsError

MAX_URL_CHARS: Final = 8_000
"""The guarded client takes 8,192 characters."""

_TEMPLATE = re.compile(r"\{([^{}/]+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DOTS: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    method: str
    url: str
    headers: dict[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


def build_request(plan: Plan, arguments: Mapping[str, Any]) -> BuiltRequest:
    """Build the request. `arguments` already fit the function's schema. Raises ArgumentsError.

    Null is sent in a JSON body; anywhere else it counts as omitted.
    """
    given = {
        place: arguments[place.argument]
        for place in plan.places
        if place.argument in arguments and _is_sent(plan, place, arguments[place.argument])
    }
    query = [
        pair
        for place, value in given.items()
        if place.where == "query"
        for pair in query_pairs(place, value)
    ]
    url = plan.server + _path(plan, given) + (f"?{'&'.join(query)}" if query else "")
    if len(url) > MAX_URL_CHARS:
        raise ArgumentsError(
            f"The arguments make an address of {len(url)} characters: shorten them."
        )
    headers = _headers(given)
    content_type, body = build_body(plan, given, arguments.get(plan.body_argument))
    if body is not None:
        headers["Content-Type"] = content_type
    return BuiltRequest(plan.method, url, headers, body)


def _is_sent(plan: Plan, place: Place, value: Any) -> bool:
    return value is not None or (place.where == "body" and is_json(plan.media_type))


def _path(plan: Plan, given: Mapping[Place, Any]) -> str:
    values = {p.name: _path_value(p, value) for p, value in given.items() if p.where == "path"}
    parts = _TEMPLATE.split(plan.path)
    missing = [name for name in parts[1::2] if name not in values]
    if missing:
        raise ArgumentsError(f"{missing[0]} is part of the address and must be given.")
    written = [
        # What the document has encoded already (`%`) stays.
        values[part] if number % 2 else quote(part, safe="/:@!$&'()*+,;=~%")
        for number, part in enumerate(parts)
    ]
    path = "".join(written)
    if any(_decode_dots(segment) in _DOTS for segment in path.split("/")):
        raise ArgumentsError("The arguments would lead to another address than the function's.")
    return path


def _path_value(place: Place, value: Any) -> str:
    for text in _texts(value):
        if _DOTS & {_decode_dots(segment) for segment in re.split(r"[/\\]", text)}:
            raise ArgumentsError(f"{place.argument} must not be, or hold, the path segment . or ..")
    written = path_value(place, value)
    if not written:
        raise ArgumentsError(f"{place.argument} is part of the address and must not be empty.")
    return written


def _texts(value: Any) -> Iterator[str]:
    """Yield all text in the value, including keys."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    else:
        yield as_text(value)


def _decode_dots(segment: str) -> str:
    return re.sub("%2e", ".", segment, flags=re.IGNORECASE).strip()


def _headers(given: Mapping[Place, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for place, value in given.items():
        if place.where == "cookie":
            cookies += query_pairs(place, value)
        elif place.where == "header":
            written = header_value(place, value)
            if _CONTROL.search(written):
                raise ArgumentsError(
                    f"{place.argument} becomes a header and must be one plain line."
                )
            headers[place.name] = written.strip()
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    return headers


Fields = Sequence[tuple[Place, Any]]


def build_body(plan: Plan, given: Mapping[Place, Any], whole: Any) -> tuple[str, bytes | None]:
    """Return (Content-Type, body), or ("", None) without a body. Raises ArgumentsError.

    `given` are the arguments by their places; `whole` is the argument that is the body, if any.
    """
    fields = [(place, value) for place, value in given.items() if place.where == "body"]
    has_body = whole is not None if plan.body_argument else fields or plan.needs_body
    if not plan.media_type or not has_body:
        return "", None
    if plan.media_type in (FORM, MULTIPART):
        return _form(plan, _free_fields(plan, whole) if plan.body_argument else fields)
    if not plan.body_argument:
        whole = {place.name: value for place, value in fields}
    text = as_json(whole) if is_json(plan.media_type) else as_text(whole)
    return plan.media_type, text.encode("utf-8", "replace")


def _free_fields(plan: Plan, whole: Any) -> Fields:
    """Return the fields of an object that the document does not describe."""
    if not isinstance(whole, dict):
        raise ArgumentsError(f"{plan.body_argument} must be an object.")
    return [
        (Place(argument=name, name=name, where="body", explode=True), value)
        for name, value in whole.items()
        if value is not None
    ]


def _form(plan: Plan, fields: Fields) -> tuple[str, bytes]:
    if plan.media_type == MULTIPART:
        return _multipart(fields)
    return FORM, "&".join(pair for field in fields for pair in form_pairs(*field)).encode()


def _multipart(fields: Fields) -> tuple[str, bytes]:
    """Write a multipart form (https://www.rfc-editor.org/rfc/rfc7578); each item is a part."""
    boundary = secrets.token_hex(16)  # no argument can guess it, so none can end its part
    parts = [
        f"--{boundary}\r\n{head}\r\n\r\n{text}\r\n"
        for place, value in fields
        for head, text in _parts(place, value)
    ]
    whole = "".join(parts) + f"--{boundary}--\r\n"
    return f"{MULTIPART}; boundary={boundary}", whole.encode("utf-8", "replace")


def _parts(place: Place, value: Any) -> list[tuple[str, str]]:
    """Return (headers, content) of each part."""
    name = _part_name(place.name)
    head = f'Content-Disposition: form-data; name="{name}"'
    if place.is_file:
        head += f'; filename="{name}"\r\nContent-Type: application/octet-stream'
    items = value if isinstance(value, list) and not place.as_json else [value]
    found = []
    for item in items:
        is_object = place.as_json or isinstance(item, dict | list)
        kind = "\r\nContent-Type: application/json" if is_object and not place.is_file else ""
        found.append((head + kind, as_json(item) if is_object else as_text(item)))
    return found


def _part_name(name: str) -> str:
    """Escape a name as browsers do (https://html.spec.whatwg.org/#multipart-form-data)."""
    return re.sub(r'[\x00-\x1f\x7f"]', lambda match: f"%{ord(match[0]):02X}", name)
