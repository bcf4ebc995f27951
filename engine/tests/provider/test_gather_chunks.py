from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.provider.chunks import ReplyGatherer
from engine.provider.event_lines import EventLines
from engine.provider.model import ProviderError, Usage
from engine.tests.provider.chunks import chunk, gathered, piece


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
        b'{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "f"}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [5]}}]}',
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


def reasoned(*payloads: bytes) -> tuple[str, str]:
    """What was thought and what was said, and that nothing of it came late."""
    gatherer = ReplyGatherer()
    thought = said = ""
    for payload in payloads:
        text, failure = gatherer.add_all([payload])
        assert failure is None
        thought, said = thought + gatherer.take_reasoning(), said + text
    said += gatherer.end_text()
    return thought + gatherer.take_reasoning(), said


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Hm, "}, {"reasoning_content": "so.\0"}, {"content": "Yes."}],
        [{"reasoning": "Hm, so."}, {"content": "Yes.", "reasoning": None}],
        [{"content": "<think>Hm, so.</think>Yes."}],
        [{"content": " \n<think>\nHm, so.\n</think>\n\nYes."}],
        [{"content": "<thought>Hm, so.</thought>\n"}, {"content": "\n"}, {"content": "Yes."}],
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}]}]},
            {"content": [{"type": "thinking", "thinking": "so."}]},
            {"content": "Yes."},
        ],
        [
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, so."}]},
                    {"type": "reference", "reference_ids": [1]},
                    {"type": "text", "text": "Yes."},
                ]
            }
        ],
        [
            {"content": "<thought>Hm, ", "extra_content": {"google": {"thought": True}}},
            {"content": "so.", "extra_content": {"google": {"thought": True}}},
            {"content": "</thought>Yes."},
        ],
        [
            {"content": "Hm, so.", "extra_content": {"google": {"thought": True}}},
            {"content": "Yes."},
        ],
    ],
)
def test_reasoning_is_told_from_the_answer(deltas: list[dict[str, Any]]) -> None:
    assert reasoned(*(chunk(**delta) for delta in deltas)) == ("Hm, so.", "Yes.")


@given(st.lists(st.integers(0, 60), max_size=12))
def test_tags_are_found_however_the_text_is_cut(cuts: list[int]) -> None:
    text = "\n<think>\nIs 1 < 2? </thin no.</think>\n\nYes, <think> is a tag."
    places = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    pieces = [text[a:b] for a, b in pairwise(places)]
    thought, said = reasoned(*(chunk(content=piece) for piece in pieces))
    assert (thought, said) == ("Is 1 < 2? </thin no.", "Yes, <think> is a tag.")


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<thinking is fun", "", "<thinking is fun"),
        ("<", "", "<"),
        ("  \n", "", "  \n"),
        ("  indented", "", "  indented"),
        ("Say <think>x</think>", "", "Say <think>x</think>"),
        ("<think></think>Yes.", "", "Yes."),
        ("<think>cut of", "cut of", ""),
        ("<think>cut off</thi", "cut off</thi", ""),
        ("<think>all</think>\n", "all", ""),
    ],
)
def test_what_is_no_reasoning_stays_as_it_is(text: str, thought: str, said: str) -> None:
    assert reasoned(chunk(content=text)) == (thought, said)
    assert reasoned(*(chunk(content=letter) for letter in text)) == (thought, said)


def test_halves_of_a_character_in_reasoning_are_joined() -> None:
    parts = [rb"a\ud83d", rb"\ude00b", rb"\ud83d", rb"c"]
    lines = [b'{"choices":[{"delta":{"reasoning":"%s"}}]}' % part for part in parts]
    thought, said = reasoned(*lines)
    assert thought.startswith("a😀b")
    assert thought.encode()
    assert not said


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
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 9,
                "total_tokens": 14,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(5, 9, 0, 7),
        ),
        (  # xAI
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 14,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(5, 9, 0, 7),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 14}, Usage(5, 9, 0, 7)),
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


def test_fields_that_nobody_has_heard_of_are_gathered_too() -> None:
    called = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "state": "x"}
    gatherer = gathered(
        chunk(content=None, vendor_state={"n": 1}, cache_control={"type": "ephemeral"}),
        chunk(tool_calls=[called], prefix=False, refusal=None, images=["data:"], audio={"id": "1"}),
    )
    fields = {"vendor_state": {"n": 1}, "cache_control": {"type": "ephemeral"}}
    assert gatherer.provider_fields() == fields
    assert [call.provider_fields for call in gatherer.calls()] == [{"state": "x"}]


def test_thoughts_that_come_in_pieces_of_one_entry_are_one_entry() -> None:
    """As OpenRouter streams them."""

    def detail(**fields: Any) -> bytes:
        return chunk(
            content="", reasoning_details=[{"type": "reasoning.text", "index": 0} | fields]
        )

    gatherer = gathered(
        detail(text="I ", format="f1"),
        detail(text="see.", format="f1"),
        detail(signature="abc", format="f1"),
        chunk(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "xyz"}]),
    )
    entry = {"type": "reasoning.text", "index": 0, "text": "I see.", "format": "f1"}
    assert gatherer.provider_fields() == {
        "reasoning_details": [
            entry | {"signature": "abc"},
            {"type": "reasoning.encrypted", "index": 1, "data": "xyz"},
        ]
    }
