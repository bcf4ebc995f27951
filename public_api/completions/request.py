"""Read a request of POST /v1/chat/completions into values: what a turn is asked, in which form.

Pure. What it reads was checked by `public_api.completions.serializers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from chats.context.call_options import CallOptions
from engine.provider.parameters import VENDOR
from engine.tools import ToolSpec
from public_api.openai.function_fields import response_format_of
from public_api.openai.messages import RequestMessage

PASSED_ON = ("presence_penalty", "frequency_penalty", *sorted(VENDOR))
"""Fields that go to the provider unchanged."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request. `is_legacy`: the client offers `functions`, which are called one at a time;
    `writes_calls`: it is one of ChatGLM3's, and wants them as text, too.

    `user` and `chat_id` are empty when they are not named.
    """

    model: str
    messages: Sequence[RequestMessage]
    options: CallOptions
    streams: bool = False
    includes_usage: bool = False
    is_legacy: bool = False
    writes_calls: bool = False
    user: str = ""
    chat_id: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        return cls(
            model=given["model"],
            messages=given["messages"],
            options=_options(given),
            streams=bool(given.get("stream")),
            includes_usage=bool((given.get("stream_options") or {}).get("include_usage")),
            is_legacy=bool(given.get("functions")),
            writes_calls=given["writes_calls"],
            user=given.get("user") or "",
            chat_id=(given.get("metadata") or {}).get("chat_id") or "",
        )


def _options(given: Mapping[str, Any]) -> CallOptions:
    functions: Sequence[ToolSpec] = given.get("functions") or ()
    tools: Sequence[ToolSpec] = given.get("tools") or ()
    extra = {name: given[name] for name in PASSED_ON if given.get(name) is not None}
    if functions or given.get("parallel_tool_calls") is not None:
        extra["parallel_tool_calls"] = bool(given.get("parallel_tool_calls")) and not functions
    return CallOptions(
        is_unattended=True,
        tools=tuple(tools or functions),
        tool_choice=given.get("function_call" if functions else "tool_choice"),
        temperature=given.get("temperature"),
        top_p=given.get("top_p"),
        max_output_tokens=given.get("max_completion_tokens") or given.get("max_tokens"),
        stop=tuple(given.get("stop") or ()),
        seed=given.get("seed"),
        response_format=response_format_of(given.get("response_format")),
        extra=extra,
    )
