"""Write what a model was sent and what it answered, as OpenTelemetry's conventions want it in a span.

Only for organizations that allow it. Images are left out, and long texts cut: a span is no archive.
https://github.com/open-telemetry/semantic-conventions-genai (gen-ai-input-messages.json,
gen-ai-output-messages.json)
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from amber.lib.tracing.spans import cut_text
from engine.messages import ProviderMessage
from engine.tool_calls import ToolCall

MOST_MESSAGES: Final = 50
"""The last ones are written."""


def written_request(messages: Sequence[ProviderMessage]) -> str:
    return _json([_message(each) for each in messages[-MOST_MESSAGES:]])


def written_reply(text: str, calls: Sequence[ToolCall], finish_reason: str) -> str:
    called = [_call(call.id, call.name, call.arguments) for call in calls]
    parts = [*([_text(text)] if text else []), *called]
    return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        answer = {"type": "tool_call_response", "id": message.get("tool_call_id")}
        return {"role": role, "parts": [{**answer, "response": cut_text(str(content))}]}
    parts = (
        [_text(content)] if isinstance(content, str) else [_part(each) for each in content or ()]
    )
    calls = [
        _call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return {"role": role, "parts": [*parts, *calls]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    return _text(part["text"]) if "text" in part else {"type": str(part.get("type", "other"))}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": cut_text(text)}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": cut_text(arguments)}


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
