import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.history.prompt import ask_prompt
from engine.messages import ProviderMessage, mark_produced
from engine.provider import offline
from engine.provider.model import CallChunk, ModelRequest, ReplyEnd, ReplyPart, TextChunk
from engine.provider.offline import INTRODUCTION, MAX_QUOTES, OfflineModel
from engine.tool_calls import ChatToolCall, chat_form
from engine.tools import ToolSpec

CLOCK = ToolSpec("current_time", "Tells the time.")
SUM = ToolSpec("calculate", "Calculates.")

PASSAGES = (
    "You answer questions about rivers.\n"
    "Relevant passages from the library:\n"
    "[1] docs/nile.md\n"
    "The Nile is a river in Africa. Its length is 6,650 km.\n"
    "[2] seine.txt\n"
    "The Seine flows through Paris.\n"
    "塞纳河流经巴黎。"
)


def parts_of(messages: Sequence[ProviderMessage], **request: Any) -> list[ReplyPart]:
    async def work() -> list[ReplyPart]:
        asked = ModelRequest(messages, **request)
        return [part async for part in OfflineModel().stream(asked)]

    return asyncio.run(work())


def text_of(parts: Sequence[ReplyPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextChunk))


def calls_of(parts: Sequence[ReplyPart]) -> list[tuple[str, str]]:
    return [(p.call.name, p.call.arguments) for p in parts if isinstance(p, CallChunk)]


def user(text: str) -> ProviderMessage:
    return {"role": "user", "content": text}


def system(text: str) -> ProviderMessage:
    return {"role": "system", "content": text}


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        (
            "[Sent at 2024-01-01 00:00:00]\nHow long is the Nile?",
            "The Nile is a river in Africa. [1]",
        ),
        ("Through which city does the Seine flow, Paris?", "The Seine flows through Paris. [2]"),
        ("塞纳河在哪里？", "塞纳河流经巴黎。 [2]"),
        (
            "May I ask how much water the whole Seine carries each year?",
            "The Seine flows through Paris. [2]",
        ),
    ],
)
def test_passages_are_quoted_with_their_numbers(question: str, quote: str) -> None:
    text = text_of(parts_of([system(PASSAGES), user(question)]))
    assert text.startswith(INTRODUCTION)
    assert text.split("\n- ")[1] == quote
    assert text.count("\n- ") <= MAX_QUOTES


def test_a_number_too_long_to_be_read_numbers_no_passage() -> None:
    text = text_of(
        parts_of([system(f"{PASSAGES}\n[{'9' * 5_000}] x\nThe Nile."), user("The Nile?")])
    )
    assert "The Nile is a river in Africa. [1]" in text


def test_the_prompt_is_not_quoted() -> None:
    text = text_of(parts_of([system("Answer questions about Mars."), user("What about Mars?")]))
    assert "Answer questions" not in text


@pytest.mark.parametrize(
    "messages",
    [
        [
            system("You are kind."),
            user("Hi"),
            system("Alice lives in Oslo."),
            user("Who lives in Oslo?"),
        ],
        [system("You are kind.\nMemories:\n- Alice lives in Oslo."), user("Who lives in Oslo?")],
        [user("[Sent at x]\nAlice lives in Oslo."), user("[Sent at y]\nWho lives in Oslo?")],
        [user("[file: a.txt]\nAlice lives in Oslo.\n[Sent at y]\nWho lives in Oslo?")],
    ],
)
def test_memories_and_earlier_words_are_quoted(messages: list[ProviderMessage]) -> None:
    assert text_of(parts_of(messages)) == f"{INTRODUCTION}\n\n- Alice lives in Oslo."


def test_nothing_found_is_said() -> None:
    text = text_of(parts_of([system(PASSAGES), user("Hello!")], tools=[CLOCK]))
    assert text == (
        f"{INTRODUCTION} It was given nothing about this."
        " It calls a tool when told to: `/current_time {}`."
    )


