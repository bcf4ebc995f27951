"""Convert messages of OpenAI's deprecated `functions` to those of `tools`.

Functions have no ids: a result belongs to the call right before it. ChatGLM3's streaming client sends
its results behind a message that has the call as text at most. Pure, and forgiving: what is malformed
is passed on as it is, for whoever reads it then to refuse.
https://platform.openai.com/docs/api-reference/chat/create#chat-create-functions
"""

from collections.abc import Mapping
from typing import Any

from engine.tool_calls import FunctionCall, wrap_function
from public_api.openai.chatglm3_functions import read_call


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
            converted.append(_calling(message, call_id, message["function_call"]))
        elif role == "function":
            if _lacks_call(converted) and isinstance(message.get("name"), str):
                call_id = f"call_{number}"
                said, function = read_call(converted[-1].get("content"), message["name"])
                converted[-1] = _calling({**converted[-1], "content": said}, call_id, function)
            converted.append(
                {"role": "tool", "tool_call_id": call_id, "content": message.get("content")}
            )
        else:
            converted.append(message)
    return converted


def _lacks_call(messages: list[Any]) -> bool:
    """Return whether the last message is an assistant's, without a call."""
    last = messages[-1] if messages else None
    return isinstance(last, dict) and last.get("role") == "assistant" and not last.get("tool_calls")


def _calling(message: Mapping[str, Any], call_id: str, function: FunctionCall) -> dict[str, Any]:
    return {**message, "tool_calls": [wrap_function(call_id, function)]}
