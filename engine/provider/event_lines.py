"""Cut the bytes of a provider's stream into the payloads of server-sent events.

Pure. Format: https://html.spec.whatwg.org/multipage/server-sent-events.html. Servers that write it in
their own way are understood as well: what is tolerated is said where it is done.
"""

import re
from typing import Final

import orjson

from engine.provider.faults import fault

DONE: Final = b"[DONE]"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 8_000_000
"""The longest line, and the longest event. A whole answer in one event is far below."""
MAX_TRIED_BYTES: Final = 4 * MAX_LINE_BYTES
"""How many bytes of an event are parsed to see whether it has ended without a blank line. Each line parses
the whole event again: at most 0.2 s of CPU. A longer event must end with its blank line."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_PING: Final = b"ping"
_ERROR: Final = b"error"


class EventLines:
    """Cuts bytes into the data of events, one payload for each event.

    An event whose JSON is on one line counts at once, whether or not a blank line follows, since some
    servers forget it. Only what is no whole JSON by itself is joined with the lines after it. Events
    named `ping` are nothing; those named `error`, and lines of a field `error` (llama.cpp), are errors.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._tried_bytes = 0
        self._name = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads completed by these bytes, in order. Raises ProviderError."""
        text = self._rest + data
        if b"\r" in text:
            half = b"\r" if text.endswith(b"\r") else b""  # its line feed may be yet to come
            lines = _LINE_END.split(text.removesuffix(half))
            self._rest = lines.pop() + half
        else:
            lines = text.split(b"\n")
            self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise fault("provider_malformed")
        payloads: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                payload = line[5:].strip()
                # Cheaper than to parse it. A brace in a text only takes the slower way.
                if self._parts or self._name or payload.count(b"{") != payload.count(b"}"):
                    self._add_part(payload, payloads)
                else:
                    payloads.append(payload)
            elif line:
                self._add_other(line, payloads)
            elif self._parts or self._name:
                self._end_event(payloads)
        return payloads

    def end(self) -> list[bytes]:
        """Return the payload of an event that was not ended."""
        return self.feed(b"\n\n")

    def _add_part(self, payload: bytes, payloads: list[bytes]) -> None:
        """Add a line of data that may not be all of its event."""
        if self._parts and self._is_whole():
            self._end_event(payloads)  # the blank line was forgotten
        self._parts.append(payload)
        self._parts_bytes += len(payload) + 1  # with its line end
        if self._parts_bytes > MAX_LINE_BYTES:
            raise fault("provider_malformed")

    def _is_whole(self) -> bool:
        self._tried_bytes += self._parts_bytes
        return self._tried_bytes <= MAX_TRIED_BYTES and _is_json(b"\n".join(self._parts))

    def _add_other(self, line: bytes, payloads: list[bytes]) -> None:
        field, _, value = line.removeprefix(BYTE_ORDER_MARK).partition(b":")
        value = value.strip()
        if field == b"event":
            self._name = value if value in (_PING, _ERROR) else b""
        elif field == b"data":  # behind a byte order mark
            self._add_part(value, payloads)
        elif field == _ERROR and value:
            payloads.append(_error_of(value))

    def _end_event(self, payloads: list[bytes]) -> None:
        payload, name = b"\n".join(self._parts), self._name
        self._parts, self._name = [], b""
        self._parts_bytes = self._tried_bytes = 0
        if payload and name != _PING:
            payloads.append(_error_of(payload) if name == _ERROR else payload)


def _error_of(payload: bytes) -> bytes:
    """Return the payload as an error, which it says itself or is by its event's name."""
    try:
        said = orjson.loads(payload)
    except orjson.JSONDecodeError:
        said = payload.decode("utf-8", "replace")
    if isinstance(said, dict) and said.get("error"):
        return payload
    return orjson.dumps({"error": said or "unknown"})


def _is_json(payload: bytes) -> bool:
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError:
        return False
    return True
