from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.provider.chunks import ReplyGatherer
from engine.provider.event_lines import EventLines
from engine.provider.model import ProviderError, Usage


def chunk(finish_reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return orjson.dumps({"choices": [choice]})


def piece(**fields: Any) -> bytes:
    """A chunk with one piece of a tool call: index, id, and the rest as its function."""
    outer = {key: fields.pop(key) for key in ("index", "id") if key in fields}
    return chunk(tool_calls=[{**outer, "function": fields}])


def gathered(*payloads: bytes) -> ReplyGatherer:
    gatherer = ReplyGatherer()
    _, failure = gatherer.add_all(list(payloads))
    if failure is not None:
        raise failure
    return gatherer


@pytest.mark.parametrize(
    "wire",
    [
        b'data: {"a":1}\n\ndata: [DONE]\n\n',
        b'data: {"a":1}\r\n\r\ndata: [DONE]\r\n\r\n',
        b'data:{"a":1}\rdata:[DONE]\r',
        b': ping\n\nevent: x\ndata: {"a":1}\nid: 4\ndata: [DONE]',
    ],
)
def test_lines_are_cut_wherever_the_bytes_are(wire: bytes) -> None:
    for size in range(1, len(wire) + 1):
        lines = EventLines()
        blocks = [wire[i : i + size] for i in range(0, len(wire), size)]
        found = [payload for block in blocks for payload in lines.feed(block)] + lines.end()
        assert [p for p in found if p] == [b'{"a":1}', b"[DONE]"]


def test_an_endless_line_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.provider.event_lines.MAX_LINE_BYTES", 10)
    with pytest.raises(ProviderError) as caught:
        EventLines().feed(b"data: 0123456789")
    assert caught.value.code == "provider_malformed"


def test_text_in_front_of_a_fault_counts() -> None:
    gatherer = ReplyGatherer()
    text, failure = gatherer.add_all([chunk(content="a"), chunk(content="b"), b"{", chunk()])
    assert text == "ab"
    assert failure is not None
    assert failure.code == "provider_malformed"


def test_a_fault_behind_the_finish_reason_is_none() -> None:
    assert gathered(chunk("stop", content="a"), b"{").finish() == "stop"


def test_without_a_finish_reason_the_reply_is_lost() -> None:
    with pytest.raises(ProviderError) as caught:
        gathered(chunk(content="a"), b"[DONE]").finish()
    assert caught.value.code == "provider_lost"


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"\xff",
        b"[" * 3000,
        b"[]",
        b"42",
        b"null",
        b'"text"',
        b"{}",
        b'{"choices": "none"}',
        b'{"choices": {"0": {}}}',
        b'{"choices": ["text"]}',
        b'{"choices": [{"delta": "text"}]}',
        b'{"choices": [{"delta": {"content": 5}}]}',
        b'{"choices": [{"delta": {"content": ["text"]}}]}',
        b'{"choices": [{"delta": {}, "finish_reason": 1}]}',
        b'{"choices": [{"delta": {"tool_calls": {"0": {}}}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"function": {"name": 1}}]}}]}',
        b'{"choices": [{"delta": {"function_call": "clock"}}]}',
    ],
)
def test_a_wrong_shape_is_malformed(payload: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        gathered(payload)
    assert caught.value.code == "provider_malformed"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "content",
                        "tool_calls",
                        "function",
                        "name",
                        "id",
                        "index",
                        "arguments",
                        "usage",
                        "error",
                        "finish_reason",
                        "message",
                        "function_call",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_shape_raises_anything_else(event: Any) -> None:
    gatherer = ReplyGatherer()
    try:
        gatherer.add(event)
        list(gatherer.calls())
    except ProviderError:
        pass


CALLS = [
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments=""),
            piece(index=1, id="b", name="g", arguments='{"y"'),
            piece(index=0, arguments='{"x":1}'),
            piece(index=1, arguments=":2}"),
        ],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
        id="by index, interleaved",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{"),
            piece(index=0, id="a", name="f", arguments="}"),
        ],
        [("a", "f", "{}")],
        id="id and name repeated",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{}"),
            piece(index=0, id="b", name="f", arguments='{"x":1}'),
        ],
        [("a", "f", "{}"), ("b", "f", '{"x":1}')],
        id="every call at index 0",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{"),
            piece(index=0, id="another", arguments="}"),
        ],
        [("a", "f", "{}")],
        id="another id with every piece",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments="{}"), piece(id="b", name="f", arguments="{}")],
        [("a", "f", "{}"), ("b", "f", "{}")],
        id="whole calls without index",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments="{"), piece(arguments="}")],
        [("a", "f", "{}")],
        id="continued without index and id",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments={"x": 1})], [("a", "f", '{"x":1}')], id="an object"
    ),
    pytest.param([piece(id="a", name="f", arguments=None)], [("a", "f", "{}")], id="no arguments"),
    pytest.param(
        [
            chunk(function_call={"name": "f", "arguments": ""}),
            chunk(function_call={"arguments": '{"x":1}'}),
        ],
        [(None, "f", '{"x":1}')],
        id="the legacy form",
    ),
    pytest.param(
        [piece(name="f", arguments="{}"), piece(name="f", arguments="{}")],
        [(None, "f", "{}"), (None, "f", "{}")],
        id="no ids at all",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{}"),
            piece(index=1, id="a", name="g", arguments="{}"),
        ],
        [("a", "f", "{}"), (None, "g", "{}")],
        id="one id for two calls",
    ),
]


