"""Define what a fetch returns, what it may cost and how it fails, without importing the client."""

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from amber.lib.egress.policy import CONNECT_SECONDS
from amber.lib.errors import Invalid
from amber.lib.json_text.depth import is_deeper

if TYPE_CHECKING:
    import httpx2

MAX_JSON_DEPTH: Final = 50
# They belong to the connection, or name the target anew: never the caller's to set.
OWN_HEADERS: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "proxy-authorization",
        "proxy-connection",
    }
)

_CHARSET = re.compile(r"charset=[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)
_SAFE_CODEC = re.compile(
    r"(utf-8|utf-16|utf-32|ascii|latin|iso8859|iso2022|cp\d|gb|big5|euc_|shift_jis|koi8|mac-)"
)

Reason = Literal["timeout", "unreachable", "too_large", "bad_redirect", "bad_answer"]
_MESSAGES: Final[dict[Reason, str]] = {
    "timeout": "The address did not answer in time.",
    "unreachable": "The address cannot be reached.",
    "too_large": "The answer is too large.",
    "bad_redirect": "The address redirects in a way that Amber does not follow.",
    "bad_answer": "The address did not send a usable answer.",
}


class FetchError(Invalid):
    """There is no usable answer. `reason` is all that is told."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(_MESSAGES[reason])


@dataclass(frozen=True)
class FetchLimits:
    """`max_bytes` counts the body decoded (10 MB are a long book)."""

    connect_seconds: float = CONNECT_SECONDS
    total_seconds: float = 30.0
    max_bytes: int = 10_000_000
    max_redirects: int = 3


USUAL_LIMITS: Final = FetchLimits()


@dataclass(frozen=True)
class Response:
    """An answer of any status: the caller decides what a 404 means. `url` is where it came from."""

    status: int
    headers: "httpx2.Headers"
    body: bytes
    url: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def mime_type(self) -> str:
        """The type in lower case, without parameters; empty if not given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def text(self) -> str:
        """Decode by the named charset, else UTF-8; what does not decode becomes U+FFFD."""
        charset = _known_charset(self.headers.get("content-type", ""))
        return self.body.decode(charset, errors="replace").removeprefix("\ufeff")

    def json(self) -> Any:
        """Parse the body. Raises FetchError `bad_answer` unless it is JSON, and not too deep."""
        if is_deeper(self.body, MAX_JSON_DEPTH):
            raise FetchError("bad_answer")
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise FetchError("bad_answer") from None


def _known_charset(content_type: str) -> str:
    """Return a safe codec: Python's others decompress, take quadratic time, or are no charsets."""
    named = _CHARSET.search(content_type)
    try:
        codec = codecs.lookup(named[1]).name if named else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"
    return codec if _SAFE_CODEC.match(codec) else "utf-8"
