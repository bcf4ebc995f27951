"""Decide which addresses a turn may open once it has read what strangers wrote.

A stranger may have had the model put what it knows into an address, which tells it to whoever
answers there. So an address must stand as a whole where the model could not have made it: in what
the user typed or the assistant's owner wrote, among the results of a search of this turn, or, for
links of the same host, on a page that this turn has read. It is the address as it stands there that
is opened: spelling it in another way carries nothing out either. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import quote, urlsplit

from engine.trust import Exposure

_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\\^{}|]+", re.IGNORECASE)
_BARE: Final = re.compile(
    r"(?<![\w@/.:-])(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,6}[a-z]{2,24}(?::\d{1,5})?(?:[/?][^\s<>\"'`\\^{}|]*)?",
    re.IGNORECASE,
)
_ENDS: Final = ".,;:!?)]}*_~。，；：！？）】》」』、…\"'"
_MARKDOWN_END: Final = re.compile(r"\]?\)")
_KEPT: Final = "!#$%&'()*+,/:;=?@[]~-._"
_NUMBERED: Final = re.compile(r"\d+\. ")


def known_address(url: str, exposure: Exposure) -> str | None:
    """Return the address as it stands where the turn may take it from, or None."""
    wanted = _key(url)
    if wanted is None:
        return None
    for known in _known_addresses(exposure):
        if _key(known) == wanted:
            return known
    return None


def _known_addresses(exposure: Exposure) -> Iterator[str]:
    for text in (*exposure.typed, *exposure.prompts):
        yield from _addresses_in(text)
        yield from (f"https://{bare}" for bare in _spellings(_BARE.findall(text)))
    for reading in exposure.readings:
        if not reading.in_turn:
            continue
        if reading.name == "web_search":
            yield from _results_of(reading.content)
        elif reading.name == "web_browse":
            yield from _links_of(reading.content)


def _results_of(content: str) -> Iterator[str]:
    """Yield the addresses of a search's results: each stands alone on the line below its title."""
    lines = content.split("\n")
    for title, line in pairwise(lines):
        if _NUMBERED.match(title) and _ADDRESS.fullmatch(line):
            yield line


def _links_of(content: str) -> Iterator[str]:
    """Yield a page's own address, and its links to the same host."""
    lines = content.split("\n", 2)
    own = next((line for line in lines[:2] if _ADDRESS.fullmatch(line)), "")
    host = _host(own)
    if not host:
        return
    yield own
    yield from (link for link in _addresses_in(content) if _host(link) == host)


def _addresses_in(text: str) -> Iterator[str]:
    return _spellings(_ADDRESS.findall(text))


def _spellings(found: Iterable[str]) -> Iterator[str]:
    """Yield each address whole, and as it is before what may be the text around it."""
    for whole in found:
        ascii_part = re.split(r"[^\x21-\x7e]", whole, maxsplit=1)[0]
        in_markdown = _MARKDOWN_END.split(whole, maxsplit=1)[0]
        ends = {whole: None, ascii_part: None, in_markdown: None}
        yield from ends
        yield from (each.rstrip(_ENDS) for each in ends)


def _key(url: str) -> tuple[str, str, str] | None:
    """Return what makes two spellings one address: host and port, path, query; None for no address.

    The scheme may differ: both lead to the same host. Nothing inside path and query is rewritten
    but characters that no address may hold.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return None
    default = {"http": 80, "https": 443}[parts.scheme.lower()]
    user = parts.netloc.rpartition("@")[0]
    host = f"{user}@{parts.hostname}:{'' if port in (None, default) else port}"
    return host, quote(parts.path or "/", safe=_KEPT), quote(parts.query, safe=_KEPT)


def _host(url: str) -> str:
    key = _key(url)
    return key[0] if key else ""
