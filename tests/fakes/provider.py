"""A fake OpenAI-compatible provider: a real HTTP server, deterministic, with faults to order.

It is one raw ASGI application, so that it costs far less than whatever stands in front of it.
Run it with `python -m tests.fakes.provider --port 0 --ready-file PATH` (PATH then holds its base
URL) or use the fixture in `tests.fixtures.provider`. It keeps no secrets and checks no keys.

    GET  /v1/models              the names in tests.fakes.behaviours; Anthropic's with its header
    POST /v1/chat/completions    stream or not; usage; tools, functions, chatglm3; JSON schema
    POST /v1/messages            Anthropic's API (tests.fakes.anthropic), strict
    POST /v1/responses           OpenAI's newer API (tests.fakes.responses), strict
    POST /v1/embeddings          unit vectors, float or base64, `dimensions` honoured
    POST /v1/audio/speech        bytes that begin as an MP3 does, then the text
    POST /v1/audio/transcriptions  the text behind those bytes
    GET  /stats   POST /stats    counters since the start / the same, then reset
    GET  /requests               the last 50 bodies, oldest first; ?contains=TEXT picks some
    GET  /health

Faults are chosen by the model's name (`tests.fakes.behaviours`), habits of real servers likewise
(`tests.habits`). Defaults by environment:
FAKE_TOKENS (64 tokens in an answer), FAKE_TTFT_MS, FAKE_ITL_MS (0; pauses before the first and
between tokens, on an absolute schedule), FAKE_DIMS (1536), FAKE_EMBED_MS (0), FAKE_EMBED (hash
or words). The last "[[fake key=value ...]]" anywhere in the body wins over both:

    tokens=N ttft=MS itl=MS   as above
    stamp=1     every token is its own send time: the text of the first is
                "#<arrival_us>;@<sent_us>;", of the others "@<sent_us>;" (CLOCK_MONOTONIC)
    call=NAME   answer with a call of tool NAME (unless a tool's result came since the last
                user message, or fewer than rounds=N did); args=BASE64URL(JSON) or filled from
                its schema; times=N of them in one reply
    say=BASE64URL(TEXT)   answer with this text;  rich=N  with N KB of Markdown of all kinds
    status=N    answer with that HTTP error;  drop=N  cut the connection after N tokens
A forced tool_choice or a response_format is answered with JSON that fits the schema.
"""

import argparse
import asyncio
import base64
import contextlib
import os
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
import uvicorn

from tests.fakes import answers, anthropic, habits, responses
from tests.fakes.behaviours import BEHAVIOURS, Behaviour, behaviour_of
from tests.fakes.chat import HANG_SECONDS, ChatAnswer, CutError
from tests.habits.habit import Exchange, Played
from tests.habits.table import HABITS

Json = dict[str, Any]
Receive = Callable[[], Awaitable[Json]]
Send = Callable[[Json], Awaitable[None]]

DIMENSIONS = int(os.environ.get("FAKE_DIMS", "1536"))
EMBED_MS = float(os.environ.get("FAKE_EMBED_MS", "0"))
EMBED_MODE = os.environ.get("FAKE_EMBED", "hash")
KEPT_REQUESTS = 50
VENDORS: dict[str, Any] = {"messages": anthropic, "responses": responses}
COUNTERS = (
    *("chat", "chat_stream", "tokens", "embed_requests", "embed_texts", "models", "other"),
    *("aborted", "active", "peak_active", "body_bytes", "max_messages"),
)


