"""Turn a function's arguments into one HTTP request, after its plan (`tools.openapi.plan`).

The model's arguments are hostile until proven otherwise: it may have read a stranger's page. So a
value that enters an address is percent-encoded whole; in a path it may be neither empty nor a dot
segment, nor contain one (a server that decodes before it routes would leave the path); in a header
it is one line without control characters. Whatever breaks this is an ArgumentsError that the model
can act on. Only what the plan names is sent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from tools.openapi.body import build_body
from tools.openapi.plan import Place, Plan, is_json
from tools.openapi.styles import as_text, header_value, path_value, query_pairs
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
