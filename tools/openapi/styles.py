"""Write values into paths, queries, headers, cookies and forms, as OpenAPI's styles have it.

https://spec.openapis.org/oas/v3.1.0#style-values. Everything that enters an address is
percent-encoded, except unreserved characters. What a style cannot express (a list inside a list) is
written as JSON. Pure; `tools.openapi.request` decides what is safe.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

import orjson

from tools.openapi.plan import Place

RESERVED: Final = ":/?@!$'()*,;[]"
"""What `allowReserved` leaves as it is; `&`, `=`, `+` and `#` would change a query's meaning."""

_DELIMITERS: Final[Mapping[str, str]] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


def path_value(place: Place, value: Any) -> str:
    """Write a value into a path (simple, label or matrix); empty if the value is."""
    if place.as_json:
        return percent_encode(as_json(value))
    if place.style == "matrix":
        return "".join(f";{pair}" for pair in _pairs(place, value, between=","))
    parts = _parts(place, value, encode=percent_encode)
    dot = "." if place.style == "label" else ""
    between = "." if dot and place.explode else ","
    return dot + between.join(parts) if any(parts) else ""


def header_value(place: Place, value: Any) -> str:
    """Write a value into a header (simple); nothing is encoded."""
    return as_json(value) if place.as_json else ",".join(_parts(place, value, encode=str))


def query_pairs(place: Place, value: Any) -> list[str]:
    """Write the `name=value` pairs of a query, a form or a cookie."""
    if place.as_json:
        return [f"{percent_encode(place.name)}={percent_encode(as_json(value))}"]
    if place.style == "deepObject" and isinstance(value, dict | list):
        return [
            f"{percent_encode(name)}={_encode_reserved(place, text)}"
            for name, text in _deep(place.name, value)
        ]
    return _pairs(place, value, between=_DELIMITERS.get(place.style, ","))


def form_pairs(place: Place, value: Any) -> list[str]:
    """Write the pairs of a form: as in a query, but an object without a style is JSON."""
    if not place.style and isinstance(value, dict):
        return [f"{quote_plus(place.name)}={quote_plus(as_json(value))}"]
    return query_pairs(place, value)


def as_text(value: Any) -> str:
    """Write a value as in an address: abc, 1.5, true; lists and objects as JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def percent_encode(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _encode_reserved(place: Place, text: str) -> str:
    return quote(text, safe=RESERVED if place.allow_reserved else "", errors="replace")


def _parts(place: Place, value: Any, *, encode: Any) -> list[str]:
    """Write the items, or the keys with their values, for `simple` and `label`."""
    if isinstance(value, dict):
        joint = "=" if place.explode else ","
        return [f"{encode(key)}{joint}{encode(as_text(part))}" for key, part in value.items()]
    items = value if isinstance(value, list) else [value]
    return [encode(as_text(item)) for item in items]


def _pairs(place: Place, value: Any, *, between: str) -> list[str]:
    name = percent_encode(place.name)
    if isinstance(value, dict):
        written = [
            (percent_encode(key), _encode_reserved(place, as_text(part)))
            for key, part in value.items()
        ]
        if place.explode:
            return [f"{key}={part}" for key, part in written]
        return [f"{name}={between.join(text for pair in written for text in pair)}"]
    items = [
        _encode_reserved(place, as_text(item))
        for item in (value if isinstance(value, list) else [value])
    ]
    if place.explode:
        return [f"{name}={item}" for item in items]
    return [f"{name}={between.join(items)}"]


def _deep(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield `a[b][c]` with its value; a list inside, which OpenAPI leaves open, as `a[0]`."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _deep(f"{name}[{key}]", part)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _deep(f"{name}[{number}]", part)
    else:
        yield name, as_text(value)
