"""Exports of other systems, small, written after their documented forms; how to spoil and to send them."""

import base64
import io
import json
import pickle
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.exceptions import ValidationError

from amber.lib.errors import AmberError
from chats.importing.formats import format_of
from chats.models import ChatMessage
from libraries.tests.stored_files import picture
from tests.fixtures.personas import Persona, api

IMPORT = "/api/v1/chats/import/"
PNG = picture()
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


# -- ChatGPT ---------------------------------------------------------------------------------------


def chatgpt_node(
    node_id: str, parent: str | None, role: str = "", content: Any = "", **message: Any
) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    if not role:
        return {"id": node_id, "parent": parent, "children": [], "message": None}
    author = {"role": role, "name": message.pop("name", None), "metadata": {}}
    said = {"id": node_id, "author": author, "content": content, "recipient": "all"}
    said |= {"create_time": 1_700_000_000.5, "metadata": {}} | message
    return {"id": node_id, "parent": parent, "children": [], "message": said}


def chatgpt(*nodes: dict[str, Any], current: str = "", **fields: Any) -> dict[str, Any]:
    conversation = {
        "title": "Rain",
        "create_time": 1_700_000_000.0,
        "mapping": {node["id"]: node for node in nodes},
        "current_node": current or (nodes[-1]["id"] if nodes else None),
        "conversation_id": "6b0f0d9c-0000-4000-8000-000000000001",
    }
    return conversation | fields


def chatgpt_conversation() -> dict[str, Any]:
    """One with everything: instructions, an edited question, thoughts, a tool, an image."""
    context = {
        "content_type": "user_editable_context",
        "user_profile": "I keep bees.",
        "user_instructions": "Be brief.",
    }
    image = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00ab"}
    looked = {"content_type": "multimodal_text", "parts": [image, "What is this?"]}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Look", "content": "A bee."}]}
    code = {"content_type": "code", "language": "unknown", "text": "print(6 * 7)"}
    output = {"content_type": "execution_output", "text": "42"}
    attached = {"attachments": [{"id": "file_00ab", "name": "bee.png", "mime_type": "image/png"}]}
    return chatgpt(
        chatgpt_node("root", None),
        chatgpt_node("ctx", "root", "user", context, metadata={"is_user_system_message": True}),
        chatgpt_node("q1", "ctx", "user", "Will it rain?"),
        chatgpt_node("a1", "q1", "assistant", "No.", metadata={"model_slug": "gpt-4o"}),
        chatgpt_node("q2", "ctx", "user", looked, metadata=attached),
        chatgpt_node("t2", "q2", "assistant", thoughts),
        chatgpt_node("a2", "t2", "assistant", "A bee.", metadata={"model_slug": "o3"}),
        chatgpt_node("q3", "a2", "user", "6 * 7?"),
        chatgpt_node("c3", "q3", "assistant", code, recipient="python"),
        chatgpt_node("r3", "c3", "tool", output, name="python"),
        chatgpt_node("a3", "r3", "assistant", "42.", metadata={"citations": [{"start_ix": 0}]}),
    )


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def chatgpt_zip() -> bytes:
    """The newer form: many files."""
    other = chatgpt(
        chatgpt_node("root", None), chatgpt_node("q", "root", "user", "Hi"), conversation_id="c2"
    )
    return zipped(
        {
            "user.json": '{"id": "user-1"}',
            "shared_conversations.json": '[{"id": "s"}]',
            "conversations-000.json": json.dumps([chatgpt_conversation()]),
            "conversations-001.json": json.dumps([other | {"title": "Hi"}]),
            "__MACOSX/._conversations-000.json": "junk",
            "file_00ab-sanitized.png": PNG,
        }
    )


# -- Open WebUI ------------------------------------------------------------------------------------


def open_webui_chat() -> dict[str, Any]:
    """Two models answer one question; one thinks and calls a tool, the other does so as of old."""
    old = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n'
        "&gt; Think of\n&gt; clouds.\n</details>\n"
        '<details type="tool_calls" done="true" id="call_1" name="weather" '
        'arguments="&quot;{\\&quot;city\\&quot;: \\&quot;Paris\\&quot;}&quot;" result="&quot;wet&quot;">\n'
        "<summary>Tool Executed</summary>\n</details>\nYes."
    )
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Look out."}]},
        {"type": "function_call", "call_id": "c1", "name": "look.out", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "dry"}],
        },
        {"type": "message", "content": [{"type": "output_text", "text": "No."}]},
    ]
    image = {"type": "image", "url": DATA_URL}
    document = {"type": "file", "name": "a.pdf", "file": {"data": {"content": "Read me."}}}
    gone = {"type": "image", "url": "/api/v1/files/9/content"}
    messages = {
        "u1": {
            "id": "u1",
            "parentId": None,
            "childrenIds": ["a1", "a2"],
            "role": "user",
            "content": "Will it rain?",
            "timestamp": 1_700_000_000,
            "files": [image, document, gone],
        },
        "a1": {
            "id": "a1",
            "parentId": "u1",
            "role": "assistant",
            "content": old,
            "model": "llama3:8b",
            "timestamp": 1_700_000_010,
        },
        "a2": {
            "id": "a2",
            "parentId": "u1",
            "role": "assistant",
            "content": "ignored",
            "output": output,
            "model": "qwen3",
            "timestamp": 1_700_000_011,
            "sources": [{}, {}],
        },
    }
    chat = {
        "title": "Rain",
        "models": ["llama3:8b", "qwen3"],
        "params": {"system": "Be brief."},
        "history": {"messages": messages, "currentId": "a2"},
    }
    return {"id": "w1", "title": "Rain", "chat": chat, "created_at": 1_700_000_000}


