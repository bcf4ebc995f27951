#!/usr/bin/env python3
"""A tool service in one file, standard library only: Amber's discovery protocol (docs/tools.md).

    AMBER_TOOL_KEY=a-key-of-your-own python3 examples/tools/service.py --port 9000

`GET /` says what there is, `POST /call` calls it. Both want `Authorization: Bearer <the key>`. A
call that comes twice with one Idempotency-Key is carried out once. How to attach it: README.md
beside this.

The weather is made up (the same for the same city and day) and the speech is Morse code, so that
nothing here needs a network. Refuses to start without a key.
"""

import argparse
import base64
import hashlib
import hmac
import io
import json
import math
import os
import struct
import sys
import threading
import wave
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]

MAX_BODY_BYTES = 1_000_000
MAX_REMEMBERED = 1_000


class RefusedError(Exception):
    """A refused call. `args` are the status and a sentence that the model reads."""


# -- The functions -----------------------------------------------------------------------------


def cal_plus(arguments: Body) -> Body:
    return {"content": str(arguments["a"] + arguments["b"])}


def cal_minus(arguments: Body) -> Body:
    return {"content": str(arguments["a"] - arguments["b"])}


def current_weather(arguments: Body) -> Body:
    """Return the weather of several cities at once; any text is a city."""
    today = datetime.now(UTC).date()
    lines = [f"{city}: {_made_up_weather(f'{city} {today}')}" for city in arguments["cities"]]
    return {"content": "\n".join([*lines, "(Made up: this is an example.)"])}


def _made_up_weather(seed: str) -> str:
    digest = hashlib.sha256(seed.casefold().encode()).digest()
    sky = ("clear", "cloudy", "rain", "snow", "fog")[digest[0] % 5]
    return f"{sky}, {digest[1] % 35 - 5} °C, wind {digest[2] % 60} km/h"


def text_to_speech(arguments: Body) -> Body:
    text = str(arguments["text"])
    audio = {
        "name": "speech.wav",
        "mime_type": "audio/wav",
        "base64": base64.b64encode(_morse_wav(text)).decode(),
    }
    return {"content": f"Here are {len(text)} characters as Morse code.", "files": [audio]}


NUMBER = {"type": "number"}
TWO_NUMBERS = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
CITIES = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10}
TEXT = {"type": "string", "minLength": 1, "maxLength": 200, "description": "Latin letters, digits"}

# The last part of each: may a call that was cut off be made again?
FUNCTIONS: dict[str, tuple[Callable[[Body], Body], str, Body, bool]] = {
    "cal_plus": (cal_plus, "Adds: a + b.", TWO_NUMBERS, True),
    "cal_minus": (cal_minus, "Subtracts: a - b.", TWO_NUMBERS, True),
    "current_weather": (
        current_weather,
        "Says how the weather is now, in one or more cities.",
        {"type": "object", "properties": {"cities": CITIES}, "required": ["cities"]},
        True,
    ),
    "text_to_speech": (
        text_to_speech,
        "Turns a short text into sound, as Morse code. The user gets the audio file.",
        {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        False,
    ),
}


def manifest(url: str) -> Body:
    return {
        "name": "Example tools",
        "description": "Adds, subtracts, makes up the weather and speaks Morse.",
        "callback_url": f"{url}/call",
        "functions": [
            {
                "name": name,
                "description": description,
                "parameters": parameters,
                "idempotent": idempotent,
                "read_only": True,  # none of them changes anything
            }
            for name, (_, description, parameters, idempotent) in FUNCTIONS.items()
        ],
    }


def call(body: Body) -> Body:
    """Call a function. Raises RefusedError: Amber has checked the arguments, others need not."""
    function = FUNCTIONS.get(str(body.get("function")))
    if function is None:
        raise RefusedError(404, f"There is no function {body.get('function')!r}.")
    try:
        return function[0](body["arguments"])
    except (KeyError, TypeError):
        raise RefusedError(422, "The arguments do not fit the function's schema.") from None


# -- Calls that come twice -----------------------------------------------------------------------


class NoteStore:
    """Answers by Idempotency-Key; the oldest are forgotten. A second request waits for the
    first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Body] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, key: str, work: Callable[[], Body]) -> Body:
        """Return the first result of this key. Without a key, or if `work` raises, none is kept."""
        if not key:
            return work()
        with self._lock:
            if key not in self._answers:
                self._answers[key] = work()
                if len(self._answers) > MAX_REMEMBERED:
                    self._answers.popitem(last=False)
            return self._answers[key]


# -- HTTP ----------------------------------------------------------------------------------------


class Service(ThreadingHTTPServer):
    def __init__(self, port: int, key: str, url: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.key = key
        self.url = url or f"http://127.0.0.1:{self.server_port}"
        self.memory = NoteStore()


class Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        self._answer(lambda: manifest(self.server.url))

    def do_POST(self) -> None:
        body = self._body()
        key = self.headers.get("Idempotency-Key", "")
        self._answer(lambda: self.server.memory.once(key, lambda: call(body)))

    def _body(self) -> Body:
        """Return the JSON body; empty if it is no JSON object, which names no function."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return {}
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return {}
        return body if isinstance(body, dict) else {}

    def _answer(self, work: Callable[[], Body]) -> None:
        try:
            self._check_key()
            self._send(200, work())
        except RefusedError as refused:
            status, reason = refused.args
            self._send(status, {"error": reason})

    def _check_key(self) -> None:
        """Compare the key in constant time. Raises RefusedError."""
        given = self.headers.get("Authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {self.server.key}".encode()):
            raise RefusedError(401, "The key is wrong.")

    def _send(self, status: int, body: Body) -> None:
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)


# -- Sound ---------------------------------------------------------------------------------------

SAMPLE_RATE = 8_000
DOT_SECONDS = 0.06
SIGNS = """
.- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.--
--.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----.
"""
MORSE = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", SIGNS.split(), strict=True))


def _morse_wav(text: str) -> bytes:
    """Return mono sound of 16 bits. Characters without a Morse sign are pauses (ITU-R M.1677)."""
    units = b"".join(_beep(length) if is_on else _silence(length) for is_on, length in _units(text))
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(units)
    return sound.getvalue()


def _units(text: str) -> Iterator[tuple[bool, int]]:
    """Yield whether there is sound, and for how many dots."""
    for letter in text.upper():
        for sign in MORSE.get(letter, ""):
            yield True, 3 if sign == "-" else 1
            yield False, 1
        yield False, 2 if letter in MORSE else 4


def _beep(dots: int) -> bytes:
    samples = range(int(dots * DOT_SECONDS * SAMPLE_RATE))
    tone = (int(9_000 * math.sin(2 * math.pi * 600 * n / SAMPLE_RATE)) for n in samples)
    return b"".join(struct.pack("<h", sample) for sample in tone)


def _silence(dots: int) -> bytes:
    return bytes(2 * int(dots * DOT_SECONDS * SAMPLE_RATE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=9_000, help="0: any free one")
    parser.add_argument(
        "--url", default="", help="the address at which Amber reaches this service, if another"
    )
    given = parser.parse_args()
    key = os.environ.get("AMBER_TOOL_KEY", "")
    if not key:
        parser.error("Set AMBER_TOOL_KEY to a key of your own, and give Amber the same one.")
    with Service(given.port, key, given.url.rstrip("/")) as service:
        sys.stdout.write(f"The example tools are at {service.url}\n")
        sys.stdout.flush()
        try:
            service.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write("Good bye.\n")


if __name__ == "__main__":
    main()
