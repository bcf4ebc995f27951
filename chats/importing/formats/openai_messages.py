"""Convert conversations in the form of OpenAI's chat requests.

    [{"role": "user", "content": "Hi"}, ...]      or {"messages": [...], "id"?, "title"?, "model"?}

One conversation, a list of them, or one on each line (as for fine-tuning). Contents are texts or
lists of parts. Format: https://platform.openai.com/docs/api-reference/chat/create. What others add
and stays unambiguous is read as well: `reasoning_content`, `timestamp`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from chats.importing.converted import (
    ChatBuilder,
    ConvertedChat,
    Node,
    NotTaken,
    SentFile,
    call_of,
    call_of_result,
    dict_of,
    dicts_of,
    text_of,
)
from chats.importing.data_urls import file_of_base64, file_of_data_url
from chats.messages.tool_calls import StoredToolCall
from engine.messages import MessageRole

_ROLES: Final = {
    "user": MessageRole.HUMAN,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "tool": MessageRole.TOOL,
    "function": MessageRole.TOOL,
}
_ONLY_OPENAI: Final = frozenset({"user", "developer", "function"})
_ONLY_AMBER: Final = frozenset(set(MessageRole) - set(_ROLES))
_TIMES: Final = ("created_at", "create_time", "timestamp")


def is_openai_messages(source: Any) -> bool:
    """Return whether it speaks of users: Amber has other roles, and a form of its own for calls."""
    if isinstance(source, list):
        return any("role" in each for each in dicts_of(source))
    if "chat" in dict_of(source):
        return False
    messages = dicts_of(dict_of(source).get("messages"))
    roles = {text_of(each.get("role")) for each in messages}
    has_parts = any("tool_calls" in m or isinstance(m.get("content"), list) for m in messages)
    return not roles & _ONLY_AMBER and bool(roles & _ONLY_OPENAI or has_parts)


def convert_openai_messages(source: Any) -> ConvertedChat:
    """Convert a conversation. Raises Invalid for too many messages."""
    about = dict_of(source)
    not_taken = NotTaken()
    builder = ChatBuilder(not_taken)
    calls: dict[str, StoredToolCall] = {}
    before = None
    messages = about["messages"] if about else source
    for place, raw in enumerate(messages):
        message = dict_of(raw)
        said = list(_messages(f"call-{place}", message, calls, not_taken))
        model = message.get("model") or about.get("model")
        when = next((message[name] for name in _TIMES if message.get(name)), None)
        named = [
            {**each, "created_at": when, "model": model if _is_models(each) else None}
            for each in said
        ]
        node = Node(f"{place}", before, named, _thoughts(message))
        builder.add(node)
        before = node.id
    return builder.build(
        name=about.get("title") or about.get("name"),
        source_id=about.get("id"),
        created_at=next((about[name] for name in _TIMES if about.get(name)), None),
        active_node_id=before,
    )


def _is_models(message: Mapping[str, Any]) -> bool:
    return message["role"] in (MessageRole.ASSISTANT, MessageRole.TOOL_CALL)


def _messages(
    call_id: str,
    message: Mapping[str, Any],
    calls: dict[str, StoredToolCall],
    not_taken: NotTaken,
) -> Iterator[dict[str, Any]]:
    role = _ROLES.get(text_of(message.get("role")))
    if role is None:
        not_taken.add("message", "Its role is not one of OpenAI's.")
        return
    content = message.get("content")
    parts = dicts_of(content)
    for file in _files(parts):
        yield {"role": MessageRole.FILE, "file": file}
    texts = [text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts]
    text = text_of(content) or "\n\n".join(filter(None, texts)) or text_of(message.get("refusal"))
    if role == MessageRole.TOOL:
        answered_id = text_of(message.get("tool_call_id")) or text_of(message.get("name"))
        call = calls.pop(answered_id, None)
        if call is None:
            not_taken.add("result of a tool", "No call stands before it.")
            return
        result = {"role": role, "content": text or "(no text)"}
        yield {**result, "tool_call": call_of_result(call)}
        return
    asked = list(_calls(call_id, message))
    yield {"role": role, "content": text}
    for answered_by, call in asked:
        calls[answered_by] = call
        yield {"role": MessageRole.TOOL_CALL, "tool_call": {**call, "reply_id": call_id}}


def _calls(call_id: str, message: Mapping[str, Any]) -> Iterator[tuple[str, StoredToolCall]]:
    """Yield the calls of an answer, each with the id by which its result names it."""
    for place, given in enumerate(dicts_of(message.get("tool_calls"))):
        function = dict_of(given.get("function"))
        own_id = text_of(given.get("id")) or f"{call_id}-{place}"
        yield own_id, call_of(own_id, function.get("name"), function.get("arguments"))
    if old := dict_of(message.get("function_call")):
        name = text_of(old.get("name"))
        yield name, call_of(call_id, name, old.get("arguments"))


def _files(parts: list[dict[str, Any]]) -> Iterator[SentFile]:
    for part in parts:
        match part.get("type"):
            case "image_url" | "input_image":
                given = part.get("image_url")
                url = text_of(given) or text_of(dict_of(given).get("url"))
                is_here = url.startswith("data:")
                yield file_of_data_url(url) if is_here else SentFile(url[:200] or "image")
            case "input_audio":
                sound = dict_of(part.get("input_audio"))
                name = f"audio.{text_of(sound.get('format'))[:10] or 'wav'}"
                yield file_of_base64(text_of(sound.get("data")), name=name)
            case "file" | "input_file":
                file = dict_of(part.get("file")) or part
                name = text_of(file.get("filename")) or "file"
                data = text_of(file.get("file_data"))
                is_url = data.startswith("data:")
                yield (
                    file_of_data_url(data, name=name) if is_url else file_of_base64(data, name=name)
                )


def _thoughts(message: Mapping[str, Any]) -> str:
    return text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
