"""Convert a turn's events to the typed events of OpenAI's responses.

Pure. Their numbers depend on the contents alone: each event counts one, and a piece of text one for
each of its characters. So a client that returns with a number (`starting_after`) goes on at that
very character, even if the pieces are cut differently this time.
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Callable, Iterator
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
        self._has_message = False
        self._is_message_whole = False

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
        if growth.text:
            yield from self._open_message()
            self._said = replace(self._said, text=self._said.text + growth.text)
            yield self._part_event(TEXT_DELTA, delta=growth.text, logprobs=[])
        for call in growth.calls:
            yield from self._emit_call(call)
        if isinstance(event, TurnCompleted):
            now = int(self._clock())
            yield from self.end(completed_state(event.finish_reason, event.usage, now))

    def end(self, state: State) -> Iterator[Json]:
        """Return the last events of a turn that has ended in this state."""
        yield from self.begin()
        output = output_items(self._form, self._said, self._find_citations(), state)
        if output and output[0]["type"] == "message":
            yield from self._open_message()
            yield from self._close_message(output[0])
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

    def _open_message(self) -> Iterator[Json]:
        if self._has_message:
            return
        self._has_message = True
        item = message_item(self._form, [], "in_progress")
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._part_event("response.content_part.added", part=text_part(self._form, ""))

    def _close_message(self, item: Json) -> Iterator[Json]:
        """Return the events that end the message. `item` is its final form."""
        if not self._has_message or self._is_message_whole:
            return
        self._is_message_whole = True
        (part,) = item["content"]
        for number, each in enumerate(part["annotations"]):
            name = "response.output_text.annotation.added"
            yield self._part_event(name, annotation_index=number, annotation=each)
        yield self._part_event("response.output_text.done", text=part["text"], logprobs=[])
        yield self._part_event("response.content_part.done", part=part)
        yield self._event("response.output_item.done", output_index=0, item=item)

    def _emit_call(self, call: ToolCall) -> Iterator[Json]:
        """Return the events of a call, which first end the text before it."""
        part = text_part(self._form, self._said.text, self._find_citations())
        yield from self._close_message(message_item(self._form, [part], "completed"))
        number = len(self._said.calls)
        fields = self._answer.fields
        self._said = replace(self._said, calls=(*self._said.calls, call), fields=fields)
        index = number + self._has_message
        begun = call_item(self._form, number, call, fields, status="in_progress", is_begun=True)
        place = {"item_id": begun["id"], "output_index": index}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        name = "response.function_call_arguments"
        yield self._event(f"{name}.delta", **place, delta=call.arguments)
        yield self._event(f"{name}.done", **place, arguments=call.arguments)
        item = call_item(self._form, number, call, fields)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _find_citations(self) -> list[Citation]:
        return citations(self._answer.messages)

    # -- Numbers ----------------------------------------------------------------------------------

    def _part_event(self, name: str, **fields: Any) -> Json:
        """Return an event of the message's only part."""
        place = {"item_id": f"msg_{self._form.key}", "output_index": 0, "content_index": 0}
        return self._event(name, **place, **fields)

    def _event(self, name: str, **fields: Any) -> Json:
        self._number += len(fields["delta"]) if name == TEXT_DELTA else 1
        return {"type": name, "sequence_number": self._number, **fields}


def after(number: int, event: Json) -> Json | None:
    """Return the part of this event after that number: all, the rest of a text, or None."""
    beyond = event["sequence_number"] - number
    if beyond <= 0:
        return None
    if event["type"] == TEXT_DELTA and beyond < len(event["delta"]):
        return {**event, "delta": event["delta"][-beyond:]}
    return event