# -- LibreChat -------------------------------------------------------------------------------------


def librechat_message(
    message_id: str, parent: str = "", *, is_user: bool = False, **fields: Any
) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "parentMessageId": parent or "00000000-0000-0000-0000-000000000000",
        "isCreatedByUser": is_user,
        "sender": "User" if is_user else "GPT-4",
        "createdAt": "2024-04-09T14:32:05.230Z",
        "text": "",
    } | fields


def librechat_conversation() -> dict[str, Any]:
    call = {"id": "call_9", "name": "weather", "args": '{"city": "Paris"}', "output": "wet"}
    parts = [
        {"type": "think", "think": "Clouds."},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": {"value": "Yes."}},
    ]
    files = [{"filename": "a.pdf", "type": "application/pdf", "file_id": "f1"}]
    return {
        "conversationId": "af1ea676-f525-444f-a9ed-7c8dbf062733",
        "title": "Rain",
        "options": {"model": "gpt-4", "promptPrefix": "Be brief."},
        "messages": [
            librechat_message("q", is_user=True, text="Will it rain?", files=files),
            librechat_message("a", "q", text="No.", model="gpt-3.5-turbo"),
            librechat_message("b", "q", content=parts, model="gpt-4"),
            librechat_message("e", "b", text="Overloaded", error=True),
        ],
    }


def nested(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, exported recursively."""
    by_id = {m["messageId"]: {**m, "children": []} for m in messages}
    tops: list[dict[str, Any]] = []
    for message in by_id.values():
        above = by_id.get(message["parentMessageId"])
        (above["children"] if above else tops).append(message)
    return tops


# -- OpenAI ----------------------------------------------------------------------------------------


def openai_messages() -> list[dict[str, Any]]:
    function = {"name": "weather", "arguments": '{"city": "Paris"}'}
    call = {"id": "call_7", "type": "function", "function": function}
    image = {"type": "image_url", "image_url": {"url": DATA_URL}}
    return [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [image, {"type": "text", "text": "Will it rain?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Ask."},
        {"role": "tool", "tool_call_id": "call_7", "content": "wet"},
        {"role": "assistant", "content": "Yes."},
    ]


# -- Sending ---------------------------------------------------------------------------------------


def send_json(persona: Persona, content: Any, query: str = "") -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    client: Any = api(persona)
    return client.generic("POST", IMPORT + query, body, content_type="application/json")


def send_files(persona: Persona, files: Mapping[str, bytes], **form: Any) -> Any:
    uploads = [SimpleUploadedFile(name, data) for name, data in files.items()]
    return api(persona).post(IMPORT, {"file": uploads, **form}, format="multipart")


def row(**fields: Any) -> Any:
    """The message with these fields."""
    return ChatMessage.objects.get(**fields)


# -- Damage ----------------------------------------------------------------------------------------


def spoilt(sample: Any, value: Any) -> Iterator[Any]:
    """Yield copies of the sample, each with another of its values replaced."""
    text = json.dumps(sample)
    places: list[tuple[Any, ...]] = []

    def walk(item: Any, path: tuple[Any, ...]) -> None:
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, inner in pairs:
            places.append((*path, key))
            if isinstance(inner, dict | list):
                walk(inner, (*path, key))

    walk(sample, ())
    for *above, last in places:
        copy = json.loads(text)
        target = copy
        for key in above:
            target = target[key]
        target[last] = value
        yield copy


def unlike(conversations: Iterable[Any]) -> Iterator[Any]:
    """Leave out what is converted to the very same as one before: the importer would find that one."""
    met: set[bytes] = set()
    for conversation in conversations:
        given = b""
        with suppress(AmberError, ValidationError):
            found = format_of(conversation)
            given = pickle.dumps(found.convert(conversation)) if found else b""
        if not given or given not in met:
            yield conversation
        met.add(given)
