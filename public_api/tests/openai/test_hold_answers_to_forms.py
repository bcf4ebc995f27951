"""The check of OpenAI's forms itself: it finds what is missing, what is unknown, and a silent end."""

import json
from typing import Any

import pytest

from public_api.tests.openai_forms import Said, faults_of

MODEL = {"id": "m", "object": "model", "created": 1, "owned_by": "amber"}
CHUNK: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}],
}
ERROR = {"message": "No.", "type": "server_error", "param": None, "code": None}


def faults(path: str, body: Any, *, status: int = 200, method: str = "GET") -> list[str]:
    return faults_of(Said(method, path, status, "application/json", json.dumps(body).encode()))


def stream_faults(*data: Any, is_whole: bool = True) -> list[str]:
    said = [each if isinstance(each, str) else json.dumps(each) for each in data]
    body = "".join(f"data: {each}\n\n" for each in said).encode()
    return faults_of(Said("POST", "/v1/chat/completions", 200, "text/event-stream", body, is_whole))


def test_what_is_right_has_no_fault():
    assert faults("/v1/models/m", MODEL) == []
    assert faults("/v1/models", {"object": "list", "data": [MODEL]}) == []
    assert faults("/v1/models/m", {"error": ERROR}, status=404) == []
    assert stream_faults(CHUNK, {"error": ERROR}, "[DONE]") == []
    assert faults("/api/v1/models/", {"anything": 1}) == []


@pytest.mark.parametrize(
    "change",
    [{"created": "1"}, {"created": None}, {"owner": "x"}, {"object": "list"}],
    ids=["a text for a number", "nothing", "an unknown field", "another object"],
)
def test_what_is_wrong_is_found(change):
    assert len(faults("/v1/models/m", MODEL | change)) == 1
    assert len(faults("/v1/models", {"object": "list", "data": [MODEL, MODEL | change]})) == 1


def test_what_is_unknown_is_found_deep_inside():
    choice = CHUNK["choices"][0] | {"delta": {"content": "x", "mood": "good"}}
    assert len(stream_faults(CHUNK | {"choices": [choice]}, "[DONE]")) == 1


def test_errors_have_their_four_fields():
    assert faults("/v1/models/m", {"error": ERROR | {"detail": "x"}}, status=404)
    assert faults("/v1/models/m", {"error": {"message": "No.", "type": "x"}}, status=404)


def test_a_stream_says_that_it_is_over_unless_the_client_left():
    assert len(stream_faults(CHUNK)) == 1
    assert stream_faults(CHUNK, is_whole=False) == []


def test_an_address_without_a_form_is_noticed():
    with pytest.raises(AssertionError):
        faults("/v1/files", {})
