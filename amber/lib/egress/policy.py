"""Decide where Amber may connect for a tenant: the rules about URLs, ports and addresses.

A URL is read once, strictly, into a form in which nothing is left to interpretation: lower-case
ASCII name or canonical IP address, explicit port, no user, no fragment. What other programs would
repair (backslashes, tabs, `0x7f.1`, `%31`, missing slashes) is refused. A name is judged by all of
its addresses, whenever a connection is made (`addresses`).

The operator's AMBER_TOOL_ALLOWED_HOSTS opens `host` (every port) or `host:port`, private addresses
included; an IPv6 address stands in brackets.

Refusals all look the same, so that nobody can map a private network by asking. httpx2 (3 MB) is
imported with the first URL.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

import idna

from amber.lib.egress.addresses import is_allowable, is_public, plain_address
from amber.lib.errors import Invalid

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 10.0
MAX_URL_CHARS: Final = 8_192
MAX_NAME_CHARS: Final = 253
# Connecting tries each in turn; a name with more is a balancer, or a trap.
MAX_ADDRESSES: Final = 8
WEB_PORTS: Final = frozenset({80, 443})
# Names that only mean something inside a network (RFC 6761, 6762, 8375, ICANN's .internal).
PRIVATE_SUFFIXES: Final = (
    ".localhost",
    ".local",
    ".localdomain",
    ".internal",
    ".intranet",
    ".lan",
    ".home.arpa",
    ".onion",
)

_URL = re.compile(r"(https?)://([^/?#]+)([/?][^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@%]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_UNREADABLE = re.compile("[\0-\x20\x7f-\xa0\\\\\ud800-\udfff\u2028\u2029]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


class UnsafeAddress(Invalid):
    """Amber may not call this address. The error does not tell whether anything is there."""

    default_code = "unsafe_address"

    def __init__(self) -> None:
        super().__init__("The address does not exist, or is not one that Amber may call.")


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """Return all addresses of the name, in the system's order. Raises OSError, UnicodeError.

    Runs on threads of its own: a name server that does not answer blocks one for half a minute.
    """
    found = await asyncio.get_running_loop().run_in_executor(
        _resolver_threads(os.getpid()),
        lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM),
    )
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True)
class EgressPolicy:
    """The rules of one installation. Tests replace `resolve` and `ssl_context` (None: the
    system's trust store)."""

    allowed: frozenset[tuple[str, int | None]] = frozenset()
    ports: frozenset[int] = WEB_PORTS
    resolve: Resolver = resolve_name
    ssl_context: ssl.SSLContext | None = None

    @classmethod
    def allowing(cls, hosts: Iterable[str], *, resolve: Resolver = resolve_name) -> "EgressPolicy":
        """Read entries of AMBER_TOOL_ALLOWED_HOSTS. Raises ValueError naming a wrong one."""
        return cls(allowed=frozenset(map(_parsed_entry, hosts)), resolve=resolve)

    def check_url(self, url: str) -> "httpx2.URL":
        """Return the URL in its canonical form. Resolves nothing. Raises UnsafeAddress."""
        import httpx2

        scheme, host, port, target = _read(url)
        if not self._allows(host, port):
            if port not in self.ports:
                raise UnsafeAddress()
            address = plain_address(host)
            if address is not None and not is_public(address):
                raise UnsafeAddress()
            if address is None and ("." not in host or f".{host}".endswith(PRIVATE_SUFFIXES)):
                raise UnsafeAddress()
        shown = f"[{host}]" if ":" in host else host
        try:
            parsed = httpx2.URL(f"{scheme}://{shown}:{port}{target}")
        except httpx2.InvalidURL:
            raise UnsafeAddress() from None
        # httpx2 connects where it reads that the URL leads: it must read what was judged.
        if parsed.raw_host.decode() != host or parsed.userinfo:
            raise UnsafeAddress()
        return parsed

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, in order; one look-up. `host` is of a checked URL.

        Raises UnsafeAddress unless every one of them is permitted, OSError for a name server
        that fails.
        """
        allowed = self._allows(host, port)
        literal = plain_address(host)
        if literal is not None:
            if not allowed and not is_public(literal):
                raise UnsafeAddress()
            return [str(literal)]
        found = await self._resolve_host(host, port)
        permitted = is_allowable if allowed else is_public
        addresses = [plain_address(text) for text in found]
        if not addresses or not all(each is not None and permitted(each) for each in addresses):
            raise UnsafeAddress()
        return list(dict.fromkeys(map(str, addresses)))[:MAX_ADDRESSES]

    async def _resolve_host(self, host: str, port: int) -> Sequence[str]:
        try:
            return await self.resolve(host, port)
        except socket.gaierror as exc:
            # The name server is in trouble, which says nothing of the name.
            if exc.errno == socket.EAI_AGAIN:
                raise
            raise UnsafeAddress() from None
        except UnicodeError:
            raise UnsafeAddress() from None

    def _allows(self, host: str, port: int) -> bool:
        return (host, None) in self.allowed or (host, port) in self.allowed


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port in canonical form: what a credential is meant for.

    Does not decide whether it may be called. Raises UnsafeAddress unless it is a web address.
    """
    scheme, host, port, _ = _read(url)
    return scheme, host, port


def _read(url: str) -> tuple[str, str, int, str]:
    """Return (scheme, host, port, path with query). Raises UnsafeAddress."""
    whole = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARS else None
    if whole is None or _UNREADABLE.search(url):
        raise UnsafeAddress()
    scheme, authority, target = whole[1].lower(), whole[2], whole[3] or "/"
    host_and_port = _AUTHORITY.fullmatch(authority)
    if host_and_port is None:
        raise UnsafeAddress()
    port = int(host_and_port[2] or (443 if scheme == "https" else 80))
    if not 0 < port < 65_536:
        raise UnsafeAddress()
    return scheme, _canonical_host(host_and_port[1]), port, target


def _canonical_host(text: str) -> str:
    """Return a name or an address in canonical form; a name that ends in a number must be IPv4.

    Raises UnsafeAddress.
    """
    if text.startswith("["):
        address = plain_address(text[1:-1])
        if address is None or not isinstance(address, IPv6Address):
            raise UnsafeAddress()
        return str(address)
    name = _ascii_name(text).removesuffix(".")
    labels = name.split(".")
    if len(name) > MAX_NAME_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise UnsafeAddress()
    if _NUMBER.fullmatch(labels[-1]):
        address = plain_address(name)
        if address is None:
            raise UnsafeAddress()
        return str(address)
    return name


def _ascii_name(text: str) -> str:
    """Return the name in lower case, international ones as `xn--`. Raises UnsafeAddress, also
    for digits in disguise."""
    if len(text) > MAX_NAME_CHARS + 1:
        raise UnsafeAddress()
    if text.isascii():
        return text.lower()
    try:
        name = idna.encode(text, uts46=True, std3_rules=True).decode().lower()
    except UnicodeError:
        raise UnsafeAddress() from None
    if _NUMBER.fullmatch(name.rstrip(".").rpartition(".")[2]):
        raise UnsafeAddress()
    return name


def _parsed_entry(entry: str) -> tuple[str, int | None]:
    parts = _AUTHORITY.fullmatch(entry.strip())
    try:
        if parts is None:
            raise UnsafeAddress()
        return _canonical_host(parts[1]), int(parts[2]) if parts[2] else None
    except UnsafeAddress:
        raise ValueError(f"{entry!r} is neither host nor host:port.") from None


@lru_cache(maxsize=1)
def _resolver_threads(pid: int) -> ThreadPoolExecutor:
    """Return this process's threads: they do not survive a fork."""
    return ThreadPoolExecutor(max_workers=16, thread_name_prefix="egress-resolver")