class FakeProvider:
    """The ASGI application and its counters."""

    def __init__(self) -> None:
        self.stats = dict.fromkeys(COUNTERS, 0)
        self.requests: deque[bytes] = deque(maxlen=KEPT_REQUESTS)
        self.struck: set[bytes] = set()
        self.serial = 0
        self.met: dict[bytes, int] = {}

    async def __call__(self, scope: Json, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        method, path = scope["method"], scope["path"].rstrip("/")
        vendor = VENDORS.get(path.rpartition("/")[2]) if method == "POST" else None
        if vendor is not None:
            await self._answer_as(vendor, scope, receive, send)
        elif method == "POST" and path.endswith("/chat/completions"):
            await self._chat(receive, send)
        elif method == "POST" and path.endswith("/embeddings"):
            await self._embeddings(receive, send)
        elif method == "POST" and path.endswith("/audio/speech"):
            await self._speech(receive, send)
        elif method == "POST" and path.endswith("/audio/transcriptions"):
            await self._transcription(receive, send)
        elif path.endswith("/models"):
            self.stats["models"] += 1
            await send_json(send, self._models(dict(scope["headers"])))
        elif path == "/stats":
            await send_json(send, self.stats)
            if method == "POST":
                self.stats |= dict.fromkeys(set(COUNTERS) - {"active"}, 0)
        elif path == "/requests":
            wanted = parse_qs(scope["query_string"]).get(b"contains", [b""])[0]
            bodies = [body for body in self.requests if wanted in body]
            await send_json(send, b"[" + b",".join(bodies) + b"]")
        elif path == "/health":
            await send_json(send, {"ok": True})
        else:
            self.stats["other"] += 1
            await send_json(send, {"error": {"message": f"no {method} {path} here"}}, 404)

    def _models(self, headers: dict[bytes, bytes]) -> Json:
        if b"x-api-key" in headers:
            return anthropic.models()
        names = [*BEHAVIOURS, *HABITS, "fake-embedding"]
        cards = [{"id": name, "object": "model", "owned_by": "fake"} for name in names]
        return {"object": "list", "data": cards}

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _chat(self, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        self.serial += 1
        answer = ChatAnswer(body, self.serial)
        self._count(answer)
        if answer.strikes_once:
            self._strike_once(answer)
        behaviour = answer.behaviour
        if "status" in answer.mark:
            behaviour = replace(behaviour, status=int(answer.mark["status"]))
        if behaviour.status is not None:
            error = {"type": "fake", "code": None} | behaviour.error
            await send_json(send, {"error": error}, behaviour.status, behaviour.headers)
        elif (habit := HABITS.get(answer.model)) and habit.play:
            await self._play(habit.play, answer, send)
        elif behaviour.refused_field in answer.request:
            await send_json(send, {"error": refusal(str(behaviour.refused_field))}, 400)
        elif said := habits.refused(behaviour.habit, answer.messages):
            await send_json(send, {"error": {"message": said, "code": None}}, 400)
        elif answer.request.get("stream") and not behaviour.ignores_stream:
            await self._stream(answer, receive, send)
        else:
            await asyncio.sleep(
                answer.pace.first_seconds + answer.pace.gap_seconds * (answer.pace.tokens - 1)
            )
            self.stats["tokens"] += answer.pace.tokens
            await send_json(send, answer.whole())

    async def _play(
        self, play: Callable[[Exchange], Played], answer: ChatAnswer, send: Send
    ) -> None:
        """Answer as a real server with this habit; `serial` counts requests of one conversation."""
        conversation = orjson.dumps([answer.model, answer.messages])
        serial = self.met[conversation] = self.met.get(conversation, 0) + 1
        played = play(Exchange(answer.request, serial))
        head = [(b"content-type", played.content_type), *played.headers]
        await send({"type": "http.response.start", "status": played.status, "headers": head})
        for piece in played.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if played.is_cut:
            raise CutError("asked to cut")
        await send({"type": "http.response.body", "body": b""})

    def _count(self, answer: ChatAnswer) -> None:
        self.requests.append(answer.body)
        self.stats["chat"] += 1
        self.stats["body_bytes"] += len(answer.body)
        self.stats["max_messages"] = max(self.stats["max_messages"], len(answer.messages))

    def _strike_once(self, answer: ChatAnswer) -> None:
        conversation = orjson.dumps([answer.model, answer.messages])
        if conversation in self.struck:
            self.struck.discard(conversation)
            answer.behaviour = Behaviour("answers well")
        else:
            self.struck.add(conversation)

    async def _stream(self, answer: ChatAnswer, receive: Receive, send: Send) -> None:
        self.stats["chat_stream"] += 1
        self.stats["active"] += 1
        self.stats["peak_active"] = max(self.stats["peak_active"], self.stats["active"])
        sender = asyncio.create_task(self._send_stream(answer, send))
        watcher = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait({sender, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not sender.done():
                self.stats["aborted"] += 1
                sender.cancel()
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
        finally:
            self.stats["active"] -= 1

    async def _send_stream(self, answer: ChatAnswer, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for tokens, chunk in answer.stream():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self.stats["tokens"] += tokens
        await send({"type": "http.response.body", "body": b""})

    async def _answer_as(self, vendor: Any, scope: Json, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        self.requests.append(body)
        try:
            whole, stream = vendor.answer(dict(scope["headers"]), body)
        except vendor.Refused as error:
            await send_json(send, error.body, error.status, ((b"retry-after", b"1.5"),))
            return
        if stream is None:
            await send_json(send, whole)
            return
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for start in range(0, len(stream), 700):  # cut anywhere, as networks do
            piece = stream[start : start + 700]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _embeddings(self, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        self.requests.append(body)
        request = orjson.loads(body)
        behaviour, _ = behaviour_of(str(request.get("model")))
        if behaviour.status is not None:
            await send_json(send, {"error": behaviour.error}, behaviour.status, behaviour.headers)
            return
        if behaviour.refused_field in request:
            await send_json(send, {"error": refusal(str(behaviour.refused_field))}, 400)
            return
        texts = request.get("input", "")
        if isinstance(texts, str) or (texts and isinstance(texts[0], int)):
            texts = [texts]
        self.stats["embed_requests"] += 1
        self.stats["embed_texts"] += len(texts)
        await asyncio.sleep(HANG_SECONDS if behaviour.hang_after == 0 else EMBED_MS / 1e3)
        wanted = int(request.get("dimensions") or DIMENSIONS)
        dimensions = min(wanted, answers.MAX_DIMENSIONS)
        vectors = [answers.vector(text, dimensions, EMBED_MODE) for text in texts]
        if behaviour.raw_after == 0:
            vectors = vectors[1:]  # one too few
        is_base64 = request.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": i,
                "embedding": base64.b64encode(v.tobytes()).decode() if is_base64 else v,
            }
            for i, v in enumerate(vectors)
        ]
        used = max(1, len(body) // 4)
        usage = {"prompt_tokens": used, "total_tokens": used}
        value = {"object": "list", "data": data, "model": request.get("model"), "usage": usage}
        await send_json(send, orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))

    async def _speech(self, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        self.requests.append(body)
        request = orjson.loads(body)
        behaviour, _ = behaviour_of(str(request.get("model")))
        if behaviour.status is not None:
            await send_json(send, {"error": behaviour.error}, behaviour.status, behaviour.headers)
            return
        await asyncio.sleep(HANG_SECONDS if behaviour.hang_after == 0 else 0)
        headers = [(b"content-type", b"audio/mpeg")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        spoken = b"ID3" + request["input"].encode()
        await send({"type": "http.response.body", "body": spoken})

    async def _transcription(self, receive: Receive, send: Send) -> None:
        """Find in a form the model, and the text that `_speech` wrote into the sound."""
        body = await read_body(receive)
        boundary = body.partition(b"\r\n")[0]
        parts = [part.partition(b"\r\n\r\n") for part in body.split(boundary)[1:-1]]
        fields = {head: value.removesuffix(b"\r\n") for head, _, value in parts}
        named = {
            key: v
            for head, v in fields.items()
            for key in (b"model", b"file")
            if b'name="%s"' % key in head
        }
        behaviour, _ = behaviour_of(named[b"model"].decode())
        if behaviour.status is not None:
            await send_json(send, {"error": behaviour.error}, behaviour.status, behaviour.headers)
            return
        await asyncio.sleep(HANG_SECONDS if behaviour.hang_after == 0 else 0)
        text = named[b"file"].removeprefix(b"ID3").lstrip(b"\0").decode()
        await send_json(send, {"text": text})


def refusal(name: str) -> Json:
    hint = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
    return {
        "message": f"Unsupported parameter: '{name}' is not supported with this model.{hint}",
        "type": "invalid_request_error",
        "param": name,
        "code": "unsupported_parameter",
    }


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(parts)


async def send_json(
    send: Send,
    value: Json | bytes,
    status: int = 200,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    body = value if isinstance(value, bytes) else orjson.dumps(value)
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*head, *headers]})
    await send({"type": "http.response.body", "body": body})


class ReadyServer(uvicorn.Server):
    """A server that says where it listens, in a file written at once."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self.ready_file = ready_file

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.ready_file is not None and self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            draft = self.ready_file.with_suffix(".tmp")
            draft.write_text(f"http://{self.config.host}:{port}/v1")
            draft.replace(self.ready_file)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9100, help="0: a free one")
    parser.add_argument("--ready-file", type=Path, help="gets the base URL once it listens")
    options = parser.parse_args()
    config = uvicorn.Config(
        FakeProvider(),
        host=options.host,
        port=options.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="critical",  # a cut on order would print a trace
        timeout_keep_alive=300,
        timeout_graceful_shutdown=1,
    )
    ReadyServer(config, options.ready_file).run()


if __name__ == "__main__":
    main()
