"""Merge messages of the same role that stand next to each other, texts and images alike.

Chat templates often refuse two messages of one role in a row; calls and results are exempt,
because each answers for itself.
"""

from collections.abc import Sequence
from typing import cast

from engine.messages import (
    Content,
    Part,
    ProviderMessage,
    TextPart,
    is_produced,
    mark_produced,
)
from engine.provider_fields import merged_fields


def merge_neighbours(messages: Sequence[ProviderMessage]) -> list[ProviderMessage]:
    """Merge neighbours of the same role; calls and results stay alone."""
    runs: list[list[ProviderMessage]] = []
    for message in messages:
        if runs and _may_merge(runs[-1][-1], message):
            runs[-1].append(message)
        else:
            runs.append([message])
    return [run[0] if len(run) == 1 else _merge(run) for run in runs]


def _may_merge(one: ProviderMessage, other: ProviderMessage) -> bool:
    return (
        one["role"] == other["role"] != "tool"
        and one.get("name") == other.get("name")
        and "tool_calls" not in one
        and "tool_calls" not in other
    )


def _merge(messages: Sequence[ProviderMessage]) -> ProviderMessage:
    parts: list[Part] = []
    for message in messages:
        content = message["content"] or ""
        parts += [text_part(content)] if isinstance(content, str) else content
    content = content_of(parts)
    if all(map(is_produced, messages)):
        return mark_produced(content)
    merged = {**messages[0], "content": content, **merged_fields(messages)}
    return cast(ProviderMessage, merged)  # of their one role, which has these fields


def content_of(parts: Sequence[Part]) -> Content:
    """Return the parts with adjacent texts joined; plain text when there is nothing else."""
    joined: list[Part] = []
    texts: list[str] = []
    for part in parts:
        if part["type"] == "text":
            texts.append(part["text"])
            continue
        if texts:
            joined.append(text_part("\n".join(texts)))
            texts = []
        joined.append(part)
    if not joined:
        return "\n".join(texts)
    return [*joined, text_part("\n".join(texts))] if texts else joined


def text_part(text: str) -> TextPart:
    return {"type": "text", "text": text}
