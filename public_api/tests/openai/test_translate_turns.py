"""A turn's events as chat completion chunks, and as a whole answer: values in, values out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from engine.events import (
    Event,
    MessageStored,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnCompleted,
    TurnRestarted,
    TurnSnapshot,
    TurnStarted,
)
from public_api.completions.chunks import Chunks, CompletionFormat, completion
from public_api.openai.growing_answer import TakenBackError

ABOUT: Any = {"seq": 1, "turn_id": "t"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "cached_tokens": 1}
PASSAGE = {
    "number": 2,
    "content": "It rains.",
    "document": {"id": "d", "name": "guide.md", "path": "docs/guide.md"},
    "page": None,
    "start": 10,
    "end": 19,
}


def form(**more: Any) -> CompletionFormat:
    given: dict[str, Any] = {"client_tools": frozenset({"weather"})} | more
    return CompletionFormat(id="chatcmpl-1", created=1, model="m", **given)


def row(role: str, content: str = "", *, id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "role": role, "content": content, "citations": [], "tool_call": None} | more


def called(name: str, call_id: str, text: str = "") -> dict[str, Any]:
    call = {"id": call_id, "name": name, "arguments": "{}", "reply_id": "r"}
    return row("tool_call", text, id=f"m-{call_id}", tool_call=call)


def result(call_id: str) -> dict[str, Any]:
    return row("tool", "ok", id=f"r-{call_id}", tool_call={"id": call_id})


def said(step: int, *texts: str) -> list[Event]:
    return [TextDelta(**ABOUT, step=step, text=text) for text in texts]


def stored(step: int, *rows: dict[str, Any]) -> list[Event]:
    return [MessageStored(**ABOUT, step=step, message=each) for each in rows]


def over(reason: str = "stop") -> Event:
    return TurnCompleted(**ABOUT, usage=USAGE, finish_reason=reason)


def chunks_of(*events: Event, **more: Any) -> list[Any]:
    chunks = Chunks(form(**more))
    made = [chunk for event in events for chunk in chunks.take(event)]
    for chunk in made:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    return made


def whole(*rows: dict[str, Any], reason: str = "stop", **more: Any) -> Any:
    made = completion(form(**more), rows, usage=USAGE, finish_reason=reason)
    ChatCompletion.model_validate(made, strict=True)
    return made["choices"][0]


def deltas(chunks: list[Any]) -> list[Any]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def text_of(chunks: list[Any]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas(chunks))


def test_text_comes_as_it_is_said():
    answer = row("assistant", "One two", id="a")
    chunks = chunks_of(
        TurnStarted(**ABOUT, turn={}), *said(1, "One", " two"), *stored(1, answer), over()
    )
    assert deltas(chunks) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "One"},
        {"content": " two"},
        {},
    ]
    assert whole(answer)["message"]["content"] == "One two"


def test_our_own_calls_are_not_shown_and_texts_of_steps_stand_apart():
    rows = [
        called("calculate", "c1", "Let me see."),
        result("c1"),
        row("assistant", "It is 2.", id="a"),
    ]
    events = [
        *said(1, "Let me see."),
        *stored(1, rows[0]),
        ToolStarted(**ABOUT, step=1, call_id="c1", name="calculate", arguments="{}"),
        ToolFinished(**ABOUT, step=1, call_id="c1", ok=True, content="2"),
        *stored(1, rows[1]),
        *said(2, "It", " is 2."),
        *stored(2, rows[2]),
        over(),
    ]
    text = "Let me see.\n\nIt is 2."
    assert text_of(chunks_of(*events)) == text
    assert whole(*rows)["message"] == {"role": "assistant", "content": text, "refusal": None}


def test_the_clients_calls_are_shown_each_once():
    rows = [called("weather", "c1"), called("calculate", "c2"), called("weather", "c3")]
    events = [*stored(1, *rows), *stored(1, *rows), over("tool_calls")]
    chunks = chunks_of(*events)
    pieces = [delta["tool_calls"][0] for delta in deltas(chunks)[1:-1]]
    assert [(piece["index"], piece["id"]) for piece in pieces] == [(0, "c1"), (1, "c3")]
    assert deltas(chunks)[0]["content"] is None
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    choice = whole(*rows, reason="tool_calls")
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["c1", "c3"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")


@pytest.mark.parametrize(
    ("told", "has_call", "reason"),
    [
        ("stop", False, "stop"),
        ("eos", False, "stop"),
        ("tool_calls", False, "stop"),
        ("length", False, "length"),
        ("content_filter", False, "content_filter"),
        ("tool_calls", True, "tool_calls"),
        ("stop", True, "tool_calls"),
        ("length", True, "length"),
    ],
)
def test_reasons_are_of_openais_closed_set(told, has_call, reason):
    rows = [called("weather", "c1")] if has_call else [row("assistant", "Hi", id="a")]
    assert whole(*rows, reason=told)["finish_reason"] == reason
    assert chunks_of(*stored(1, *rows), over(told))[-1]["choices"][0]["finish_reason"] == reason


def test_an_answer_without_a_word_has_its_role_and_its_end():
    answer = row("assistant", "", id="a")
    assert deltas(chunks_of(*stored(1, answer), over())) == [
        {"role": "assistant", "content": "", "refusal": None},
        {},
    ]
    assert whole(answer)["message"]["content"] == ""


def test_usage_is_the_last_chunk_where_it_was_asked_for():
    *rest, last = chunks_of(*said(1, "Hi"), over(), includes_usage=True)
    assert all(chunk["usage"] is None for chunk in rest)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 7)
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 1}


def test_what_is_said_again_after_a_restart_is_shown_once():
    rows = [called("calculate", "c1", "Wait."), result("c1")]
    answer = row("assistant", "Done.", id="a")
    chunks = chunks_of(
        *said(1, "Wait."),
        *stored(1, *rows),
        TurnRestarted(**ABOUT, attempt=2, step=2),
        *stored(1, *rows),
        *said(2, "Done."),
        *stored(2, answer),
        over(),
    )
    assert text_of(chunks) == "Wait.\n\nDone."


def test_text_that_is_taken_back_breaks_the_answer_off():
    with pytest.raises(TakenBackError):
        chunks_of(*said(1, "One"), TurnRestarted(**ABOUT, attempt=2, step=1))


def test_a_snapshot_goes_on_where_the_events_broke_off():
    answer = row("assistant", "One two three", id="a")
    chunks = chunks_of(
        *said(1, "One"),
        TurnSnapshot(**ABOUT, messages=[], text={1: "One two"}),
        TurnSnapshot(**ABOUT, messages=[answer], text={}),
        over(),
    )
    assert [delta.get("content") for delta in deltas(chunks)][1:-1] == ["One", " two", " three"]
    with pytest.raises(TakenBackError):
        chunks_of(*said(1, "One"), TurnSnapshot(**ABOUT, messages=[], text={1: "Two"}))


def test_citations_are_annotations_at_their_marks():
    rows = [
        row("knowledge", "[2] guide.md", id="k", citations=[PASSAGE]),
        called("calculate", "c1", "Wait."),
        row("assistant", "It rains [2], says [7].", id="a", citations=[PASSAGE]),
    ]
    (annotation,) = whole(*rows, root="https://amber.example")["message"]["annotations"]
    text = whole(*rows)["message"]["content"]
    cited = annotation["url_citation"]
    assert text[cited["start_index"] : cited["end_index"]] == "[2]"
    assert cited["title"] == "guide.md"
    assert cited["url"] == "https://amber.example/api/v1/documents/d/"
    assert annotation["document"] == {
        "id": "d",
        "name": "guide.md",
        "path": "docs/guide.md",
        "page": None,
        "start": 10,
        "end": 19,
    }
    chunks = chunks_of(*stored(1, *rows), over(), root="https://amber.example")
    assert deltas(chunks)[-2] == {"annotations": [annotation]}


TEXTS = st.lists(st.text(max_size=5), max_size=4)


@given(steps=st.lists(st.tuples(TEXTS, st.booleans()), max_size=3), last=TEXTS)
def test_the_chunks_say_what_the_whole_answer_says(steps, last):
    """However the text is cut, whichever steps call something, and whoever has to run it."""
    rows: list[dict[str, Any]] = []
    events: list[Event] = []
    for number, (texts, is_theirs) in enumerate(steps, start=1):
        name = "weather" if is_theirs else "calculate"
        call = called(name, f"c{number}", "".join(texts))
        rows.append(call)
        events += [*said(number, *texts), *stored(number, call)]
    answer = row("assistant", "".join(last), id="a")
    rows.append(answer)
    step = len(steps) + 1
    events += [*said(step, *last), *stored(step, answer), over()]
    chunks, message = chunks_of(*events), whole(*rows)["message"]
    assert text_of(chunks) == (message["content"] or "")
    pieces = [d["tool_calls"][0]["id"] for d in deltas(chunks) if "tool_calls" in d]
    assert pieces == [call["id"] for call in message.get("tool_calls", ())]
