"""Convert a turn to a response of OpenAI's: one object with what was asked and what was answered.

Pure. The texts of a turn's steps are one message, and the client's calls an item each, as
`public_api.openai.growing_answer` shows them. Format:
https://platform.openai.com/docs/api-reference/responses/object and https://www.openresponses.org.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chats.context.call_options import CallOptions
from engine.provider_fields import Fields
from engine.tool_calls import ToolCall, item_form
from engine.tools import ToolChoice, ToolSpec
from public_api.completions.chunks import CUT_SHORT
from public_api.openai.growing_answer import AnswerShown, Citation
from public_api.responses.items import OF_CALL
from public_api.responses.names import RequestEcho

Json = dict[str, Any]

CUT_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
assert set(CUT_REASONS) == CUT_SHORT

ERROR_CODES: Final = {
    "provider_rate_limited": "rate_limit_exceeded",
    "rate_limited": "rate_limit_exceeded",
    "budget_exceeded": "rate_limit_exceeded",
    "context_too_long": "invalid_prompt",
    "provider_rejected": "invalid_prompt",
}
"""Amber's codes in OpenAI's closed set; all others are `server_error`."""


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """What all forms of one response have in common.

    `key` is the turn's id as hex digits, `created` in seconds since 1970, `root` the address of
    this installation.
    """

    key: str
    created: int
    asked: RequestEcho
    options: CallOptions
    root: str = ""

    @property
    def client_tools(self) -> frozenset[str]:
        """The names of the client's functions."""
        return frozenset(tool.name for tool in self.options.tools)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a response. `finish_reason` is the turn's; `ended` in seconds since 1970."""

    status: str
    usage: Mapping[str, int] | None = None
    finish_reason: str = ""
    error: Json | None = None
    ended: int | None = None

    @property
    def is_over(self) -> bool:
        return self.status not in ("queued", "in_progress")


def completed_state(finish_reason: str, usage: Mapping[str, int], ended: int) -> State:
    """Return the state of a completed turn: an answer that was cut short is incomplete."""
    status = "incomplete" if finish_reason in CUT_REASONS else "completed"
    return State(status, usage, finish_reason, ended=ended)


def error_of(code: str, message: str) -> Json:
    return {"code": ERROR_CODES.get(code, "server_error"), "message": message}


def response(form: ResponseFormat, state: State, output: Sequence[Json]) -> Json:
    """Return the whole object. Unknown usage is left out: OpenAI's form has no null for it."""
    reason = CUT_REASONS.get(state.finish_reason)
    usage = {} if state.usage is None else {"usage": usage_object(state.usage)}
    return {
        **_request_fields(form),
        "status": state.status,
        "completed_at": state.ended if state.status == "completed" else None,
        "error": state.error,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": list(output),
        **usage,
    }


def output_items(
    form: ResponseFormat, answer: AnswerShown, cited: Iterable[Citation], state: State
) -> list[Json]:
    """Return the output. A complete answer has a message, even an empty one; what was thought comes
    before it, unless something was said first."""
    items: list[Json] = []
    status = "completed" if answer.calls else _item_status(state)
    if answer.text or (state.status == "completed" and not answer.calls):
        items.append(message_item(form, [text_part(form, answer.text, cited)], status))
    if answer.reasoning:
        thought = reasoning_item(form, [reasoning_part(answer.reasoning)], status)
        items.insert(len(items) if answer.speaks_first else 0, thought)
    items += [call_item(form, n, call, answer.fields) for n, call in enumerate(answer.calls)]
    return items


def message_item(form: ResponseFormat, content: Sequence[Json], status: str) -> Json:
    return {
        "id": f"msg_{form.key}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": list(content),
    }


def reasoning_item(form: ResponseFormat, content: Sequence[Json], status: str) -> Json:
    """Return what was thought before and between the texts, as one item."""
    return {
        "id": f"rs_{form.key}",
        "type": "reasoning",
        "status": status,
        "summary": [],
        "content": list(content),
    }


def reasoning_part(text: str) -> Json:
    return {"type": "reasoning_text", "text": text}


def text_part(form: ResponseFormat, text: str, cited: Iterable[Citation] = ()) -> Json:
    annotations = [annotation(form, each) for each in cited]
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def call_item(
    form: ResponseFormat,
    number: int,
    call: ToolCall,
    fields: Fields,
    *,
    status: str = "completed",
    is_begun: bool = False,
) -> Json:
    """Return a call as an item. `fields` are those of the reply, which has no item of its own.
    `is_begun`: without its arguments, which are to follow."""
    of_call = dict(call.provider_fields)
    signed = {name: of_call.pop(name) for name in ("extra_content",) if name in of_call}
    return {
        **fields,
        **signed,
        **({OF_CALL: of_call} if of_call else {}),
        "id": f"fc_{form.key}_{number}",
        "type": "function_call",
        "status": status,
        **item_form(replace(call, arguments="") if is_begun else call),
    }


def annotation(form: ResponseFormat, citation: Citation) -> Json:
    """Return a citation in OpenAI's form for web pages, with the document's address."""
    return {"type": "url_citation", **citation.to_wire(form.root)}


def usage_object(usage: Mapping[str, int]) -> Json:
    """Return the usage of a turn, all its steps together."""
    return {
        "input_tokens": usage.get("prompt_tokens", 0),
        "input_tokens_details": {
            "cached_tokens": usage.get("cached_tokens", 0),
            "cache_write_tokens": 0,
        },
        "output_tokens": usage.get("completion_tokens", 0),
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_tokens", 0)},
        "total_tokens": usage.get("total_tokens", 0),
    }


def _item_status(state: State) -> str:
    if not state.is_over:
        return "in_progress"
    return "completed" if state.status == "completed" else "incomplete"


def _reasoning(effort: str | None) -> Json | None:
    return None if effort is None else {"effort": effort, "summary": None}


def _verbosity(extra: Mapping[str, Any]) -> Json:
    return {"verbosity": extra["verbosity"]} if "verbosity" in extra else {}


def _request_fields(form: ResponseFormat) -> Json:
    """Return the fields that never change. Those that the assistant chooses are null."""
    asked, options = form.asked, form.options
    return {
        "id": f"resp_{form.key}",
        "object": "response",
        "created_at": form.created,
        "access_programs": None,
        "model": asked.model,
        "background": asked.is_background,
        "instructions": asked.instructions,
        "max_output_tokens": options.max_output_tokens,
        "max_tool_calls": None,
        "metadata": dict(asked.metadata),
        "parallel_tool_calls": bool(options.extra.get("parallel_tool_calls", True)),
        "previous_response_id": asked.previous,
        "reasoning": _reasoning(options.extra.get("reasoning_effort")),
        "service_tier": "default",
        "store": asked.is_stored,
        "temperature": options.temperature,
        "text": {"format": _format(options.response_format), **_verbosity(options.extra)},
        "tool_choice": _choice(options.tool_choice),
        "tools": [_tool(tool) for tool in options.tools],
        "top_logprobs": 0,
        "top_p": options.top_p,
        "truncation": "auto",
        **({"user": asked.user} if asked.user else {}),
    }


def _format(given: Mapping[str, Any] | None) -> Json:
    if given is None:
        return {"type": "text"}
    return {"type": given["type"], **given.get("json_schema", {})}


def _choice(given: ToolChoice | None) -> str | Json:
    if isinstance(given, dict):
        return {"type": "function", "name": given["function"]["name"]}
    return given or "auto"


def _tool(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": bool(tool.strict),
    }
