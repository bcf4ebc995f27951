"""Convert a turn's events to the typed events of OpenAI's responses.

Pure. Their numbers depend on the contents alone: each event counts one, and a piece of text or
reasoning one for each of its characters. So a client that returns with a number (`starting_after`) goes on at that
very character, even if the pieces are cut differently this time.
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.events import Event, TurnCompleted
from engine.tool_calls import ToolCall
from public_api.openai.growing_answer import (
    AnswerShown,
    Citation,
    GrowingAnswer,
    citations,
)
from public_api.responses.body import (
    Json,
    ResponseFormat,
    State,
    call_item,
    completed_state,
    error_of,
    message_item,
    output_items,
    reasoning_item,
    reasoning_part,
    response,
    text_part,
)

LAST: Final = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
}
"""The last events. The closed set has none for "cancelled", which the response's status tells."""

TEXT_DELTA: Final = "response.output_text.delta"
REASONING_DELTA: Final = "response.reasoning_text.delta"
ARGUMENTS_DELTA: Final = "response.function_call_arguments.delta"
ARGUMENTS_DONE: Final = "response.function_call_arguments.done"
_DELTAS: Final = frozenset({TEXT_DELTA, REASONING_DELTA})


class ResponseEvents:
    """Takes a turn's events in order, and turns each into typed events: several, or none.

    `clock` tells seconds since 1970. `take` raises TakenBackError; how a turn fails is told by
    `end`.
    """

    def __init__(self, form: ResponseFormat, clock: Callable[[], float]) -> None:
        self._form = form
        self._clock = clock
        self._answer = GrowingAnswer(form.client_tools)
        self._number = -1
        self._has_begun = False
        self._said = AnswerShown()
        self._opened: list[str] = []
        """Kinds of the items that were begun before any call: "reasoning", "message"."""
        self._are_whole = False

    def begin(self) -> Iterator[Json]:
        """Return the first events; nothing the second time."""
        if self._has_begun:
            return
        self._has_begun = True
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, response=response(self._form, State("in_progress"), []))

    def take(self, event: Event) -> Iterator[Json]:
        growth = self._answer.take(event)
        if growth:
            yield from self.begin()
        for kind, said in growth.pieces:
            if kind == "text":
                yield from self._open("message")
                self._said = replace(self._said, text=self._said.text + said)
                yield self._part_event("message", TEXT_DELTA, delta=said, logprobs=[])
            elif not self._are_whole:
                yield from self._open("reasoning")
                self._said = replace(self._said, reasoning=self._said.reasoning + said)
                yield self._part_event("reasoning", REASONING_DELTA, delta=said)
        for call in growth.calls:
            yield from self._emit_call(call)
        if isinstance(event, TurnCompleted):
            now = int(self._clock())
            yield from self.end(completed_state(event.finish_reason, event.usage, now))

    def end(self, state: State) -> Iterator[Json]:
        """Return the last events of a turn that has ended in this state."""
        yield from self.begin()
        said = replace(self._said, speaks_first=self._opened[:1] == ["message"])
        output = output_items(self._form, said, self._find_citations(), state)
        if any(item["type"] == "message" for item in output):
            yield from self._open("message")
        yield from self._close(output)
        told = response(self._form, state, output)
        yield self._event(LAST[state.status], response=told)

    def break_off(self, error: Json) -> Iterator[Json]:
        """Return the event that breaks the stream off, which does not end the response.

        `error` is in OpenAI's form; clients raise it as an exception.
        """
        flat = {name: error[name] for name in ("code", "message", "param")}
        yield self._event("error", **flat, error=error)

    def cancel(self) -> Iterator[Json]:
        return self.end(State("cancelled"))

    def fail(self, code: str, message: str) -> Iterator[Json]:
        return self.end(State("failed", error=error_of(code, message)))

    # -- Items ------------------------------------------------------------------------------------

    def _open(self, kind: str) -> Iterator[Json]:
        if kind in self._opened:
            return
        self._opened.append(kind)
        if kind == "message":
            item, part = message_item(self._form, [], "in_progress"), text_part(self._form, "")
        else:
            item, part = reasoning_item(self._form, [], "in_progress"), reasoning_part("")
        index = self._opened.index(kind)
        yield self._event("response.output_item.added", output_index=index, item=item)
        yield self._part_event(kind, "response.content_part.added", part=part)

    def _close(self, items: Sequence[Json]) -> Iterator[Json]:
        """Return the events that end what was opened. `items` are the final forms."""
        if self._are_whole:
            return
        self._are_whole = True
        for item in items:
            if item["type"] in self._opened:
                yield from self._close_item(item)

    def _close_item(self, item: Json) -> Iterator[Json]:
        kind = item["type"]
        (part,) = item["content"]
        if kind == "message":
            for number, each in enumerate(part["annotations"]):
                name = "response.output_text.annotation.added"
                yield self._part_event(kind, name, annotation_index=number, annotation=each)
            done = "response.output_text.done"
            yield self._part_event(kind, done, text=part["text"], logprobs=[])
        else:
            yield self._part_event(kind, "response.reasoning_text.done", text=part["text"])
        yield self._part_event(kind, "response.content_part.done", part=part)
        index = self._opened.index(kind)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _emit_call(self, call: ToolCall) -> Iterator[Json]:
        """Return the events of a call, which first end what was said before it."""
        said = replace(self._said, speaks_first=self._opened[:1] == ["message"])
        state = State("completed")
        yield from self._close(self._said_items(said, state))
        number = len(self._said.calls)
        fields = self._answer.told.fields
        self._said = replace(self._said, calls=(*self._said.calls, call), fields=fields)
        index = number + len(self._opened)
        begun = call_item(self._form, number, call, fields, status="in_progress", is_begun=True)
        place = {"item_id": begun["id"], "output_index": index}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield self._event(ARGUMENTS_DELTA, **place, delta=call.arguments)
        yield self._event(ARGUMENTS_DONE, **place, arguments=call.arguments)
        item = call_item(self._form, number, call, fields)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _said_items(self, said: AnswerShown, state: State) -> list[Json]:
        """Return what was said and thought so far as items."""
        return output_items(self._form, said, self._find_citations(), state)

    def _find_citations(self) -> list[Citation]:
        return citations(self._answer.messages)

    # -- Numbers ----------------------------------------------------------------------------------

    def _part_event(self, kind: str, name: str, **fields: Any) -> Json:
        """Return an event of an item's only part."""
        item_id = f"{'msg' if kind == 'message' else 'rs'}_{self._form.key}"
        place = {"item_id": item_id, "output_index": self._opened.index(kind), "content_index": 0}
        return self._event(name, **place, **fields)

    def _event(self, name: str, **fields: Any) -> Json:
        self._number += len(fields["delta"]) if name in _DELTAS else 1
        return {"type": name, "sequence_number": self._number, **fields}


def after(number: int, event: Json) -> Json | None:
    """Return the part of this event after that number: all, the rest of a text, or None."""
    beyond = event["sequence_number"] - number
    if beyond <= 0:
        return None
    if event["type"] in _DELTAS and beyond < len(event["delta"]):
        return {**event, "delta": event["delta"][-beyond:]}
    return event
