"""Check the options of an OpenAPI tool (`tools.openapi.source`) before they are stored."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from amber.lib.egress import UnsafeAddress, installation_policy
from amber.lib.errors import Invalid
from tools.openapi.document import MAX_DOCUMENT_BYTES, DocumentError
from tools.openapi.functions import MAX_FUNCTIONS
from tools.openapi.server import validate_server
from tools.outgoing.auth import ALL_KINDS, validate_auth

MAX_NAME_CHARS: Final = 500


def validate_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options to store. Raises Invalid naming every option that is wrong."""
    fields: dict[str, list[str]] = {}
    checked: dict[str, Any] = {}
    for name, value in options.items():
        try:
            checked[name] = _CHECKS.get(name, _refuse_option)(value)
        except Invalid as error:
            for place, texts in (error.fields or {}).items():
                fields[place] = list(texts)
        except (ValueError, DocumentError) as error:
            fields[f"options.{name}"[:200]] = [str(error)]
    if fields:
        raise Invalid(fields=fields)
    return checked


def _refuse_option(_: Any) -> Any:
    raise ValueError("There is no such option.")


def _document(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("Must be the document's text, JSON or YAML.")
    if (
        len(value) > MAX_DOCUMENT_BYTES
        or len(value.encode("utf-8", "replace")) > MAX_DOCUMENT_BYTES
    ):
        raise ValueError(f"Must be at most {MAX_DOCUMENT_BYTES // 1_000_000} MB.")
    if "\0" in value:
        raise ValueError("Must not contain NUL characters.")
    return value


def _server(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Must be an address, such as https://api.example.com/v1.")
    server = validate_server(value, place="")
    try:
        installation_policy().check_url(server)
    except UnsafeAddress as error:
        raise ValueError(error.message) from None
    return server


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")
    return value


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(_is_name(name) for name in value):
        raise ValueError("Must be a list of names.")
    if len(value) > MAX_FUNCTIONS:
        raise ValueError(f"Must have at most {MAX_FUNCTIONS} names.")
    return list(dict.fromkeys(value))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS and "\0" not in value


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "document": _document,
    "server": _server,
    "operations": _names,
    "search": _flag,
    "auth": partial(validate_auth, kinds=ALL_KINDS),
    "ask_first": _names,
}
