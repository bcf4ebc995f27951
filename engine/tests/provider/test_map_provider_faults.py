from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from engine.provider.faults import (
    MAX_DETAIL_CHARS,
    fault_of_event,
    fault_of_list,
    fault_of_status,
    retry_after,
)

TOO_LONG = [
    # as OpenAI, vLLM (two), SGLang, llama.cpp, Ollama, Anthropic, Bedrock, Gemini, Mistral,
    # text-generation-inference and xAI write it
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "max_tokens is too large: 9000. This model's maximum context length is 4096 tokens.",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "the request exceeds the available context size. try increasing the context size",
    "input length exceeds maximum context length",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
]


@pytest.mark.parametrize("text", TOO_LONG)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_context_too_long_is_known_by_its_words(status: int, text: str) -> None:
    assert fault_of_status(status, {"error": {"message": text}}).code == "context_too_long"
    assert fault_of_status(status, {"error": text}).code == "context_too_long"
    assert fault_of_status(status, text).code == "context_too_long"
    assert fault_of_event({"message": text}).code == "context_too_long"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "provider_rejected"),
        (401, "provider_auth"),
        (402, "provider_auth"),
        (403, "provider_auth"),
        (404, "provider_rejected"),
        (408, "provider_timeout"),
        (409, "provider_rejected"),
        (422, "provider_rejected"),
        (429, "provider_rate_limited"),
        (498, "provider_rate_limited"),
        (500, "provider_unavailable"),
        (502, "provider_unavailable"),
        (529, "provider_unavailable"),
    ],
)
@pytest.mark.parametrize("body", [None, "", "<html>", {}, [], {"error": None}, {"error": {}}])
def test_a_status_has_its_code_whatever_the_body(status: int, code: str, body: Any) -> None:
    assert fault_of_status(status, body).code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 429, "message": "slow down"}, "provider_rate_limited"),
        ({"code": "429"}, "provider_rate_limited"),
        ({"status": 503}, "provider_unavailable"),
        ({"code": "rate_limit_exceeded"}, "provider_rate_limited"),
        ({"code": "context_length_exceeded"}, "context_too_long"),
        ({"type": "exceed_context_size_error"}, "context_too_long"),
        ({"type": "invalid_request_error", "message": "no"}, "provider_rejected"),
        ({"type": "server_error"}, "provider_unavailable"),
        ({"code": 7}, "provider_unavailable"),
        ("it broke", "provider_unavailable"),
        ([], "provider_unavailable"),
        (True, "provider_unavailable"),
    ],
)
def test_an_error_in_a_stream_has_its_code(error: Any, code: str) -> None:
    assert fault_of_event(error).code == code


WRONG_KEY = [
    # as OpenAI, Gemini, xAI, DeepSeek, OpenRouter and Together write it
    "Incorrect API key provided: sk-fake1234.",
    "API key not valid. Please pass a valid API key.",
    "Incorrect API key provided: xa***AI.",
    "Authentication Fails (no such user)",
    "No auth credentials found",
    "Invalid API key provided.",
]


@pytest.mark.parametrize("text", WRONG_KEY)
def test_a_wrong_key_is_known_by_its_words(text: str) -> None:
    error = {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}
    for body in (error, [error], {"error": text}, {"object": "error", "message": text}):
        assert fault_of_status(400, body).code == "provider_auth"
    assert fault_of_event({"message": text}).code == "provider_auth"
    assert fault_of_list([error]).code == "provider_auth"


def test_a_question_that_was_stopped_by_a_filter_is_no_wrong_key() -> None:
    body = {"error": {"code": 403, "message": "Your input was flagged by moderation"}}
    assert fault_of_status(403, body).code == "provider_rejected"
    assert fault_of_status(403, {"error": {"message": "No."}}).code == "provider_auth"


def test_a_list_without_an_error_cannot_be_read() -> None:
    assert fault_of_list([]).code == fault_of_list([{"choices": []}]).code == "provider_malformed"


def test_operators_are_told_what_users_are_not() -> None:
    error = fault_of_event(
        {"code": 502, "message": "Provider returned error", "metadata": {"raw": "it fell over"}}
    )
    assert "fell over" in error.said
    assert error.message == "The model provider is unavailable."
    unpaid = fault_of_status(402, {"error": {"message": "Insufficient Balance"}})
    assert "Insufficient Balance" in unpaid.said
    assert "no credit" in unpaid.message
    assert "sk-abc" not in fault_of_status(401, {"error": {"message": "sk-abcdef12"}}).said


def test_a_link_that_could_not_be_fetched_is_told_without_its_signature() -> None:
    link = "https://files.example.com/a/b?X-Amz-Signature=0123456789abcdef&X-Amz-Expires=900"
    said = fault_of_status(400, {"error": {"message": f"Failed to fetch '{link}'."}})
    assert "https://files.example.com/a/b?…" in said.message
    assert "0123456789abcdef" not in said.message + said.said


def test_the_words_are_short_and_carry_no_key() -> None:
    said = fault_of_status(
        404, {"error": {"message": "no model\nfor sk-abcdef123456 " + "x" * 999}}
    )
    assert "no model for [key] x" in said.message
    assert "abcdef" not in said.message
    assert len(said.message) < MAX_DETAIL_CHARS + 100
    assert "sk-abcdef" not in fault_of_status(401, {"error": {"message": "sk-abcdef"}}).message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "20", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
    assert fault_of_status(429, None, headers).retry_after_seconds == seconds


def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < (retry_after({"retry-after": date}) or 0) <= 100
