"""What the REST API takes as a body and an address, and how it writes."""

import asyncio
import datetime
import json
import uuid
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.parsers import FormParser
from rest_framework.request import Request

from amber.lib.errors import Invalid
from amber.lib.json_text.depth import is_deeper
from amber.lib.rest import wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def refusal(body: bytes) -> Invalid:
    with pytest.raises(Invalid) as caught:
        wire.parse_object(body)
    return caught.value


def depth_of(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": "\x00"}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": 1} {"a": 2}',
        b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}",
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
    ],
    ids=lambda body: ascii(body[:20]),
)
def test_what_is_no_plain_json_object_is_malformed(body: bytes) -> None:
    assert refusal(body).code == "malformed_json"


def test_a_nul_is_refused_by_the_name_of_its_field() -> None:
    body = json.dumps({"name": "a\0", "messages": [{"content": "b"}, {"content": "\0"}]})
    error = refusal(body.encode())
    assert error.code == "invalid"
    assert error.fields == {"name": [wire.NO_NUL], "messages.1.content": [wire.NO_NUL]}


def test_a_nul_in_a_name_is_refused() -> None:
    assert refusal(b'{"a": {"b\\u0000c": 1}}').fields == {"a.bc": [wire.NO_NUL]}


def test_text_about_nul_is_no_nul() -> None:
    assert wire.parse_object(b'{"a": "\\\\u0000"}') == {"a": "\\u0000"}


@given(st.dictionaries(st.text(), JSON))
def test_any_object_is_read_as_it_is_or_refused_for_its_nul(value: dict[str, Any]) -> None:
    body = json.dumps(value).encode()
    if "\\u0000" in json.dumps(value):
        assert refusal(body).fields
    else:
        assert wire.parse_object(body) == value


@given(JSON, st.integers(0, 6))
def test_depth_is_measured_without_parsing(value: Any, limit: int) -> None:
    body = json.dumps(value, ensure_ascii=False).encode()
    assert is_deeper(body, limit) is (depth_of(value) > limit)


@given(st.text('[]{}"\\ab,:'))
def test_depth_of_broken_text_is_no_trap(text: str) -> None:
    is_deeper(text.encode(), 3)


def test_the_depth_of_a_large_broken_text_is_found_in_linear_time() -> None:
    """Quadratic work on these would take hours."""
    for text in (b'"\\"' * 500_000, b'"' * 1_000_001, b"[]" * 500_000, b"\\" * 1_000_000):
        is_deeper(b"[" * 60 + text, 50)


def test_a_view_reads_json_and_the_body_stays_readable(rf: RequestFactory) -> None:
    request = rf.post("/", {"a": "é"}, content_type="application/json")
    assert Request(request, parsers=[wire.StrictJSONParser()]).data == {"a": "é"}
    assert json.loads(request.body) == {"a": "é"}


def test_a_body_over_the_limit_is_too_large(rf: RequestFactory, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    request = rf.post("/", {"a": "x" * 20}, content_type="application/json")
    with pytest.raises(RequestDataTooBig):
        _ = Request(request, parsers=[wire.StrictJSONParser()]).data


def test_a_nul_in_a_form_is_refused(rf: RequestFactory) -> None:
    request = Request(rf.post("/", {"a": "b", "c": "\0"}), parsers=[wire.StrictMultiPartParser()])
    with pytest.raises(Invalid) as caught:
        _ = request.data
    assert caught.value.fields == {"c.0": [wire.NO_NUL]}


def test_a_broken_form_is_invalid_not_malformed_json(rf: RequestFactory) -> None:
    request = rf.post("/", b"x", content_type="multipart/form-data")
    parsers = [wire.StrictMultiPartParser(), FormParser()]
    with pytest.raises(Invalid) as caught:
        _ = Request(request, parsers=parsers).data
    assert caught.value.code == "invalid"


def test_what_views_answer_is_written() -> None:
    row_id = uuid.UUID(int=1)
    data = {
        "id": row_id,
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "text": gettext_lazy("健康"),
        7: None,
    }
    assert json.loads(wire.JSONRenderer().render(data)) == {
        "id": str(row_id),
        "at": "2026-01-02T03:04:05Z",
        "text": "健康",
        "7": None,
    }
    assert wire.JSONRenderer().render(None) == b""


def hello(_: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


async def hello_async(_: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


@pytest.mark.parametrize(
    ("address", "status"),
    [("/a%00b/", 400), ("/?q=a%00b", 400), ("/?q=%2500", 200), ("/?q=b", 200)],
)
def test_a_nul_in_the_address_is_refused(address: str, status: int, rf: RequestFactory) -> None:
    assert wire.refuse_nul_in_address(hello)(rf.get(address)).status_code == status
    answer = wire.refuse_nul_in_address(hello_async)(rf.get(address))
    assert asyncio.run(answer).status_code == status


def test_the_refusal_of_a_query_names_it(rf: RequestFactory) -> None:
    answer = wire.refuse_nul_in_address(hello)(rf.get("/?q=a%00b&r=c"))
    assert json.loads(answer.content)["error"]["fields"] == {"q": [wire.NO_NUL]}
