"""Streams of events as servers write them, and the payloads they hold."""

import orjson
import pytest

from engine.provider.event_lines import EventLines
from engine.provider.model import ProviderError

ONE, TWO = b'{"a":1}', b'{"b":"}{"}'


def payloads(wire: bytes, size: int) -> list[bytes]:
    lines = EventLines()
    blocks = [wire[i : i + size] for i in range(0, len(wire), size)]
    found = [payload for block in blocks for payload in lines.feed(block)] + lines.end()
    return [payload for payload in found if payload]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("wire", "found"),
    [
        (b"data: %s\n\ndata: %s\n\n" % (ONE, TWO), [ONE, TWO]),
        (b"data:%s\ndata:%s\ndata: [DONE]" % (ONE, TWO), [ONE, TWO, b"[DONE]"]),
        (b"\xef\xbb\xbfdata: %s\n\n" % ONE, [ONE]),
        (b'data: {\ndata:  "a":\ndata: 1}\n\ndata: %s\n\n' % TWO, [b'{\n"a":\n1}', TWO]),
        (b'data: {"c": "}"}\ndata: %s\n\n' % ONE, [b'{"c": "}"}', ONE]),
        (b"event: ping\ndata: %s\n\ndata: %s\n\n" % (ONE, TWO), [TWO]),
        (b"event: ping\n\ndata: %s\n\n" % ONE, [ONE]),
        (b"event: delta\nid: 7\ndata: %s\n\n" % ONE, [ONE]),
        (b": comment\n:\n\nretry: 5\n\ndata: %s\n\n" % ONE, [ONE]),
        (b'event: error\ndata: {"message": "x"}\n\n', [b'{"error":{"message":"x"}}']),
        (b'event: error\ndata: {"error": "x"}\n\n', [b'{"error": "x"}']),
        (b"event: error\ndata: broken\n\n", [b'{"error":"broken"}']),
        (b'error: {"code":500}\n\n', [b'{"error":{"code":500}}']),
    ],
)
def test_an_event_is_one_payload(
    wire: bytes, found: list[bytes], line_end: bytes, size: int
) -> None:
    assert payloads(wire.replace(b"\n", line_end), size) == found


def test_an_event_is_not_kept_until_the_next_one() -> None:
    lines = EventLines()
    assert lines.feed(b"data: %s\n" % ONE) == [ONE]
    assert lines.feed(b'data: {"open": "{"}\n') == []
    assert lines.feed(b"\n") == [b'{"open": "{"}']


def test_an_endless_event_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.provider.event_lines.MAX_LINE_BYTES", 10)
    with pytest.raises(ProviderError) as caught:
        EventLines().feed(b"data: {\ndata: 012345\ndata: 012345\n")
    assert caught.value.code == "provider_malformed"


def test_an_event_of_empty_lines_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.provider.event_lines.MAX_LINE_BYTES", 100)
    with pytest.raises(ProviderError):
        EventLines().feed(b"data: {\n" + b"data:\n" * 100)


def test_an_event_of_many_lines_is_parsed_so_often_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def is_json(payload: bytes) -> bool:
        tried.append(len(payload))
        return False

    monkeypatch.setattr("engine.provider.event_lines.MAX_TRIED_BYTES", 1_000)
    monkeypatch.setattr("engine.provider.event_lines._is_json", is_json)
    found = payloads(b"data: [{\n" + b"data: 1,\n" * 500 + b"data: 1}]\n\n", 9)
    assert len(found) == 1
    assert 500 < sum(tried) <= 1_000


def test_what_is_joined_is_json() -> None:
    value = {"choices": [{"delta": {"content": "{\n"}}]}
    lines = orjson.dumps(value, option=orjson.OPT_INDENT_2).splitlines()
    (found,) = payloads(b"".join(b"data: %s\n" % line for line in lines) + b"\n", 9)
    assert orjson.loads(found) == value
