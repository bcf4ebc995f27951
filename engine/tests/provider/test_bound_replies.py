"""A reply ends where it has become too long: what came before is kept, and the work stays in proportion to it."""

from collections.abc import Callable

import orjson
import pytest

from engine.provider import chunks
from engine.provider.chunks import ReplyGatherer, TranslatingGatherer
from engine.provider.dialects.anthropic import AnthropicReader
from engine.provider.model import MAX_TOKENS, usage_of
from engine.provider.reasoning import ThinkTags
from engine.provider.reply_size import MAX_CALLS, ReplySize
from engine.tests.provider.chunks import chunk, piece

MOST = 1_000


def gathered(*payloads: bytes) -> tuple[str, ReplyGatherer]:
    """Return the text of these payloads, the last of which is one too many."""
    gatherer = ReplyGatherer(size=ReplySize(MOST))
    text, failure = gatherer.add_all([*payloads[:-1]])
    assert failure is None
    more, failure = gatherer.add_all([payloads[-1], chunk("stop")])
    assert failure is not None
    assert (failure.code, failure.retryable) == ("reply_too_long", False)
    return text + more, gatherer


def test_a_reply_of_the_most_characters_is_whole() -> None:
    gatherer = ReplyGatherer(size=ReplySize(MOST))
    text, failure = gatherer.add_all([chunk(content="x" * MOST), chunk("stop"), b"[DONE]"])
    assert (text, failure, gatherer.finish()) == ("x" * MOST, None, "stop")


def test_text_is_cut_at_the_most_characters() -> None:
    text, _ = gathered(*[chunk(content="x" * 300)] * 4)
    assert text == "x" * MOST


def test_the_finish_reason_of_one_long_event_does_not_make_it_whole() -> None:
    text, gatherer = gathered(chunk("stop", content="x" * 5_000))
    assert text == "x" * MOST
    assert gatherer.finish_reason == "stop"


def test_reasoning_in_parts_is_cut_as_well() -> None:
    part = chunk(content=[{"type": "thinking", "thinking": "x" * 600}])
    _, gatherer = gathered(part, part)
    assert gatherer.take_reasoning() == "x" * MOST


@pytest.mark.parametrize(
    "payload",
    [
        chunk(reasoning_content="x" * 300),
        piece(index=0, name="f", arguments="x" * 300),
        piece(index=0, id="x" * 300, name="f"),
        piece(index=0, name="x" * 300),
        chunk(reasoning_details=[{"type": "text", "text": "x" * 140}]),
        chunk(odd={"a": [{"b": "x" * 150}]}),
        chunk(tool_calls=[{"index": 0, "function": {"name": "f"}, "extra_content": "x" * 300}]),
    ],
)
def test_whatever_else_a_reply_holds_counts(payload: bytes) -> None:
    gathered(*[payload] * 4)


def test_ever_new_fields_count_though_they_hold_nothing() -> None:
    gathered(*[chunk(**{f"odd{number}": ""}) for number in range(19)])


def test_an_object_counts_though_it_holds_numbers_only() -> None:
    gathered(*[chunk(odd=[1, 2, 3])] * 5)


def test_a_reply_has_so_many_calls_at_most() -> None:
    pieces = [piece(index=n, name="f", arguments="") for n in range(MAX_CALLS + 1)]
    size = ReplySize()
    whole = ReplyGatherer(size=size)
    assert whole.add_all([*pieces[:-1], chunk("tool_calls")])[1] is None
    assert len([*whole.calls()]) == MAX_CALLS
    _, failure = ReplyGatherer().add_all([*pieces, chunk("tool_calls")])
    assert failure is not None
    assert failure.code == "reply_too_long"


def test_blocks_of_anthropics_count() -> None:
    gatherer = TranslatingGatherer(AnthropicReader(), ReplySize(MOST))
    begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}}
    sign = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": "x" * 2_000},
    }
    stop = {"type": "content_block_stop", "index": 0}
    _, failure = gatherer.add_all([orjson.dumps(event) for event in (begin, sign, stop)])
    assert failure is not None
    assert failure.code == "reply_too_long"


@pytest.mark.parametrize("depth", [51, 1_000])
def test_a_field_that_is_nested_too_deeply_is_not_kept(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    event = b'{"choices":[{"index":0,"delta":{"content":"a","flat":[1],"deep":%s}}]}' % deep
    gatherer = ReplyGatherer()
    assert gatherer.add_all([event, chunk("stop")]) == ("a", None)
    assert gatherer.provider_fields() == {"flat": [1]}


def count_parsed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the characters of arguments that are parsed from now on."""
    parsed = [0]
    loads = orjson.loads

    def counting(text: str | bytes) -> object:
        parsed[0] += len(text) if isinstance(text, str) else 0
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counting)
    return lambda: parsed[0]


def test_arguments_that_may_end_anywhere_are_parsed_in_proportion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece looks as if it ended one call and began another, so all before it is parsed anew."""
    monkeypatch.setattr(chunks, "MAX_TRIED_CHARS", 10_000)
    parsed = count_parsed(monkeypatch)
    gatherer = ReplyGatherer()
    gatherer.add_all([piece(index=0, name="f", arguments="[")])
    gatherer.add_all([piece(index=0, arguments="{}")] * 2_000)
    assert 0 < parsed() <= 10_000


def test_white_space_before_a_thought_or_in_it_is_not_held_for_ever() -> None:
    """What is held is looked at anew with each piece."""
    before, within = ThinkTags(), ThinkTags()
    assert "".join(before.feed(" ")[1] for _ in range(1_000)).isspace()
    within.feed("<think>so")
    assert len("".join(within.feed(" ")[0] for _ in range(1_000))) > 700


@pytest.mark.parametrize("count", [MAX_TOKENS + 2, 2**63 - 1, 10**30])
def test_counts_that_cannot_be_are_none(count: int) -> None:
    """They would fit into no column: the answer would be lost with the row of its usage."""
    assert usage_of({"prompt_tokens": count, "completion_tokens": 1}) is None
    assert usage_of({"prompt_tokens": 1, "completion_tokens": count}) is None
    assert usage_of({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": count}) is None
    assert usage_of({"prompt_tokens": 1, "prompt_cache_hit_tokens": count}) is None
