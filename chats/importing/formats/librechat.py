"""Convert conversations that LibreChat exported as JSON.

    {"conversationId", "title", "options": {"model", "promptPrefix"}, "messages" or "messagesTree":
        [{"messageId", "parentMessageId", "isCreatedByUser", "sender", "text", "content", "model",
          "createdAt", "files", "children"}]}

Messages stand in a list, or (exported "recursively") below each other in `children`. Newer ones have
`content`, parts of type text, think and tool_call, instead of `text`. Format: LibreChat's
`useExportConversation` and `api/server/utils/import`, https://github.com/danny-avila/LibreChat.
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
from engine.messages import MessageRole

_LISTS: Final = ("messagesTree", "messages")


def is_librechat(source: Any) -> bool:
    given = dict_of(source)
    return "conversationId" in given and any(isinstance(given.get(name), list) for name in _LISTS)


def convert_librechat(source: dict[str, Any]) -> ConvertedChat:
    """Convert a conversation. Raises Invalid for too many messages."""
    not_taken = NotTaken()
    builder = ChatBuilder(not_taken)
    options = dict_of(source.get("options"))
    last = None
    first_time = None
    for place, (message, above_id) in enumerate(_flat(source)):
        message_id = text_of(message.get("messageId")) or f"#{place}"
        parent_id = message.get("parentMessageId", above_id)
        first_time = first_time or message.get("createdAt")
        builder.add(
            Node(
                id=message_id,
                parent_id=parent_id if isinstance(parent_id, str) else above_id,
                messages=list(_messages(message_id, message, not_taken)),
                thoughts=_thoughts(message),
            )
        )
        last = message_id
    return builder.build(
        name=source.get("title"),
        prompt=options.get("promptPrefix") or options.get("system"),
        source_id=source.get("conversationId"),
        created_at=first_time,
        active_node_id=last,
    )


def _flat(source: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield each message with the id of the one that it was nested in, parents first."""
    given = next(source[name] for name in _LISTS if isinstance(source.get(name), list))
    waiting: list[tuple[dict[str, Any], str | None]] = [(m, None) for m in dicts_of(given)[::-1]]
    while waiting:
        message, above_id = waiting.pop()
        yield message, above_id
        own_id = text_of(message.get("messageId")) or None
        waiting += [(m, own_id) for m in dicts_of(message.get("children"))[::-1]]


def _messages(
    message_id: str, message: Mapping[str, Any], not_taken: NotTaken
) -> Iterator[dict[str, Any]]:
    if message.get("error") is True:
        not_taken.add("error", "It is no part of what was said.")
        return
    said = {"created_at": message.get("createdAt")}
    for file in _files(message):
        yield {**said, "role": MessageRole.FILE, "file": file}
    if message.get("isCreatedByUser") is True:
        yield {**said, "role": MessageRole.HUMAN, "content": _text(message)}
        return
    written = {**said, "model": message.get("model") or message.get("sender")}
    parts = dicts_of(message.get("content"))
    if not parts:
        yield {**written, "role": MessageRole.ASSISTANT, "content": text_of(message.get("text"))}
        return
    for place, part in enumerate(parts):
        for each in _of_part(f"{message_id[:40]}-{place}", part, not_taken):
            yield {**written, **each}


def _of_part(
    call_id: str, part: Mapping[str, Any], not_taken: NotTaken
) -> Iterator[dict[str, Any]]:
    match part.get("type"):
        case "text":
            yield {"role": MessageRole.ASSISTANT, "content": _value(part.get("text"))}
        case "tool_call":
            made = dict_of(part.get("tool_call"))
            function = dict_of(made.get("function"))
            name = made.get("name") or function.get("name")
            arguments = made.get("args") or function.get("arguments")
            output = text_of(made.get("output") or function.get("output"))
            call = call_of(made.get("id") or call_id, name, arguments)
            result = {"role": MessageRole.TOOL, "content": output or "(no text)"}
            yield {"role": MessageRole.TOOL_CALL, "tool_call": call}
            yield {**result, "tool_call": call_of_result(call)}
        case "think":
            pass  # it stays apart, with the answer
        case "error":
            not_taken.add("error", "It is no part of what was said.")
        case kind:
            named = text_of(kind)[:80] or "none"
            not_taken.add("part of a message", f"Its kind is not known: {named}.")


def _text(message: Mapping[str, Any]) -> str:
    parts = dicts_of(message.get("content"))
    texts = [_value(part.get("text")) for part in parts if part.get("type") == "text"]
    return text_of(message.get("text")) or "\n\n".join(filter(None, texts))


def _thoughts(message: Mapping[str, Any]) -> str:
    parts = dicts_of(message.get("content"))
    return "\n\n".join(_value(part.get("think")) for part in parts if part.get("type") == "think")


def _value(given: Any) -> str:
    return text_of(given) or text_of(dict_of(given).get("value"))


def _files(message: Mapping[str, Any]) -> Iterator[SentFile]:
    for name in ("files", "attachments"):
        for given in dicts_of(message.get(name)):
            file_name = text_of(given.get("filename")) or "file"
            text = text_of(given.get("text"))
            yield SentFile(file_name, data=text.encode() if text else None)
