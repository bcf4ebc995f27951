"""Read a request of POST /v1/responses into values: what a turn is asked, and what is echoed.

Pure. What it reads was checked by `public_api.responses.serializers`. A response is made from its
turn alone, so what only its client knows is kept with the turn (`RequestEcho`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from chats.context.call_options import CallOptions
from public_api.openai.function_fields import response_format_of
from public_api.responses.items import Item
from public_api.responses.names import ECHO, RequestEcho

CHAT: Final = "chat_id"
"""The name in `metadata` that continues a stored chat."""


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request. `options` already hold its echo."""

    asked: RequestEcho
    items: Sequence[Item]
    options: CallOptions
    streams: bool = False

    @property
    def chat_id(self) -> str:
        """The chat to continue; empty when none is named."""
        return self.asked.metadata.get(CHAT, "")

    @classmethod
    def read(cls, given: Mapping[str, Any], *, is_async: bool = False) -> Self:
        """Read the validated fields. `is_async`: a header asks for the background, too."""
        asked = RequestEcho(
            model=given["model"],
            instructions=given.get("instructions"),
            previous=given.get("previous_response_id") or None,
            metadata=given.get("metadata") or {},
            is_stored=given.get("store") is not False,
            is_background=bool(given.get("background")) or is_async,
            user=given.get("user") or "",
        )
        return cls(asked, given["input"], _options(given, asked), bool(given.get("stream")))


def _options(given: Mapping[str, Any], asked: RequestEcho) -> CallOptions:
    text = given.get("text") or {}
    extra = {
        "parallel_tool_calls": given.get("parallel_tool_calls"),
        "reasoning_effort": (given.get("reasoning") or {}).get("effort"),
        "verbosity": text.get("verbosity"),
    }
    return CallOptions(
        is_unattended=True,
        prompts=(asked.instructions,) if asked.instructions else (),
        tools=tuple(given.get("tools") or ()),
        tool_choice=given.get("tool_choice"),
        temperature=given.get("temperature"),
        top_p=given.get("top_p"),
        max_output_tokens=given.get("max_output_tokens"),
        response_format=_response_format(text.get("format")),
        extra={name: value for name, value in extra.items() if value is not None},
        echo={ECHO: asdict(asked)},
    )


def _response_format(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the format as chat completions have it: the schema one level deeper."""
    if given is None:
        return None
    schema = {name: value for name, value in given.items() if name != "type"}
    return response_format_of({"type": given["type"], "json_schema": schema})
