"""Errors of Amber's in OpenAI's form: every code, and the page that says so."""

import re
from pathlib import Path

import orjson
import pytest

from amber.lib.errors import CODES, RETRYABLE, AmberError, Invalid, RateLimited
from public_api.openai.errors import NOT_AT_ONCE, TABLE, error_frame, error_object, openai_form

PAGE = Path(__file__).resolve().parents[3] / "docs" / "public-api.md"


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_status_that_clients_treat_rightly(code):
    """They raise by the status, and retry 408, 409, 429 and 5xx unless told otherwise."""
    told = openai_form(AmberError(code=code))
    error = told.body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].endswith(CODES[code][1])
    if told.status >= 500:
        assert error["type"] == "server_error"
    elif told.status in (400, 413):
        assert error["type"] == "invalid_request_error"
    is_retried = told.headers["x-should-retry"] == "true"
    assert is_retried == (code in RETRYABLE and code not in NOT_AT_ONCE)
    if is_retried:
        assert told.status in (409, 429) or told.status >= 500


def test_the_table_is_the_pages():
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert [row[0] for row in rows] == list(TABLE)
    for code, status, kind, named in rows:
        told = openai_form(AmberError(code=code))
        shown = told.body["error"]["code"]
        assert (told.status, told.body["error"]["type"]) == (int(status), kind)
        assert named == ("null" if shown is None else f"`{shown}`")


@pytest.mark.parametrize("code", CODES)
def test_litellm_takes_for_a_bad_request_only_what_is_one(code):
    """It does so with whatever is an `invalid_request_error`, but for the words it knows."""
    told = openai_form(AmberError(code=code))
    error = told.body["error"]
    if error["type"] == "invalid_request_error" and told.status not in (400, 405, 406, 413, 415):
        known = "Incorrect API key provided" in error["message"]
        assert known or error["code"] == "model_not_found" or code == "not_authenticated"


def test_what_is_too_long_is_said_in_words_that_clients_know():
    told = error_object(AmberError("9,000 tokens are too many.", code="context_too_long"))
    assert "is longer than the model's context length" in told["message"]
    assert told["message"].endswith("9,000 tokens are too many.")


@pytest.mark.parametrize(
    ("field", "param"),
    [
        ("model", "model"),
        ("messages.3.content.1", "messages[3].content[1]"),
        ("tools.0.function.parameters.properties.a1", "tools[0].function.parameters.properties.a1"),
        ("input.12", "input[12]"),
    ],
)
def test_fields_are_named_as_openai_names_them(field, param):
    error = Invalid("Wrong.", fields={field: ["Wrong."], "other": ["Wrong, too."]})
    assert error_object(error)["param"] == param


def test_the_time_to_wait_is_told():
    told = openai_form(RateLimited(code="budget_exceeded", retry_after_seconds=7))
    assert told.headers["Retry-After"] == "7"
    assert told.headers["x-should-retry"] == "false"


def test_in_a_stream_it_is_one_line_of_data():
    frame = error_frame(AmberError("Two\nlines.", code="provider_lost"))
    assert frame.startswith(b"data: {")
    assert frame.endswith(b"}\n\n")
    assert frame.count(b"\n") == 2
    assert orjson.loads(frame[6:])["error"]["code"] == "provider_lost"
