"""Completions asked for with OpenAI's own client, by short names."""

import base64
import io
import json
from typing import Any

from PIL import Image

from chats.tests.runs import unmarked

SIX = "[[fake tokens=6]]"
SLOW = "[[fake tokens=400 itl=50]]"
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather there.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def png_url() -> str:
    written = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(written, "PNG")
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}"


def said(content: Any, **more: Any) -> Any:
    return {"role": "user", "content": content} | more


def ask(client: Any, content: Any = SIX, *, model: str = "fake-model", **more: Any) -> Any:
    messages = content if isinstance(content, list) else [said(content)]
    return client.chat.completions.create(model=model, messages=messages, **more)


def streamed(client: Any, content: Any = SIX, **more: Any) -> list[Any]:
    """All chunks."""
    with ask(client, content, stream=True, **more) as stream:
        return [chunk.to_dict() for chunk in stream]


def deltas(chunks: list[Any]) -> list[Any]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def text_of(chunks: list[Any]) -> str:
    return "".join(delta.get("content") or "" for delta in deltas(chunks))


def seen_by_model(completion: Any) -> Any:
    """What fake-echo was sent, without Amber's marks."""
    return unmarked(json.loads(completion.choices[0].message.content))
