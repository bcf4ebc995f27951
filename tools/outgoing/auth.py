"""Send a tool's key with its requests, as `options["auth"]` says.

    {"type": "bearer"}                        Authorization: Bearer <key>; the default
    {"type": "header", "name": "X-Api-Key"}   X-Api-Key: <key>
    {"type": "basic"}                         Authorization: Basic …; the key is user:password

Options are shown to everybody who sees the tool, so they say where the secret goes and never hold
it: the secret is the tool's key, which is stored encrypted. Headers that belong to the connection
are refused.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from amber.lib.egress import OWN_HEADERS
from amber.lib.errors import Invalid

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
"""A token as in RFC 9110, section 5.6.2."""

_SENDABLE = re.compile(r"[\x21-\x7e\x80-\U0010ffff]([\t\x20-\x7e\x80-\U0010ffff]*\S)?")

_OWN_PREFIXES: Final = ("mcp-", "content-")
_OWN_NAMES: Final = OWN_HEADERS | {"accept", "last-event-id", "idempotency-key", "user-agent"}


class CredentialError(ValueError):
    """The key cannot be sent the way it should be; the message is for its owner."""


def validate_auth(auth: Any) -> dict[str, str]:
    """Return the option as it is stored. Raises Invalid with fields under `options.auth`."""
    if not isinstance(auth, Mapping):
        raise _invalid("", 'Must be an object such as {"type": "bearer"}.')
    kind = auth.get("type")
    if kind not in ("bearer", "header", "basic"):
        raise _invalid(".type", "Must be bearer, header or basic.")
    known = {"type", "name"} if kind == "header" else {"type"}
    for unknown in sorted(map(str, auth.keys() - known)):
        raise _invalid(f".{unknown}"[:100], "There is no such option. The key goes into api_key.")
    if kind != "header":
        return {"type": kind}
    return {"type": kind, "name": _validate_header_name(auth.get("name"))}


def auth_headers(auth: Mapping[str, Any], api_key: str) -> dict[str, str]:
    """Return the headers to send, none without a key. `auth` is checked; empty is the default.

    Raises CredentialError.
    """
    if not api_key:
        return {}
    if not _SENDABLE.fullmatch(api_key):
        raise CredentialError("The key contains characters a header cannot carry.")
    kind = auth.get("type", "bearer")
    if kind == "header":
        return {auth["name"]: api_key}
    if kind == "basic":
        if ":" not in api_key:
            raise CredentialError("For basic authentication the key must be user:password.")
        return {"Authorization": f"Basic {base64.b64encode(api_key.encode()).decode()}"}
    return {"Authorization": f"Bearer {api_key}"}


def secrets_in(headers: Mapping[str, str], api_key: str) -> tuple[str, ...]:
    """Return every form of the key that could show up in an exchange, longest first."""
    sent = {value.rpartition(" ")[2] for value in headers.values()}
    parts = {api_key, api_key.partition(":")[2]} if "Authorization" in headers else {api_key}
    return tuple(sorted(filter(None, sent | parts), key=len, reverse=True))


def _validate_header_name(name: Any) -> str:
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        raise _invalid(".name", "Must be the name of a header, such as X-Api-Key.")
    if name.lower() in _OWN_NAMES or name.lower().startswith(_OWN_PREFIXES):
        raise _invalid(".name", "This header belongs to the connection.")
    return name


def _invalid(place: str, text: str) -> Invalid:
    return Invalid(fields={f"options.auth{place}": [text]})
