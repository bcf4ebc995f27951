"""What a provider sends beyond OpenAI's form: gathered, kept, and given back by one rule."""

import asyncio
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.budget import fit
from engine.messages import (
    AssistantMessage,
    Message,
    MessageFields,
    is_produced,
    mark_produced,
)
from engine.provider import openai_model
from engine.provider.client import Endpoint
from engine.provider.model import (
    ModelProfile,
    ModelRequest,
    ProviderError,
    ReasoningChunk,
    ReplyEnd,
    TextChunk,
)
from engine.provider.openai_model import OpenAIModel
from engine.provider_fields import (
    MAX_FIELDS_BYTES,
    MESSAGE_FORM,
    FieldGatherer,
    brought_fields,
    fields_of,
    is_too_long,
    read_stored_form,
    returned_to,
    sender_of,
    storable,
    stored_form,
    with_fields,
    with_reasoning,
    without_idle_fields,
)
from engine.tests.history.rows import answer, calling, human, result, run, said, told
from engine.tests.loop.runs import Tools, at_once, replies
from engine.tests.loop.runs import run as loop_run
from engine.tests.scripted_model import ScriptedModel, calls, says
from engine.text.tokens import count_message
from engine.tool_calls import CALL_FORM, CallFields, ToolCall
from engine.tools import ToolSpec
from tests.fakes.habits import UNSIGNED, signature, thought
from tests.fixtures.provider import RunningProvider

SIGNED: CallFields = {"extra_content": {"google": {"thought_signature": "abc"}}}
THOUGHT: MessageFields = {"reasoning_content": "Let me see."}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


# -- Gathering -------------------------------------------------------------------------------------


def gathered(*pieces: dict[str, Any]) -> Any:
    gatherer = FieldGatherer(frozenset({"c"}))
    for piece in pieces:
        gatherer.add(piece)
    return gatherer.whole()


def test_texts_grow_and_objects_merge_deeply() -> None:
    first = {"a": {"g": {"s": "one", "n": 1, "l": [1]}}, "b": "x", "c": "not asked for"}
    second = {"a": {"g": {"s": " two", "n": 2, "l": [2], "more": None}, "h": True}, "b": "y"}
    assert gathered(first, second) == {
        "a": {"g": {"s": "one two", "n": 2, "l": [1, 2], "more": None}, "h": True},
        "b": "xy",
    }


def test_null_says_nothing_and_an_empty_text_something() -> None:
    assert gathered({"a": None, "b": ""}, {"a": None}) == {"b": ""}


@given(st.text(), st.lists(st.integers(0, 40), max_size=4))
def test_a_text_is_the_same_however_it_is_cut(text: str, cuts: list[int]) -> None:
    text = text.replace("\0", "")
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert gathered(*({"a": piece} for piece in pieces)) == {"a": text}
    nested = gathered(*({"a": {"deep": piece}} for piece in pieces))
    assert nested == {"a": {"deep": text}}


def test_what_postgres_refuses_is_taken_out() -> None:
    assert storable({"a\0": ["\ud83d", "b\0c", 1, None]}) == {"a": ["\ufffd", "bc", 1, None]}


# -- Keeping ---------------------------------------------------------------------------------------


def test_a_sender_is_a_model_at_a_provider() -> None:
    mark = sender_of("https://one.example/v1", "m")
    assert mark == sender_of("https://one.example/v1/", "m")
    assert mark not in (
        sender_of("https://two.example/v1", "m"),
        sender_of("https://one.example/v1", "n"),
    )
    assert "one" not in mark


def test_fields_go_back_to_their_sender_only() -> None:
    stored = stored_form("s1", message=THOUGHT, call=SIGNED)
    assert returned_to("s1", stored) == (THOUGHT, SIGNED)
    assert returned_to("s2", stored) == ({}, {})
    assert returned_to("s2", stored_form("", message=THOUGHT, call=SIGNED)) == (THOUGHT, SIGNED)
    assert stored_form("s1", message={}, call={}) is None
    assert returned_to("s1", None) == ({}, {})


@given(st.dictionaries(st.sampled_from(["sender", "message", "call", "x"]), JSON, max_size=4))
def test_nothing_else_is_taken_from_what_was_brought(given_fields: dict[str, Any]) -> None:
    read = read_stored_form(given_fields)
    if read is not None:
        assert set(read) <= {"sender", "message", "call"}
        assert not set(read.get("message", {})) & MESSAGE_FORM
        assert not set(read.get("call", {})) & CALL_FORM
        assert read_stored_form(read) == read


def test_no_field_is_a_part_of_the_form() -> None:
    """Whoever brings a chat along says nothing in a model's name, and calls nothing."""
    brought = {"role": "system", "content": "x", "tool_calls": [], "name": "n"}
    assert read_stored_form({"sender": "s", "message": brought, "call": {"id": "x"}}) is None
    message: AssistantMessage = {"role": "assistant", "content": "Hm."}
    assert with_fields(message, {**brought, **THOUGHT})["content"] == "Hm."


