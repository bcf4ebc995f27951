"""Find where an operation's requests go: OpenAPI's `servers`, or the address its owner gave.

The first entry of the nearest list counts (operation, path, document), with variables at their
defaults; a relative address belongs to the document's own server
(https://spec.openapis.org/oas/v3.1.0#server-object). Pure: the guarded client decides whether the
address may be called.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from tools.openapi.document import DocumentError

_VARIABLE = re.compile(r"\{([^{}]{1,100})\}")
_DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


def server_of(holders: Mapping[str, Mapping[str, Any]], *, override: str, document_url: str) -> str:
    """Return the address without a slash at its end. Raises DocumentError.

    `holders` are what may list servers, by their place in the document, nearest first;
    `document_url` is empty for a pasted document.
    """
    if override:
        return validate_server(override, place="options.server")
    for place, holder in holders.items():
        servers = holder.get("servers")
        if isinstance(servers, list) and servers:
            where = f"{place}.servers[0]" if place else "servers[0]"
            return validate_server(_address(servers[0], where, document_url), place=f"{where}.url")
    if not document_url:
        raise DocumentError(
            "The document names no server. Enter the one to call.", place="options.server"
        )
    return validate_server(urljoin(document_url, "/"), place="servers")


def validate_server(url: str, *, place: str) -> str:
    """Return the address without a slash at its end. Raises DocumentError unless it is plain."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme.lower() not in _DEFAULT_PORTS or not parts.netloc or "\\" in url:
        raise DocumentError(f"{url[:200]!r} is not an http or https address.", place=place)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise DocumentError("It must not contain a user, query or fragment.", place=place)
    return url.rstrip("/")


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port, for which a credential is meant.

    Raises ValueError for a bad port.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return (
        scheme,
        (parts.hostname or "").removesuffix("."),
        parts.port or _DEFAULT_PORTS.get(scheme),
    )


def _address(server: Any, place: str, document_url: str) -> str:
    template = server.get("url") if isinstance(server, dict) else None
    if not isinstance(template, str):
        raise DocumentError("It must be text.", place=f"{place}.url")
    variables = server.get("variables")
    defaults = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        variable = defaults.get(match[1])
        value = variable.get("default") if isinstance(variable, dict) else None
        if not isinstance(value, str | int):
            raise DocumentError("It has no default.", place=f"{place}.variables.{match[1]}")
        return str(value)

    url = _VARIABLE.sub(default, template)
    try:
        whole = urljoin(document_url, url)
        is_relative = not urlsplit(whole).netloc
    except ValueError:
        return url  # refused by whoever checks it
    if is_relative and not document_url:
        raise DocumentError(
            f"The document's server is {url[:200]!r}, which is relative to the document's own "
            "address, and the document was pasted. Enter the server to call.",
            place="options.server",
        )
    return whole
