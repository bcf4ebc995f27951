"""Convert messages of OpenAI's deprecated `functions` to those of `tools`.

Functions have no ids: a result belongs to the call right before it. Pure, and forgiving: what is
malformed is passed on as it is, for whoever reads it then to refuse.
https://platform.openai.com/docs/api-reference/chat/create#chat-create-functions
"""

from collections.abc import Mapping
from typing import Any

from engine.tool_calls import wrap_function


def as_tool_messages(messages: Any) -> Any:
    """Convert messages with `function_call` and of role `function`; leave others untouched."""
    if not isinstance(messages, list):
        return messages
    converted: list[Any] = []
    call_id = ""
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant" and message.get("function_call") and not message.get("tool_calls"):
            call_id = f"call_{number}"
            converted.append(_calling(message, call_id))
        elif role == "function":
            converted.append(
                {"role": "tool", "tool_call_id": call_id, "content": message.get("content")}
            )
        else:
            converted.append(message)
    return converted


def _calling(message: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    return {**message, "tool_calls": [wrap_function(call_id, message["function_call"])]}
