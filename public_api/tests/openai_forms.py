"""What /v1 says, held to the types that OpenAI publishes with its client: whole bodies, each event of a
stream, errors. Nothing that they require may be absent, and nothing stand there that they do not know,
but for the few fields in `OURS`.

    faults_of(Said("POST", "/v1/responses", 200, "application/json", body))

`CheckedTransport` hears all that a client is told. What was told is kept in the folder that SAID_FOLDER
names, so that other copies of the types can be asked as well (`tests/clients`).
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import httpx2
from openai import types
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent
from openai.types.shared import ErrorObject
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

OURS = {
    ("Annotation", "document"),
    ("ChoiceDelta", "annotations"),
    *(
        (kind, name)
        for kind in ("ChatCompletionMessage", "ChoiceDelta", "ResponseFunctionToolCall")
        for name in ("amber_sender", "amber_sealed", "reasoning_content")
    ),
    ("ChatCompletionMessage", "thinking_blocks"),
    ("ChoiceDelta", "thinking_blocks"),
    ("ChatCompletionMessageFunctionToolCall", "extra_content"),
    ("ChoiceDeltaToolCall", "extra_content"),
    ("ResponseFunctionToolCall", "extra_content"),
    ("Model", "name"),
    ("Response", "store"),  # Open Responses has it
    ("ResponseErrorEvent", "error"),
}
"""Fields that the types do not know, by the type in which they stand."""

DONE = b"data: [DONE]\n\n"


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class ModelList(_Open):
    object: Literal["list"]
    data: list[types.Model]


class Deleted(_Open):
    id: str
    object: Literal["response"]
    deleted: Literal[True]


class Failed(_Open):
    error: ErrorObject


@dataclass(frozen=True)
class Said:
    """One answer. `is_whole` is false if the client left before its end."""

    method: str
    path: str
    status: int
    content_type: str
    body: bytes
    is_whole: bool = True


WHOLE: list[tuple[str, str, Any]] = [
    ("GET", r"/v1/models", ModelList),
    ("GET", r"/v1/models/.+", types.Model),
    ("POST", r"/v1/chat/completions", ChatCompletion),
    ("POST", r"/v1/embeddings", types.CreateEmbeddingResponse),
    ("POST", r"/v1/responses", Response),
    ("GET", r"/v1/responses/[^/]+", Response),
    ("DELETE", r"/v1/responses/[^/]+", Deleted),
    ("POST", r"/v1/responses/[^/]+/cancel", Response),
    ("GET", r"/v1/responses/[^/]+/input_items", ResponseItemList),
]


def faults_of(said: Said) -> list[str]:
    """What is wrong with an answer; nothing for addresses outside /v1."""
    if not said.path.startswith("/v1/"):
        return []
    faults = [fault for form, body in told_by(said) for fault in _faults(form, body)]
    if _is_stream(said) and said.is_whole and not said.body.endswith(DONE):
        faults.append(f"A stream of {said.path} ended without [DONE].")
    return faults


def told_by(said: Said) -> Iterator[tuple[Any, Any]]:
    """The body, or each event that is whole, with its form. Events of errors, too."""
    if not _is_stream(said):
        if said.is_whole:
            yield _form_of(said), json.loads(said.body)
        return
    is_chat = said.path == "/v1/chat/completions"
    for line in said.body.decode().split("\n\n")[:-1]:
        data = line.partition("data: ")[2]
        if data and data != "[DONE]":
            event = json.loads(data)
            form = ChatCompletionChunk if is_chat else ResponseStreamEvent
            yield (Failed if is_chat and "error" in event else form), event


def keep(said: Said) -> None:
    """In a file for each process: a line for each body and event."""
    folder = os.environ.get("SAID_FOLDER")
    if not folder or not said.path.startswith("/v1/"):
        return
    with Path(folder, f"{os.getpid()}.jsonl").open("a") as kept:
        for form, body in told_by(said):
            is_event = form is ResponseStreamEvent  # many types, which have no name together
            name = "ResponseStreamEvent" if is_event else form.__name__
            kept.write(json.dumps([name, with_numbers(body)]) + "\n")


def _is_stream(said: Said) -> bool:
    return said.content_type.startswith("text/event-stream")


def _form_of(said: Said) -> Any:
    if said.status >= 400:
        return Failed
    for method, pattern, form in WHOLE:
        if said.method == method and re.fullmatch(pattern, said.path):
            return form
    raise AssertionError(f"No form is known of {said.method} {said.path}.")


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    """That of a union of many types takes longer to make than most answers take."""
    return TypeAdapter(form)


def _faults(form: Any, body: Any) -> Iterator[str]:
    body = with_numbers(body)
    if form is Failed and set(body["error"]) != {"message", "type", "param", "code"}:
        yield f"Not the four fields of an error: {body}"
    try:
        read = _adapter(form).validate_python(body, strict=True)
    except ValidationError as error:
        yield f"{error}\n{body}"
        return
    for name, field in _unknown(read):
        if (name, field) not in OURS:
            yield f"{name}.{field} is in no published type: {body}"


def with_numbers(body: Any) -> Any:
    """Vectors in base64, which OpenAI's client asks for, as numbers: the type knows these only."""
    rows = body.get("data", ())
    if not any(isinstance(row.get("embedding"), str) for row in rows):
        return body
    return {**body, "data": [{**row, "embedding": _numbers(row["embedding"])} for row in rows]}


def _numbers(embedding: str) -> list[float]:
    return [0.0] * (len(base64.b64decode(embedding, validate=True)) // 4)


def _unknown(read: Any) -> Iterator[tuple[str, str]]:
    if isinstance(read, BaseModel):
        yield from ((type(read).__name__, field) for field in read.model_extra or ())
        for name in type(read).model_fields:
            yield from _unknown(getattr(read, name))
    elif isinstance(read, list):
        for each in read:
            yield from _unknown(each)


class CheckedTransport(httpx2.BaseTransport):
    """Passes everything on, and tells `hear` of each answer once the client is done with it."""

    def __init__(self, hear: Callable[[Said], None]) -> None:
        # No certificates: it speaks to 127.0.0.1 only, and reading them takes 50 ms.
        self._inner = httpx2.HTTPTransport(verify=False)
        self._hear = hear

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._inner.handle_request(request)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Overheard(response.stream, request, response, self._hear)
        return response

    def close(self) -> None:
        self._inner.close()


class _Overheard(httpx2.SyncByteStream):
    def __init__(
        self,
        inner: httpx2.SyncByteStream,
        request: httpx2.Request,
        response: httpx2.Response,
        hear: Callable[[Said], None],
    ) -> None:
        self._inner = inner
        self._about = (request.method, request.url.path, response.status_code)
        self._content_type = response.headers.get("content-type", "")
        self._hear = hear
        self._pieces: list[bytes] = []
        self._is_whole = False
        self._is_told = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            self._pieces.append(piece)
            yield piece
        self._is_whole = True

    def close(self) -> None:
        self._inner.close()
        if not self._is_told:
            self._is_told = True
            body = b"".join(self._pieces)
            self._hear(Said(*self._about, self._content_type, body, self._is_whole))
