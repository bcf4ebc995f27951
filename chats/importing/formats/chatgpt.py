"""Convert conversations of ChatGPT's data export (`conversations.json`, or `conversations-000.json`
and its sisters).

A conversation is a tree of nodes in `mapping`; `current_node` ends the branch that was shown. OpenAI
describes the form nowhere; this follows exports up to 2026 as they are described at
https://github.com/mohamed-chs/convoviz/blob/main/docs/dev/chatgpt-spec.md. Custom instructions
become a hidden system message, calls of tools tool messages; what a model thought stays apart.
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
from chats.messages.tool_calls import StoredToolCall
from engine.messages import MessageRole

_TO_PEOPLE: Final = (None, "", "all", "assistant")
_THOUGHTS: Final = ("thoughts", "reasoning_recap")
_SPOKEN: Final = "audio_transcription"


def is_chatgpt(source: Any) -> bool:
    return isinstance(source, dict) and isinstance(source.get("mapping"), dict)


def convert_chatgpt(source: dict[str, Any]) -> ConvertedChat:
    """Convert a conversation. Raises Invalid for too many messages."""
    not_taken = NotTaken()
    builder = ChatBuilder(not_taken)
    nodes = source["mapping"]
    opened: dict[str, StoredToolCall | None] = {}
    for node_id, raw in nodes.items():
        node = dict_of(raw)
        parent_id = node.get("parent")
        message = dict_of(node.get("message"))
        call = None
        if isinstance(parent_id, str) and dict_of(message.get("author")).get("role") == "tool":
            if parent_id not in opened:
                opened[parent_id] = _open_call(nodes, parent_id)
            call = opened[parent_id]
        builder.add(
            Node(
                id=node_id,
                parent_id=parent_id if isinstance(parent_id, str) else None,
                messages=list(_messages(node_id, message, call, not_taken)),
                thoughts=_thoughts(dict_of(message.get("content"))),
            )
        )
    return builder.build(
        name=source.get("title"),
        source_id=source.get("conversation_id") or source.get("id"),
        created_at=source.get("create_time"),
        active_node_id=source.get("current_node"),
    )


def _messages(
    node_id: str, message: Mapping[str, Any], call: StoredToolCall | None, not_taken: NotTaken
) -> Iterator[dict[str, Any]]:
    content = dict_of(message.get("content"))
    if not content or content.get("content_type") in _THOUGHTS:
        return
    author = dict_of(message.get("author"))
    metadata = dict_of(message.get("metadata"))
    said = {
        "created_at": message.get("create_time"),
        "model": metadata.get("model_slug"),
    }
    text = _text(content, not_taken)
    if citations := dicts_of(metadata.get("citations")):
        not_taken.add(
            "citation", "Amber's citations name passages of its libraries.", len(citations)
        )
    match author.get("role"):
        case "user":
            for file in _files(content, metadata, not_taken):
                yield {"role": MessageRole.FILE, "file": file, "created_at": said["created_at"]}
            yield {
                **said,
                "model": None,
                "role": _role_of_person(content, metadata),
                "content": text,
            }
        case "system":
            yield {**said, "role": MessageRole.HIDE_SYSTEM, "content": text}
        case "assistant" if message.get("recipient") in _TO_PEOPLE:
            yield {**said, "role": MessageRole.ASSISTANT, "content": text}
        case "assistant":
            called = _call(node_id, message, text)
            yield {**said, "role": MessageRole.TOOL_CALL, "content": "", "tool_call": called}
        case "tool":
            yield from _result(node_id, author, text, said, call)
            made = call or call_of_result(call_of(node_id, author.get("name"), {}))
            for file in _files(content, metadata, not_taken):
                yield {**said, "role": MessageRole.FILE, "file": file, "tool_call": made}
        case _ if text:
            not_taken.add("message", "Nobody is named who said it.")


def _role_of_person(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> MessageRole:
    """Return the role of what a person said, or had said once in their custom instructions."""
    if content.get("content_type") == "user_editable_context":
        return MessageRole.HIDE_SYSTEM
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    return MessageRole.HIDE_HUMAN if is_hidden else MessageRole.HUMAN


def _call(node_id: str, message: Mapping[str, Any], text: str) -> StoredToolCall:
    content = dict_of(message.get("content"))
    return call_of(node_id, message.get("recipient"), text_of(content.get("text")) or text)


def _open_call(nodes: Mapping[str, Any], parent_id: str) -> StoredToolCall | None:
    """Return the call right above a node, as a result names it, which the node may be."""
    message = dict_of(dict_of(nodes.get(parent_id)).get("message"))
    is_assistants = dict_of(message.get("author")).get("role") == "assistant"
    if not is_assistants or message.get("recipient") in _TO_PEOPLE:
        return None
    return call_of_result(call_of(parent_id, message.get("recipient"), {}))


def _result(
    node_id: str,
    author: Mapping[str, Any],
    text: str,
    said: Mapping[str, Any],
    call: StoredToolCall | None,
) -> Iterator[dict[str, Any]]:
    """Yield a result, behind a call of its own if none stands above it: a tool speaks several
    times."""
    if call is None:
        call = call_of(node_id, author.get("name"), {})
        yield {**said, "role": MessageRole.TOOL_CALL, "content": "", "tool_call": call}
    result = text or "(no text)"
    yield {**said, "role": MessageRole.TOOL, "content": result, "tool_call": call_of_result(call)}


def _text(content: Mapping[str, Any], not_taken: NotTaken) -> str:
    match content.get("content_type"):
        case "user_editable_context":
            about, wishes = content.get("user_profile"), content.get("user_instructions")
            return "\n\n".join(filter(None, [text_of(about), text_of(wishes)]))
        case "code":
            code = text_of(content.get("text"))
            language = text_of(content.get("language")).replace("unknown", "")
            return f"```{language}\n{code}\n```" if code else ""
        case "tether_quote" | "sonic_webpage":
            lines = [text_of(content.get(name)) for name in ("title", "url", "text")]
            return "\n".join(filter(None, lines))
        case "tether_browsing_display":
            return text_of(content.get("result")) or text_of(content.get("summary"))
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_of(content.get("text")) or text_of(content.get("result"))
    return "\n\n".join(filter(None, (_text_of_part(part, not_taken) for part in parts)))


def _text_of_part(part: Any, not_taken: NotTaken) -> str:
    if isinstance(part, str):
        return text_of(part)
    kind = dict_of(part).get("content_type")
    if kind == _SPOKEN:
        return text_of(part.get("text"))
    if _pointers(part) == [] and part is not None:
        not_taken.add(
            "part of a message", f"Its kind is not known: {text_of(kind)[:80] or 'none'}."
        )
    return ""


def _pointers(part: Any) -> list[str]:
    """Return the references of a part to files; of a video call it has several, one level down."""
    given = dict_of(part)
    several = [given, *(each for each in given.values() if isinstance(each, dict))]
    found = (each.get(name) for each in several for name in ("asset_pointer",))
    named = [text_of(pointer) for pointer in found if pointer]
    return [pointer for pointer in named if pointer]


def _files(
    content: Mapping[str, Any], metadata: Mapping[str, Any], not_taken: NotTaken
) -> Iterator[SentFile]:
    """Yield the files of a message: those attached, and those that stand in its text."""
    seen: set[str] = set()
    for attached in dicts_of(metadata.get("attachments")):
        reference = text_of(attached.get("id"))
        seen.add(reference)
        yield SentFile(text_of(attached.get("name")) or reference, reference)
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else ():
        for pointer in _pointers(part):
            reference = pointer.rpartition("://")[2].partition("#")[0]
            if reference not in seen:
                seen.add(reference)
                yield SentFile(reference, pointer)


def _thoughts(content: Mapping[str, Any]) -> str:
    if content.get("content_type") != "thoughts":
        return ""
    thoughts = dicts_of(content.get("thoughts"))
    said = [[text_of(each.get(name)) for name in ("summary", "content")] for each in thoughts]
    return "\n\n".join("\n".join(filter(None, each)) for each in said)
