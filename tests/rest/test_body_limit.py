"""Bodies beyond what any address takes: refused before they are taken in, in the address's own form."""

import asyncio
import json
from typing import Any

import pytest

from amber.web.body_limit import FORM_BYTES, limit_bodies

Json = dict[str, Any]
MOST_BYTES = 1_000


@pytest.fixture(autouse=True)
def _small_bodies(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = MOST_BYTES - FORM_BYTES


def answered(chunks: list[bytes], *, path: str = "/api/v1/me/", announced: str = "") -> Json:
    """What is sent for such a body by an application that reads all of it: status, body, bytes read."""
    headers = [(b"content-length", announced.encode())] if announced else []
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    sent: list[Json] = []
    read = 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal read
        more = True
        while more:
            message = await receive()
            read += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(message: Any) -> None:
        sent.append(message)

    left = list(chunks)

    async def receive() -> Json:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def ask() -> None:
        await limit_bodies(application)(scope, receive, send)

    asyncio.run(ask())
    return {"status": sent[0]["status"], "body": json.loads(sent[1]["body"]), "read": read}


def test_what_is_short_enough_goes_through():
    told = answered([b"x" * 600, b"y" * 400], announced="1000")
    assert (told["status"], told["read"]) == (200, MOST_BYTES)


def test_what_announces_itself_too_long_is_not_read_at_all():
    told = answered([b"x"], announced="1001")
    assert (told["status"], told["body"]["error"]["code"]) == (413, "too_large")
    assert "at most" in told["body"]["error"]["message"]
    assert told["read"] == 0


def test_what_comes_in_chunks_is_read_no_further_than_the_limit():
    told = answered([b"x" * 600] * 1_000)
    assert (told["status"], told["read"]) == (413, 600)


@pytest.mark.parametrize("announced", ["-1", "none", "9" * 5_000], ids=["below", "text", "long"])
def test_a_length_that_is_none_is_not_believed(announced):
    assert answered([b"x" * 600] * 2, announced=announced)["status"] == 413


def test_the_public_api_says_it_in_openais_form():
    told = answered([b"x"], path="/v1/embeddings", announced="1001")
    assert told["body"]["error"]["type"] == "invalid_request_error"
