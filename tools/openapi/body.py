"""Build the body of a request after its plan: JSON, a urlencoded form, multipart or plain text."""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from tools.openapi.plan import FORM, MULTIPART, Place, Plan, is_json
from tools.openapi.styles import as_json, as_text, form_pairs
from tools.protocol import ArgumentsError

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
