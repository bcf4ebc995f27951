"""Write requests in OpenAI's deprecated form: `functions`, and one call at a time.

https://platform.openai.com/docs/api-reference/chat/create#chat-create-functions.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NotRequired, TypedDict

from engine.messages import Content, ProviderMessage, calls_in
from engine.provider.dialects.dialect import Dialect
from engine.provider.dialects.tools import FunctionDefinition, function_of
from engine.provider.model import ModelRequest
from engine.tool_calls import FunctionCall
from engine.tools import NamedFunction, ToolChoice


class CallingMessage(TypedDict):
    role: Literal["assistant"]
    content: Content | None
    function_call: NotRequired[FunctionCall]


class FunctionMessage(TypedDict):
    role: Literal["function"]
    name: str
    content: str


SentMessage = ProviderMessage | CallingMessage | FunctionMessage


class LegacyRequest(TypedDict):
    messages: list[SentMessage]
    functions: NotRequired[list[FunctionDefinition]]
    function_call: NotRequired[str | NamedFunction]


def request_fields(request: ModelRequest) -> LegacyRequest:
    fields: LegacyRequest = {"messages": list(one_call_at_a_time(request.messages, _write_call))}
    if request.tools:
        fields["functions"] = [function_of(tool) for tool in request.tools]
        if request.tool_choice is not None:
            fields["function_call"] = _function_choice(request.tool_choice)
    return fields


def one_call_at_a_time(
    messages: Sequence[ProviderMessage],
    write_call: Callable[[FunctionCall, Content | None], Iterator[CallingMessage]],
) -> Iterator[SentMessage]:
    """Yield parallel calls and their results as call, result, call, result.

    `write_call` gets the reply's text with its first call. A call without a result stands alone; a
    result without a call is dropped, as it would need a name that nobody knows.
    """
    results = _results_by_reply(messages)
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            continue
        calls = calls_in(message)
        if not calls:
            yield message
            continue
        text: Content | None = message["content"]
        for call in calls:
            yield from write_call(call["function"], text)
            text = None
            if call["id"] in results[i]:
                content = results[i][call["id"]]
                yield {"role": "function", "name": call["function"]["name"], "content": content}


def _results_by_reply(messages: Sequence[ProviderMessage]) -> dict[int, dict[str, str]]:
    """Map the position of a calling message to its results by call id."""
    results: dict[int, dict[str, str]] = {}
    latest: dict[str, str] = {}
    for i, message in enumerate(messages):
        if calls_in(message):
            latest = results[i] = {}
        elif message["role"] == "tool":
            latest.setdefault(message["tool_call_id"], message["content"])
    return results


def _write_call(function: FunctionCall, text: Content | None) -> Iterator[CallingMessage]:
    yield {"role": "assistant", "content": text, "function_call": function}


def _function_choice(choice: ToolChoice) -> str | NamedFunction:
    """Return the choice for `functions`, which has no "required"; "auto" is the nearest."""
    if isinstance(choice, str):
        return choice if choice in ("auto", "none") else "auto"
    return {"name": choice["function"]["name"]}


DIALECT: Final = Dialect(request_fields)
