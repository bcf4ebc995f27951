"""Convert chats that Open WebUI exported (`chat-export-….json`).

    [{"id", "title", "created_at", "chat": {"models", "params": {"system"}, "history": {"messages": {
        id: {"parentId", "role", "content", "model", "timestamp", "files", "output"}}, "currentId"}}}]

Answers of several models to one question are siblings. What a model thought and called stands in
`output`, or in older chats in the text, as `<details type="reasoning">` and `<details
type="tool_calls">`. Format: https://docs.openwebui.com and the models of `open-webui/open-webui`.
"""

import html
import json
import re
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
from chats.importing.data_urls import file_of_data_url
from engine.messages import MessageRole

_DETAILS: Final = '<details type="'
_END: Final = "</details>"
_ATTRIBUTE: Final = re.compile(r'([a-z_]{1,40}+)="([^"]*+)"')


def is_open_webui(source: Any) -> bool:
    return _history(source) is not None


def convert_open_webui(source: dict[str, Any]) -> ConvertedChat:
    """Convert a chat. Raises Invalid for too many messages."""
    chat = _chat(source)
    history = _history(source) or {}
    not_taken = NotTaken()
    builder = ChatBuilder(not_taken)
    for message_id, raw in history["messages"].items():
        message = dict_of(raw)
        parent_id = message.get("parentId")
        said = list(_messages(message_id, message, not_taken))
        builder.add(
            Node(
                id=message_id,
                parent_id=parent_id if isinstance(parent_id, str) else None,
                messages=said,
                thoughts=_thoughts(message),
            )
        )
    prompt = dict_of(chat.get("params")).get("system") or chat.get("system")
    return builder.build(
        name=source.get("title") or chat.get("title"),
        prompt=prompt,
        source_id=source.get("id") or chat.get("id"),
        created_at=source.get("created_at") or chat.get("timestamp"),
        active_node_id=history.get("currentId"),
    )


def _chat(source: Any) -> dict[str, Any]:
    """Return the chat itself, which older exports and single ones do not wrap."""
    given = dict_of(source)
    return dict_of(given.get("chat")) or given


def _history(source: Any) -> dict[str, Any] | None:
    history = dict_of(_chat(source).get("history"))
    return history if isinstance(history.get("messages"), dict) else None


def _messages(
    message_id: str, message: Mapping[str, Any], not_taken: NotTaken
) -> Iterator[dict[str, Any]]:
    said = {"created_at": message.get("timestamp")}
    for file in _files(message, not_taken):
        yield {**said, "role": MessageRole.FILE, "file": file}
    text = text_of(message.get("content"))
    match message.get("role"):
        case "user":
            yield {**said, "role": MessageRole.HUMAN, "content": text}
        case "system":
            yield {**said, "role": MessageRole.SYSTEM, "content": text}
        case "assistant":
            written = {**said, "model": message.get("model") or message.get("modelName")}
            for each in _answer(message_id, message, text):
                yield {**written, **each}
            sources = dicts_of(message.get("sources")) or dicts_of(message.get("citations"))
            why = "Amber's citations name passages of its libraries."
            not_taken.add("citation", why, len(sources))
        case _ if text:
            not_taken.add("message", "Nobody is named who said it.")
    if message.get("error"):
        not_taken.add("error", "It is no part of what was said.")


def _answer(message_id: str, message: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    items = dicts_of(message.get("output"))
    if any(item.get("type") == "message" for item in items):
        yield from _of_items(message_id, items)
        return
    plain, blocks = _split_details(text)
    for place, (kind, attributes, inner) in enumerate(blocks):
        if kind != "tool_calls":
            continue
        name, arguments = attributes.get("name"), _unquote(attributes.get("arguments", ""))
        call_id = attributes.get("id") or f"{message_id[:40]}-{place}"
        call = call_of(call_id, name, arguments)
        result = _unquote(attributes.get("result", "")) or inner or "(no text)"
        yield {"role": MessageRole.TOOL_CALL, "tool_call": call}
        yield {"role": MessageRole.TOOL, "content": result, "tool_call": call_of_result(call)}
    yield {"role": MessageRole.ASSISTANT, "content": plain}


def _unquote(text: str) -> str:
    """Return a text that stands as JSON in an attribute."""
    try:
        return text_of(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text


def _of_items(message_id: str, items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    calls = {}
    for item in items:
        match item.get("type"):
            case "message":
                yield {"role": MessageRole.ASSISTANT, "content": _text_of_item(item)}
            case "function_call":
                call_id = item.get("call_id") or message_id
                call = call_of(call_id, item.get("name"), item.get("arguments"))
                calls[call["id"]] = call
                yield {"role": MessageRole.TOOL_CALL, "tool_call": call}
            case "function_call_output":
                call_id = item.get("call_id") or message_id
                found = calls.get(call_of(call_id, "", None)["id"])
                if found is not None:
                    text = _text_of_item(item) or "(no text)"
                    yield {
                        "role": MessageRole.TOOL,
                        "content": text,
                        "tool_call": call_of_result(found),
                    }


def _text_of_item(item: Mapping[str, Any]) -> str:
    content = item.get("content") or item.get("output")
    return text_of(content) or "".join(text_of(part.get("text")) for part in dicts_of(content))


def _thoughts(message: Mapping[str, Any]) -> str:
    items = dicts_of(message.get("output"))
    thoughts = [_text_of_item(item) for item in items if item.get("type") == "reasoning"]
    if not thoughts:
        _, blocks = _split_details(text_of(message.get("content")))
        thoughts = [inner for kind, _, inner in blocks if kind == "reasoning"]
    return "\n\n".join(filter(None, thoughts))


def _split_details(text: str) -> tuple[str, list[tuple[str, dict[str, str], str]]]:
    """Return the text without its blocks, and of each its type, its attributes and what it holds.

    Linear. A block that is not closed stays text.
    """
    plain: list[str] = []
    blocks: list[tuple[str, dict[str, str], str]] = []
    place = 0
    while (start := text.find(_DETAILS, place)) >= 0:
        end = text.find(_END, start)
        head = text.find(">", start)
        if end < 0 or not start < head < end:
            break
        attributes = {
            name: _unescape(value) for name, value in _ATTRIBUTE.findall(text[start:head])
        }
        inner = text[head + 1 : end].partition("</summary>")[2] or text[head + 1 : end]
        lines = (line.removeprefix(">").strip() for line in _unescape(inner).splitlines())
        blocks.append((attributes.get("type", ""), attributes, "\n".join(lines).strip()))
        plain.append(text[place:start])
        place = end + len(_END)
    plain.append(text[place:])
    return "".join(plain).strip("\n"), blocks


def _unescape(text: str) -> str:
    """Return the text of HTML; as it is, where it names a character by thousands of digits."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


def _files(message: Mapping[str, Any], not_taken: NotTaken) -> Iterator[SentFile]:
    for given in dicts_of(message.get("files")):
        stored = dict_of(given.get("file"))
        name = text_of(given.get("name")) or text_of(stored.get("filename"))
        text = text_of(dict_of(stored.get("data")).get("content"))
        url = text_of(given.get("url"))
        if url.startswith("data:"):
            yield file_of_data_url(url, name=name)
        elif text:
            not_taken.add("attachment", "The export holds its text alone, which was taken.")
            yield SentFile(f"{name or 'file'}.txt", data=text.encode())
        else:
            yield SentFile(name or "file")