def test_a_client_that_names_no_sender_brings_what_is_well_known() -> None:
    given: Any = {"role": "assistant", "content": "", **THOUGHT, "state": 1, "thinking_blocks": [1]}
    assert brought_fields(given, sender="") == {**THOUGHT, "thinking_blocks": [1]}
    assert brought_fields(given, sender="s") == {**THOUGHT, "thinking_blocks": [1], "state": 1}


def test_what_is_too_long_or_too_deep_is_not_taken() -> None:
    deep: Any = {}
    for _ in range(2_000):
        deep = {"d": deep}
    long = {"reasoning_content": "x" * MAX_FIELDS_BYTES}
    assert is_too_long(deep)
    assert read_stored_form({"sender": "s", "message": long}) is None
    assert read_stored_form({"sender": "s", "call": {"extra_content": deep}}) is None
    assert read_stored_form({"sender": "s", "message": THOUGHT}) is not None


# -- Giving back -----------------------------------------------------------------------------------


def called(call_id: str, reply_id: str, *, first: bool = True) -> Message:
    call = ToolCall(call_id, "f", "{}", reply_id, SIGNED if first else {})
    return Message("tool_call", tool_call=call, provider_fields=THOUGHT if first else {})


def thinking(message: Any) -> Any:
    return message | THOUGHT


def signed(message: Any) -> Any:
    first, *others = message["tool_calls"]
    return message | {"tool_calls": [first | SIGNED, *others]}


def thoughtful(content: str) -> Message:
    return Message("assistant", content, provider_fields=THOUGHT)


def test_the_fields_of_calls_and_of_their_turn_go_back_in_later_turns_too() -> None:
    rows = [
        human("One?"),
        called("c1", "r1"),
        called("c2", "r1", first=False),
        result("c1"),
        result("c2"),
        thoughtful("One."),
        human("Two?"),
    ]
    assert run(*rows) == [
        said("user", "One?"),
        thinking(signed(calling("c1", "c2"))),
        told("c1"),
        told("c2"),
        thinking(said("assistant", "One.")),
        said("user", "Two?"),
    ]


def test_a_turn_without_calls_says_nothing_of_its_thoughts() -> None:
    rows = [human("One?"), thoughtful("One."), human("Two?"), called("c1", "r1"), result("c1")]
    expected = [said("user", "One?"), said("assistant", "One."), said("user", "Two?")]
    assert run(*rows) == [*expected, thinking(signed(calling("c1"))), told("c1")]


def test_what_a_tool_made_ends_no_exchange() -> None:
    made = mark_produced("[image: cat.png]")
    messages = [said("user", "?"), calling("c"), told("c"), made, thinking(said("assistant", "!"))]
    assert without_idle_fields(messages) == messages
    assert is_produced(without_idle_fields(messages)[3])


def test_answers_that_become_one_keep_both_thoughts() -> None:
    rows = [human("?"), called("c", "r"), result("c"), thoughtful("One."), thoughtful("Two.")]
    last = run(*rows)[-1]
    assert last == said("assistant", "One.\nTwo.") | {"reasoning_content": "Let me see." * 2}


def test_missing_thoughts_are_said_to_be_none_where_calls_are() -> None:
    messages = [
        said("user", "?"),
        said("assistant", "!"),
        said("user", "?"),
        calling("c"),
        told("c"),
        thinking(said("assistant", "!")),
    ]
    filled = with_reasoning(messages)
    assert filled[3] == calling("c") | {"reasoning_content": ""}
    assert fields_of(filled[3]) == {"reasoning_content": ""}
    assert [filled[:3], filled[4:]] == [messages[:3], messages[4:]]


def test_thoughts_cost_tokens() -> None:
    message = thinking(calling("c1"))
    more = count_message(message) - count_message(calling("c1"))
    assert more == count_message(said("user", "Let me see.")) - count_message(said("user", ""))
    long = calling("c1") | {"reasoning_content": "word " * 1_000}
    conversation = [said("user", "?"), long, told("c1"), said("user", "?")]
    assert fit(conversation, limit_tokens=500, count=count_message).messages == conversation[3:]


# -- A loop ----------------------------------------------------------------------------------------


def test_the_next_step_has_what_came_with_the_calls() -> None:
    call = ToolCall("c1", "clock", "{}", provider_fields=SIGNED)
    first = [*calls(call)[:-1], ReplyEnd("tool_calls", provider_fields=THOUGHT)]
    last: list[Any] = [TextChunk("Now."), ReplyEnd("stop", provider_fields=THOUGHT)]
    with ScriptedModel([first, last]) as model:
        said_by_it = replies(loop_run(model, Tools(at_once)))
    sent: Any = model.requests[1].messages[1]
    assert sent["tool_calls"][0]["extra_content"] == SIGNED["extra_content"]
    assert sent["reasoning_content"] == "Let me see."
    assert [reply.provider_fields for reply in said_by_it] == [THOUGHT, THOUGHT]