@pytest.mark.parametrize(("payloads", "expected"), CALLS)
@pytest.mark.parametrize("reason", ["tool_calls", "stop", "function_call"])
def test_calls_are_put_together(payloads: list[bytes], expected: list[Any], reason: str) -> None:
    gatherer = gathered(*payloads, chunk(reason), b"[DONE]")
    calls = list(gatherer.calls())

    assert gatherer.finish() == "tool_calls"
    assert [(c.name, c.arguments) for c in calls] == [(n, a) for _, n, a in expected]
    for found, (call_id, _, _) in zip(calls, expected, strict=True):
        assert found.id == call_id if call_id else found.id.startswith("call_")
    assert len({c.id for c in calls}) == len(calls)


def test_a_call_without_a_name_is_malformed() -> None:
    with pytest.raises(ProviderError) as caught:
        list(gathered(piece(index=0, arguments="{}")).calls())
    assert caught.value.code == "provider_malformed"


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"content": None, "reasoning": "hm"},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]},
    ],
)
def test_work_without_text_is_a_sign_of_life(delta: dict[str, Any]) -> None:
    assert gathered(chunk(**delta)).is_working
    assert not gathered(chunk(**delta), chunk(role="assistant", content="")).is_working


def test_halves_of_a_character_are_joined() -> None:
    gatherer = ReplyGatherer()
    parts = [rb"a\ud83d", rb"\ude00b", rb"\ud83d", rb"c"]
    texts = [
        gatherer.add_json(b'{"choices":[{"delta":{"content":"%s"}}]}' % part) for part in parts
    ]
    assert "".join(texts).startswith("a😀b")
    "".join(texts).encode()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2, 0)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 3},
            },
            Usage(5, 2, 3),
        ),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}, Usage(5, 0, 4)),
        ({"prompt_tokens": "many"}, None),
        ("many", None),
    ],
)
def test_usage_is_read(counts: Any, expected: Usage | None) -> None:
    event = orjson.dumps({"choices": [], "usage": counts})
    assert gathered(event).usage == expected


def test_what_no_database_stores_is_taken_out() -> None:
    gatherer = ReplyGatherer()
    text, failure = gatherer.add_all([chunk(content="a\0b"), chunk("stop", content="\0")])
    assert (text, failure) == ("ab", None)
    calls = gathered(piece(index=0, id="c\0", name="f\0", arguments='{"a": "\0"}')).calls()
    assert [(c.id, c.name, c.arguments) for c in calls] == [("c", "f", '{"a": ""}')]


def test_fields_of_calls_and_of_the_message_are_gathered_over_chunks() -> None:
    def signed(index: int, text: str) -> bytes:
        google = {"google": {"thought_signature": text}}
        called = {"index": index, "function": {"arguments": ""}, "extra_content": google}
        return chunk(tool_calls=[called])

    gatherer = gathered(
        chunk(role="assistant", content=None, reasoning_content=""),
        chunk(content=None, reasoning_content="I "),
        chunk(content=None, reasoning_content="see\0."),
        piece(index=0, id="a", name="f", arguments="{}"),
        piece(index=1, id="b", name="g", arguments="{}"),
        signed(1, "two"),
        signed(0, "o"),
        signed(0, "ne"),
        chunk("tool_calls", annotations=[], audio=None),
    )
    assert [call.provider_fields for call in gatherer.calls()] == [
        {"extra_content": {"google": {"thought_signature": text}}} for text in ("one", "two")
    ]
    assert gatherer.provider_fields() == {"reasoning_content": "I see."}
