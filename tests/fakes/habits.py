"""What the fake provider's models send beyond OpenAI's form, and how they refuse what comes back wrong.

    gemini      signs the first call of each reply (extra_content), and wants this very signature on it
                as long as the turn runs
    deepseek    thinks before it speaks (reasoning_content), and wants it back on every answer of a turn
                that calls tools, later on too; as its older sibling did it refuses the thoughts of
                other turns
    strict      refuses every field that OpenAI's form does not have
    mistral     thinks in parts of its content; refuses such fields, ids of calls that are not nine letters
                and digits, and a user after a tool
    anthropic   refuses such fields, ids of calls with other characters, and one id for two calls
    openai      refuses such fields, and ids of calls of more than 40 characters
    chatglm3    refuses every name that its own server does not know, and texts that are none
    tags        thinks in <think> at the start of its text
    reasoning   thinks in `reasoning`, and counts what it thought

Pure. Sources: https://ai.google.dev/gemini-api/docs/thought-signatures,
https://api-docs.deepseek.com/guides/thinking_mode.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

Json = dict[str, Any]
Habit = Literal[
    "",
    "gemini",
    "deepseek",
    "strict",
    "mistral",
    "anthropic",
    "openai",
    "chatglm3",
    "tags",
    "reasoning",
]

CALL_ID = {"deepseek": "call_deep", "anthropic": "toolu_"}
"""So that it knows its own calls from others'."""

THINKERS = ("deepseek", "mistral", "think-tags", "reasoning")
"""What the models are called that think, each in a way of its own."""

STRICT = ("strict", "mistral", "anthropic", "openai")
CALL_IDS = {
    "mistral": re.compile(r"[a-zA-Z0-9]{9}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    "openai": re.compile(r".{1,40}"),
}
ID_REFUSALS = {
    "mistral": "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9.",
    "anthropic": "messages.1.content.0.tool_use.id: {} should match pattern '^[a-zA-Z0-9_-]+$'",
    "openai": "Invalid 'messages[1].tool_calls[0].id': string too long: {}.",
}
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Gemini takes for a call that it did not make."""

_MESSAGE_NAMES = {"role", "content", "name", "tool_calls", "tool_call_id", "refusal"}
_CALL_NAMES = {"id", "type", "function"}


def signature(call_id: str) -> Json:
    return {"google": {"thought_signature": f"signed:{call_id}"}}


def thought(call_id: str) -> str:
    """What was thought before this call, or before the answer that follows it."""
    return f"I thought of {call_id} for a while."


def refused(habit: Habit, messages: Sequence[Json]) -> str:
    """Why this conversation is refused, or ""."""
    if habit == "gemini":
        return _unsigned(messages)
    if habit == "deepseek":
        return next(filter(None, map(_thoughtless, _turns(messages))), "")
    if habit == "chatglm3":
        return _not_of_chatglm3(messages)
    if habit not in STRICT:
        return ""
    return _unknown(messages) or _wrong_ids(habit, messages)


def _wrong_ids(habit: str, messages: Sequence[Json]) -> str:
    used: set[str] = set()
    for before, message in zip(({"role": ""}, *messages), messages, strict=False):
        if habit == "mistral" and (before["role"], message["role"]) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'"
        for call in message.get("tool_calls") or []:
            is_again = habit == "anthropic" and call["id"] in used
            if is_again or (habit in CALL_IDS and not CALL_IDS[habit].fullmatch(call["id"])):
                return ID_REFUSALS[habit].format(call["id"])
            used.add(call["id"])
        if message["role"] == "tool" and message["tool_call_id"] not in used and habit in CALL_IDS:
            return f"No call {message['tool_call_id']} came before this result."
    return ""


def _not_of_chatglm3(messages: Sequence[Json]) -> str:
    """Its `ChatMessage`: https://github.com/THUDM/ChatGLM3/blob/main/openai_api_demo/api_server.py."""
    for message in messages:
        unknown = {*message} - {"role", "content", "name", "function_call"}
        if unknown or message["role"] not in ("user", "assistant", "system", "function"):
            return f"Invalid request: {sorted(unknown)}, {message['role']}"
        if not isinstance(message["content"], str):
            return "Input should be a valid string"
    return ""


def _turns(messages: Sequence[Json]) -> list[list[Json]]:
    turns: list[list[Json]] = [[]]
    for message in messages:
        if message["role"] == "user":
            turns.append([])
        turns[-1].append(message)
    return turns


def _unsigned(messages: Sequence[Json]) -> str:
    for message in _turns(messages)[-1]:
        for call in (message.get("tool_calls") or [])[:1]:
            if call.get("extra_content") not in (signature(call["id"]), UNSIGNED):
                return "Function call is missing a thought_signature in functionCall parts."
    return ""


def _thoughtless(turn: Sequence[Json]) -> str:
    said = [message for message in turn if message["role"] == "assistant"]
    if not any(message.get("tool_calls") for message in said):
        has_thoughts = any("reasoning_content" in message for message in said)
        return "Thoughts of a turn without calls may not come back." if has_thoughts else ""
    for message in said:
        call_id = message["tool_calls"][0]["id"] if message.get("tool_calls") else ""
        is_own = call_id.startswith(CALL_ID["deepseek"])
        known = message.get("reasoning_content")
        if known is None or (is_own and known != thought(call_id)):
            return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return ""


def _unknown(messages: Sequence[Json]) -> str:
    for message in messages:
        unknown = {*message} - _MESSAGE_NAMES
        for call in message.get("tool_calls") or []:
            unknown |= {*call} - _CALL_NAMES
        if unknown:
            return f"Unrecognized request arguments: {sorted(unknown)}"
    return ""
