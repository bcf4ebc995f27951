"""Define the values that a chat is made of, as the engine sees them: frozen, without a database.

The roles and their meaning are the table of docs/architecture.md ("Roles"). What a model
provider understands is made from these by `engine.history.normaliser.normalise`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Role = Literal[
    "human",
    "hide_human",
    "human_later",
    "system",
    "hide_system",
    "assistant",
    "file",
    "tool_call",
    "tool",
    "knowledge",
]

ASKING_ROLES: frozenset[str] = frozenset({"human", "hide_human"})
SYSTEM_ROLES: frozenset[str] = frozenset({"system", "hide_system"})

ProviderMessage = dict[str, Any]
"""One message in OpenAI's chat form: {"role", "content", "tool_calls"?, "tool_call_id"?}."""


class ProducedMessage(ProviderMessage):
    """A user message that holds what a tool made, because results can hold text only.

    It looks the same on the wire, but no person wrote it: it is never the question (`is_asked`).
    """


def is_asked(message: ProviderMessage) -> bool:
    """Return whether a person said this."""
    return message["role"] == "user" and not isinstance(message, ProducedMessage)


@dataclass(frozen=True, slots=True)
class Author:
    """The assistant that wrote an answer."""

    id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for. `arguments` is the raw JSON string it wrote.

    Calls with the same `reply_id` belong to one reply of the model; None stands alone.
    `provider_fields` go back with it as they came (`engine.provider_fields`).
    """

    id: str
    name: str
    arguments: str
    reply_id: str | None = None
    provider_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file in a chat. `url` is what a vision model is given; `text` is set for text files."""

    name: str
    mime_type: str
    url: str = ""
    text: str | None = None

    @property
    def is_image(self) -> bool:
        return self.mime_type.startswith("image/")


@dataclass(frozen=True, slots=True)
class Message:
    """One row of a chat. `created_at` is aware, or None when no time is known.

    A file with a `tool_call` is what that call made. `name` tells apart several people (or
    assistants) of one role, as OpenAI's form does; stored chats have none. `provider_fields` are
    those of the reply, which the answering model may be sent (`engine.provider_fields`).
    """

    role: Role
    content: str = ""
    created_at: datetime | None = None
    assistant: Author | None = None
    tool_call: ToolCall | None = None
    file: Attachment | None = None
    name: str = ""
    provider_fields: Mapping[str, Any] = field(default_factory=dict)
