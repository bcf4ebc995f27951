"""A provider, or what answers in its place, may send anything: it is told as an error, and gets no key."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps

import pytest

from engine.provider import client
from engine.provider.client import Endpoint
from engine.provider.embedding import OpenAIEmbedder
from engine.provider.model import ModelProfile, ModelRequest, ProviderError, ReplyPart, TextChunk
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import RetryPolicy

KEY = "sk-secret"
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
REPLY = OK + b'\r\ndata: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'


def in_loop(test):
    """Run an async test in a loop of its own, which closes the clients."""

    @wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


class RawServer:
    """Answers every request with these bytes, made of its own port; keeps the requests."""

    def __init__(self, answers: list[Callable[[int], bytes]], *, is_endless: bool = False) -> None:
        self.answers = answers
        self.is_endless = is_endless
        self.requests: list[bytes] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
            writer.write(answer(self.port))
            while self.is_endless:
                writer.write(b"x" * 65_536)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    *answers: bytes | Callable[[int], bytes], is_endless: bool = False
) -> AsyncIterator[RawServer]:
    def always(answer: bytes) -> Callable[[int], bytes]:
        return lambda _port: answer

    made = [always(each) if isinstance(each, bytes) else each for each in answers]
    raw = RawServer(made, is_endless=is_endless)
    server = await asyncio.start_server(raw.answer, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()


async def ask(raw: RawServer, *, key: str = KEY, dialect: str = "tools") -> list[ReplyPart]:
    profile = ModelProfile("m", tool_dialect=dialect)
    model = OpenAIModel(profile, Endpoint(f"http://127.0.0.1:{raw.port}/v1", key))
    request = ModelRequest(messages=[{"role": "user", "content": "hi"}])
    return [part async for part in model.stream(request)]


@pytest.mark.parametrize(
    "answer",
    [
        b"hello world\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/1.1 500 \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["no HTTP", "status", "long header", "two lengths", "chunk", "reason"],
)
@in_loop
async def test_an_answer_that_is_not_http_is_malformed_and_tells_no_key(answer):
    async with serving(answer) as raw:
        with pytest.raises(ProviderError) as raised:
            await ask(raw)
    assert raised.value.code == "provider_malformed"
    assert "not HTTP" in raised.value.said
    assert raised.value.__suppress_context__  # what aiohttp raises holds the request's headers
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("charset", [b"hex", b"zlib", b"idna"])
@in_loop
async def test_a_refusal_is_read_whatever_charset_it_names(charset):
    head = b"HTTP/1.1 400 Bad\r\nContent-Length: 7\r\nContent-Type: text/plain; charset="
    async with serving(head + charset + b"\r\n\r\nToo old") as raw:
        with pytest.raises(ProviderError, match="It said: Too old"):
            await ask(raw)


@in_loop
async def test_a_refusal_without_an_end_is_not_kept(monkeypatch):
    monkeypatch.setattr(client, "MAX_REFUSAL_BYTES", 200_000)
    async with serving(b"HTTP/1.1 500 Bad\r\n\r\n", is_endless=True) as raw:
        with pytest.raises(ProviderError, match="cannot be read"):
            await ask(raw)


@in_loop
async def test_a_stream_without_an_end_is_not_read_for_ever(monkeypatch):
    """Whatever its lines are: a comment is a sign of life, and counts as nothing else."""
    monkeypatch.setattr(client, "MAX_BODY_BYTES", 200_000)
    async with serving(OK + b"\r\n" + b": ping\n\n" * 50_000) as raw:
        with pytest.raises(ProviderError) as raised:
            await ask(raw)
    assert raised.value.code == "reply_too_long"


@in_loop
async def test_vectors_without_an_end_are_not_kept(monkeypatch):
    monkeypatch.setattr(client, "MAX_BODY_BYTES", 200_000)
    once = RetryPolicy(retries=0)
    async with serving(OK + b"\r\n", is_endless=True) as raw:
        address = f"http://127.0.0.1:{raw.port}/v1"
        embedder = OpenAIEmbedder("m", 3, Endpoint(address, KEY), retry_policy=once)
        with pytest.raises(ProviderError, match="cannot be read"):
            await embedder.embed(["text"])


@pytest.mark.parametrize("dialect", ["tools", "anthropic", "responses"])
@in_loop
async def test_a_redirect_to_another_host_gets_neither_question_nor_key(dialect):
    async with serving(REPLY) as other:
        away = f"HTTP/1.1 307 Moved\r\nLocation: http://localhost:{other.port}/v1\r\n"
        async with serving(away.encode() + b"Content-Length: 0\r\n\r\n") as raw:
            with pytest.raises(ProviderError) as raised:
                await ask(raw, dialect=dialect)
    assert raised.value.code == "provider_rejected"
    assert "redirects" in raised.value.said
    assert other.requests == []


@in_loop
async def test_a_redirect_within_the_host_is_followed_with_the_key():
    def on(port: int) -> bytes:
        place = f"http://127.0.0.1:{port}/v2/chat/completions"
        head = f"HTTP/1.1 308 Moved\r\nLocation: {place}\r\nConnection: close\r\n"
        return head.encode() + b"Content-Length: 0\r\n\r\n"

    async with serving(on, REPLY) as raw:
        assert TextChunk("x") in await ask(raw)
    assert raw.requests[1].startswith(b"POST /v2/chat/completions ")
    assert f"authorization: bearer {KEY}".encode() in raw.requests[1].lower()


@in_loop
async def test_redirects_end():
    def around(_port: int) -> bytes:
        head = "HTTP/1.1 307 Moved\r\nLocation: /v1/again\r\nConnection: close\r\n"
        return head.encode() + b"Content-Length: 0\r\n\r\n"

    async with serving(around) as raw:
        with pytest.raises(ProviderError, match="refused the request"):
            await ask(raw)
    assert len(raw.requests) == 1 + client.MAX_REDIRECTS


@pytest.mark.parametrize("key", ["sk-…abcd", "sk-a\nb", "sk-a\r\nX-Evil: 1", "sk-\0"])
@in_loop
async def test_a_key_that_no_header_can_carry_is_told_as_a_wrong_key(key):
    async with serving(REPLY) as raw:
        with pytest.raises(ProviderError) as raised:
            await ask(raw, key=key)
    assert raised.value.code == "provider_auth"
    assert raw.requests == []
