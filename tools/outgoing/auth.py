"""Send a tool's key with its requests, as `options["auth"]` says.

    {"type": "bearer"}                        Authorization: Bearer <key>; the default
    {"type": "header", "name": "X-Api-Key"}   X-Api-Key: <key>
    {"type": "basic"}                         Authorization: Basic …; the key is user:password
    {"type": "query", "name": "key"}          ?key=<key>; for OpenAPI tools alone
    {"type": "cookie", "name": "session"}     Cookie: session=<key>; for OpenAPI tools alone

Options are shown to everybody who sees the tool, so they say where the secret goes and never hold
it: the secret is the tool's key, which is stored encrypted. Headers that belong to the connection
are refused. A service with several keys has them in one, as JSON by the names of its security
schemes: {"PartnerKey": "…", "UserToken": "…"}.
"""

import base64
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson

from amber.lib.egress import OWN_HEADERS
from amber.lib.errors import Invalid

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
"""A token as in RFC 9110, section 5.6.2."""

_SENDABLE = re.compile(r"[\x21-\x7e\x80-\U0010ffff]([\t\x20-\x7e\x80-\U0010ffff]*\S)?")

_COOKIE_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,4000}")
"""RFC 6265, section 4.1.1."""

_OWN_PREFIXES: Final = ("mcp-", "content-")
_OWN_NAMES: Final = OWN_HEADERS | {"accept", "last-event-id", "idempotency-key", "user-agent"}


class CredentialError(ValueError):
    """The key cannot be sent the way it should be; the message is for its owner."""


HEADER_KINDS: Final = ("bearer", "header", "basic")
ALL_KINDS: Final = (*HEADER_KINDS, "query", "cookie")


@dataclass(frozen=True, slots=True)
class SentKey:
    """What goes out with a request: headers, and pairs that are added to its address, encoded.

    `keys` are the keys that are in them, as their owner gave them, and the passwords among them.
    """

    headers: dict[str, str] = field(default_factory=dict, repr=False)
    query: tuple[str, ...] = field(default=(), repr=False)
    keys: tuple[str, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.headers or self.query)

    def secrets(self, api_key: str) -> tuple[str, ...]:
        """Return every form of the key that could show up in an exchange, longest first."""
        values = [pair.partition("=")[2] for pair in self.query]
        found = {*secrets_in(self.headers, api_key), *values, *map(unquote, values), *self.keys}
        return tuple(sorted(filter(None, found), key=len, reverse=True))

    def add_to(self, url: str) -> str:
        """Return the address with the pairs."""
        for pair in self.query:
            url += f"{'&' if '?' in url else '?'}{pair}"
        return url


def validate_auth(auth: Any, kinds: Collection[str] = HEADER_KINDS) -> dict[str, str]:
    """Return the option as it is stored. Raises Invalid with fields under `options.auth`."""
    if not isinstance(auth, Mapping):
        raise _invalid("", 'Must be an object such as {"type": "bearer"}.')
    kind = auth.get("type")
    if kind not in kinds:
        raise _invalid(".type", f"Must be one of {', '.join(kinds)}.")
    known = {"type"} if kind in ("bearer", "basic") else {"type", "name"}
    for unknown in sorted(map(str, auth.keys() - known)):
        raise _invalid(f".{unknown}"[:100], "There is no such option. The key goes into api_key.")
    if kind in ("bearer", "basic"):
        return {"type": kind}
    if kind == "header":
        return {"type": kind, "name": _validate_header_name(auth.get("name"))}
    name = auth.get("name")
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        raise _invalid(".name", "Must be a name of letters and digits, such as api_key.")
    return {"type": str(kind), "name": name}


def send_key(auths: Iterable[Mapping[str, Any]], api_key: str) -> SentKey:
    """Return what to send for all of these, nothing without a key. Each is checked, and may have the
    `scheme` by whose name a service's several keys are told apart. Raises CredentialError.
    """
    headers: dict[str, str] = {}
    query: list[str] = []
    cookies: list[str] = []
    keys: list[str] = []
    for auth in auths:
        key = _key_of_scheme(api_key, auth.get("scheme", ""))
        keys += [key, key.partition(":")[2]] if auth.get("type") == "basic" else [key]
        match auth.get("type") if key else None:
            case None:
                pass
            case "query":
                query.append(f"{quote(auth['name'], safe='')}={quote(key, safe='')}")
            case "cookie":
                if not _COOKIE_VALUE.fullmatch(key):
                    raise CredentialError("The key contains characters a cookie cannot carry.")
                cookies.append(f"{auth['name']}={key}")
            case _:
                headers |= auth_headers(auth, key)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    return SentKey(headers, tuple(query), tuple(filter(None, keys)))


def _key_of_scheme(api_key: str, scheme: str) -> str:
    """Return the key for this scheme; one key that is no JSON object is for all."""
    if not api_key.lstrip().startswith("{"):
        return api_key
    try:
        keys = orjson.loads(api_key)
    except orjson.JSONDecodeError:
        return api_key
    key = keys.get(scheme) if isinstance(keys, dict) else None
    return key if isinstance(key, str) else ""


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
    parts |= {part.partition("=")[2] for part in headers.get("Cookie", "").split("; ")}
    return tuple(sorted(filter(None, sent | parts), key=len, reverse=True))


def _validate_header_name(name: Any) -> str:
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        raise _invalid(".name", "Must be the name of a header, such as X-Api-Key.")
    if name.lower() in _OWN_NAMES or name.lower().startswith(_OWN_PREFIXES):
        raise _invalid(".name", "This header belongs to the connection.")
    return name


def _invalid(place: str, text: str) -> Invalid:
    return Invalid(fields={f"options.auth{place}": [text]})