@pytest.mark.parametrize(
    ("order", "calls"),
    [
        ("/current_time {}", [("current_time", "{}")]),
        ("/current_time", [("current_time", "{}")]),
        ("[Sent at 2024-01-01 00:00:00]\n/current_time {}", [("current_time", "{}")]),
        (
            "[Sent at a]\nfirst\n[Sent at b]\n/current_time {}",
            [("current_time", "{}")],
        ),
        (
            '/calculate {"x": 1}\n/calculate {"x": 2}\n/current_time {}',
            [("calculate", '{"x": 1}'), ("calculate", '{"x": 2}'), ("current_time", "{}")],
        ),
        ('/calculate {\n"x": 1}', [("calculate", '{\n"x": 1}')]),
        ('/calculate {"x": }', [("calculate", '{"x": }')]),
        ("/unknown {}", []),
        ("/current_time {}\n/unknown {}", []),
        ("please /current_time {}", []),
        ("/current_time now", []),
        ("", []),
    ],
)
def test_orders_call_tools(order: str, calls: list[tuple[str, str]]) -> None:
    parts = parts_of([user(order)], tools=[CLOCK, SUM])
    assert calls_of(parts) == calls
    assert isinstance(parts[-1], ReplyEnd)
    assert parts[-1].finish_reason == ("tool_calls" if calls else "stop")


def test_nothing_is_called_that_is_not_offered_or_not_wanted() -> None:
    assert calls_of(parts_of([user("/current_time {}")])) == []
    assert calls_of(parts_of([user("/current_time {}")], tools=[CLOCK], tool_choice="none")) == []


def test_results_become_the_answer_and_a_repeated_order_gets_another_id() -> None:
    history = [user("/current_time {}\n/calculate {}")]
    first = [p.call for p in parts_of(history, tools=[CLOCK, SUM]) if isinstance(p, CallChunk)]
    asked = [chat_form(call) for call in first]
    results: list[ProviderMessage] = [
        {"role": "tool", "tool_call_id": c.id, "content": f"result {i}"}
        for i, c in enumerate(first)
    ]
    history = [*history, {"role": "assistant", "content": None, "tool_calls": asked}, *results]

    parts = parts_of(history, tools=[CLOCK, SUM])
    assert calls_of(parts) == []
    assert text_of(parts) == (
        f"{INTRODUCTION}\n\ncurrent_time answered:\nresult 0\n\ncalculate answered:\nresult 1"
    )

    again = parts_of([*history, user("/current_time {}\n/calculate {}")], tools=[CLOCK, SUM])
    second = {p.call.id for p in again if isinstance(p, CallChunk)}
    assert len(second | {c.id for c in first}) == 4


def test_what_a_tool_made_is_no_new_question() -> None:
    """It stands behind the result as a user's message; the order before it is not given again."""
    order = user("/calculate {}")
    asked: ChatToolCall = {
        "id": "c",
        "type": "function",
        "function": {"name": "calculate", "arguments": "{}"},
    }
    round_: list[ProviderMessage] = [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c", "content": "See the image."},
        mark_produced("[image: chart.png]"),
    ]
    parts = parts_of([order, *round_], tools=[SUM])
    assert calls_of(parts) == []
    assert text_of(parts).endswith("calculate answered:\nSee the image.")
    later = parts_of([order, *round_, user("What does chart.png show?")], tools=[SUM])
    assert "[image" not in text_of(later), "quoted as if somebody had said it"


def test_it_ends_at_its_limit() -> None:
    parts = parts_of([user("Hello")], max_output_tokens=3)
    assert len(parts) == 4
    assert isinstance(parts[-1], ReplyEnd)
    assert parts[-1].finish_reason == "length"


def test_json_is_answered_with_json() -> None:
    assert text_of(parts_of([user("Facts?")], response_format={"type": "json_object"})) == "{}"


def test_images_are_passed_over() -> None:
    content: Any = [
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "/current_time {}"},
    ]
    parts = parts_of([{"role": "user", "content": content}], tools=[CLOCK])
    assert calls_of(parts) == [("current_time", "{}")]


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=30))))
def test_any_conversation_gets_the_same_answer_twice(history: list[tuple[str, str]]) -> None:
    messages: list[Any] = [{"role": role, "content": content} for role, content in history]
    first = parts_of(messages, tools=[CLOCK])
    assert first == parts_of(messages, tools=[CLOCK])
    assert isinstance(first[-1], ReplyEnd)


def test_a_question_to_a_library_is_answered_from_its_context():
    prompt = ask_prompt(
        "At how many degrees is green tea steeped?",
        passages=[
            ("pump.md", "The pump is bled on its left side."),
            (None, "Green tea is steeped at seventy degrees."),
        ],
        turns=[("Hello", "Hi")],
    )
    said = offline.answer(ModelRequest([{"role": "user", "content": prompt}]))
    assert "Green tea is steeped at seventy degrees. [2]" in said
    assert "pump" not in said