def test_the_thoughts_of_a_plain_answer_are_not_kept() -> None:
    with ScriptedModel([[*says("Now.")[:-1], ReplyEnd("stop", provider_fields=THOUGHT)]]) as model:
        [reply] = replies(loop_run(model, Tools(at_once)))
    assert reply.provider_fields == {}


# -- The wire --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_model, "_mends", {})


def parts_of(provider: RunningProvider, upstream_id: str, messages: list[Any]) -> list[Any]:
    model = OpenAIModel(ModelProfile(upstream_id), Endpoint(provider.base_url, provider.api_key))
    request = ModelRequest(messages, tools=[ToolSpec("clock", "The time.")])

    async def work() -> list[Any]:
        async with aclosing(model.stream(request)) as parts:
            return [part async for part in parts if part != TextChunk("")]

    return asyncio.run(work())


def thoughts_in(parts: list[Any]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ReasoningChunk))


@pytest.mark.parametrize("form", ["fake-", "fake-json-"])
def test_a_signature_is_gathered(fake_provider: RunningProvider, form: str) -> None:
    called, end = parts_of(fake_provider, f"{form}gemini", [said("user", "[[fake call=clock]]")])
    assert called.call.provider_fields == {"extra_content": signature(called.call.id)}
    assert end.provider_fields == {}


@pytest.mark.parametrize("form", ["fake-", "fake-json-"])
def test_a_thought_is_gathered(fake_provider: RunningProvider, form: str) -> None:
    asked = [said("user", "[[fake call=clock]]")]
    *thoughts, called, end = parts_of(fake_provider, f"{form}deepseek", asked)
    assert thoughts_in(thoughts) == thought(called.call.id)
    assert end.provider_fields == {"reasoning_content": thought(called.call.id)}
    assert called.call.provider_fields == {}


def test_thoughts_that_are_demanded_and_unknown_are_said_to_be_none(
    fake_provider: RunningProvider,
) -> None:
    """Another model called; it is learnt once, so that later requests are right at once."""
    messages = [said("user", "d0d0 [[fake tokens=1]]"), calling("c1"), told("c1")]
    assert parts_of(fake_provider, "fake-deepseek", messages)
    assert parts_of(fake_provider, "fake-deepseek", messages)
    sent = fake_provider.requests("d0d0")
    assert [m["messages"][1].get("reasoning_content") for m in sent] == [None, "", ""]


def test_thoughts_that_are_refused_are_left_out(fake_provider: RunningProvider) -> None:
    """Some say what they think and refuse to hear it again, in words that name the field."""
    messages = [said("user", "d1d1 [[fake tokens=1]]"), thinking(calling("c1")), told("c1")]
    assert parts_of(fake_provider, "fake-strict", messages)
    assert parts_of(fake_provider, "fake-strict", messages)
    sent = fake_provider.requests("d1d1")
    assert [m["messages"][1].get("reasoning_content") for m in sent] == [
        "Let me see.",
        *[None] * 2,
    ]


def test_an_unsigned_call_of_another_model_gets_the_mark_for_such(
    fake_provider: RunningProvider,
) -> None:
    messages = [said("user", "d3d3 [[fake tokens=1]]"), calling("c1", "c2"), told("c1"), told("c2")]
    assert parts_of(fake_provider, "fake-gemini", messages)
    assert parts_of(fake_provider, "fake-gemini", messages)
    sent = fake_provider.requests("d3d3")
    signed = [[call.get("extra_content") for call in m["messages"][1]["tool_calls"]] for m in sent]
    assert signed == [[None, None], [UNSIGNED, None], [UNSIGNED, None]]


def test_ids_are_mended_for_a_model_that_wants_others(fake_provider: RunningProvider) -> None:
    long = "x" * 41
    messages = [said("user", "d4d4 [[fake tokens=1]]"), calling(long), told(long)]
    assert parts_of(fake_provider, "fake-openai", messages)
    ids = [m["messages"][2]["tool_call_id"] for m in fake_provider.requests("d4d4")]
    assert ids[0] == long
    assert len(ids[1]) == 9


def test_what_is_known_of_a_model_is_not_asked(fake_provider: RunningProvider) -> None:
    messages = [said("user", "d5d5 [[fake tokens=1]]"), calling("call_1"), told("call_1")]
    assert parts_of(fake_provider, "fake-mistral", messages)
    assert len(fake_provider.requests("d5d5")) == 1


def test_a_refusal_for_other_reasons_stays_one(fake_provider: RunningProvider) -> None:
    unsigned = [said("user", "d2d2 [[fake status=400]]"), calling("c1"), told("c1")]
    with pytest.raises(ProviderError) as caught:
        parts_of(fake_provider, "fake-gemini", unsigned)
    assert caught.value.code == "provider_rejected"
    assert len(fake_provider.requests("d2d2")) == 1


def test_a_plain_answer_has_no_fields_where_its_provider_sent_none() -> None:
    assert run(human("?"), answer("!"), human("?"))[1] == said("assistant", "!")
