"""Describe errors in the OpenAPI document: one schema, and one response per status.

A drf-spectacular postprocessing hook (SPECTACULAR_SETTINGS). What can go wrong follows from the
operation: a body can be invalid, a credential missing, an id in the path or in the body unknown. A
view that documents a status itself keeps its own words. Operations outside PREFIXES have other
forms of errors and are left alone. The codes come from the table in `amber/lib/errors.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from amber.lib.errors import CODES

METHODS: Final = frozenset({"get", "head", "options", "post", "put", "patch", "delete"})
UNSAFE: Final = frozenset({"post", "put", "patch", "delete"})
PREFIXES: Final = ("/api/", "/chat")

RESPONSES: Final[Mapping[int, str]] = {
    400: "Invalid",
    401: "NotAuthenticated",
    403: "Forbidden",
    404: "Missing",
    409: "Conflict",
    413: "TooLarge",
    429: "RateLimited",
    503: "Unavailable",
}

Document = dict[str, Any]
_CONTENT: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}


def document_errors(result: Document, generator: Any, request: Any, public: bool) -> Document:
    """Add errors to every operation. The hook: changes `result` in place and returns it."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _error_schema()
    components["responses"] = {
        **components.get("responses", {}),
        **{name: _response(status) for status, name in RESPONSES.items()},
    }
    for path, operations in result.get("paths", {}).items():
        for method, operation in operations.items():
            if path.startswith(PREFIXES) and method in METHODS:
                names_rows = "{" in path or _has_id(
                    operation.get("requestBody", {}), components["schemas"]
                )
                _add_errors(method, operation, names_rows=names_rows)
    return result


def _has_id(shape: Any, schemas: Document) -> bool:
    """Return whether a row's id can be somewhere in it. No shape of Amber's contains itself."""
    if isinstance(shape, list):
        return any(_has_id(each, schemas) for each in shape)
    if not isinstance(shape, dict):
        return False
    if "$ref" in shape:
        return _has_id(schemas[shape["$ref"].rpartition("/")[2]], schemas)
    return shape.get("format") == "uuid" or _has_id(list(shape.values()), schemas)


def _add_errors(method: str, operation: Document, *, names_rows: bool) -> None:
    responses = operation.setdefault("responses", {})
    for own in (said for status, said in responses.items() if status.startswith("4")):
        own.setdefault("content", _CONTENT)
    for status in _possible(method, operation, names_rows=names_rows):
        reference = {"$ref": f"#/components/responses/{RESPONSES[status]}"}
        responses.setdefault(str(status), reference)


def _possible(method: str, operation: Document, *, names_rows: bool) -> Iterator[int]:
    """Yield the statuses that this operation can fail with."""
    queried = any(parameter["in"] == "query" for parameter in operation.get("parameters", ()))
    if "requestBody" in operation:
        yield from (400, 413)
    elif queried:
        yield 400
    if any(operation.get("security", ())):
        yield from (401, 403)
    if names_rows:
        yield 404
    if method in UNSAFE:
        yield from (409, 429)
    yield 503


def _error_schema() -> Document:
    error = {
        "type": "object",
        "required": ["code", "message", "request_id"],
        "properties": {
            "code": {"type": "string", "enum": sorted(CODES)},
            "message": {"type": "string", "description": "For the person who must act on it."},
            "fields": {
                "type": "object",
                "description": "Messages by the (dotted) name of the field.",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
            "field_codes": {
                "type": "object",
                "description": "What kind of mistake each message of `fields` is, in the same order, such as "
                "`required`, `max_length` or `unique`; `invalid` where only the message says it.",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
            "retryable": {
                "type": "boolean",
                "description": "Present and true if the same request can succeed later.",
            },
            "request_id": {"type": "string", "description": "Finds the request in the log."},
            "turn_id": {"type": "string", "format": "uuid"},
        },
    }
    return {"type": "object", "required": ["error"], "properties": {"error": error}}


def _response(status: int) -> Document:
    """Return the response of a status, described by its codes."""
    codes = [(code, meaning) for code, (its, meaning) in CODES.items() if its == status]
    code, meaning = codes[0]
    example = {"error": {"code": code, "message": meaning, "request_id": "01931e6a7c1e7d6b9d54"}}
    response: Document = {
        "description": "\n".join(f"- `{code}`: {meaning}" for code, meaning in codes),
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
                "example": example,
            }
        },
    }
    if status in (429, 503):
        about = "The number of seconds to wait."
        response["headers"] = {"Retry-After": {"description": about, "schema": {"type": "integer"}}}
    return response
