"""Define the values that a chat is made of, as the engine sees them: frozen, without a database.

The roles and their meaning are the table of docs/architecture.md ("Roles"). What a model
provider understands is made from these by `engine.history.normaliser.normalise`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict, cast

from engine.tool_calls import ChatToolCall, ToolCall

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


class TextPart(TypedDict):
    type: Literal["text"]
    text: str


class ImageAddress(TypedDict):
    url: str
    detail: Literal["auto"]


class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: ImageAddress


Part = TextPart | ImagePart
Content = str | list[Part]


class SystemMessage(TypedDict):
    role: Literal["system"]
    content: str


class UserMessage(TypedDict):
    role: Literal["user"]
    content: Content
    name: NotRequired[str]


class MessageFields(TypedDict, total=False):
    """What a provider sends with a reply, and wants back as it came (`engine.provider_fields`)."""

    reasoning_content: Any


class AssistantMessage(TypedDict):
    role: Literal["assistant"]
    content: str | None
    name: NotRequired[str]
    tool_calls: NotRequired[list[ChatToolCall]]
    reasoning_content: NotRequired[Any]


class ResultMessage(TypedDict):
    role: Literal["tool"]
    tool_call_id: str
    content: str


ProviderMessage = SystemMessage | UserMessage | AssistantMessage | ResultMessage
"""One message in OpenAI's chat form. The `openai` package has types of it, too, but contents that
can be read only once, and no fields of other providers."""


class _Produced(dict[str, Any]):
    """Looks the same on the wire as what a person wrote."""


def calls_in(message: ProviderMessage) -> Sequence[ChatToolCall]:
    """Return the calls that a message asks for."""
    return message.get("tool_calls") or () if message["role"] == "assistant" else ()


def mark_produced(content: Content) -> UserMessage:
    """Return what a tool made as a user message, because results can hold text only.

    No person wrote it: it is never the question (`is_asked`).
    """
    return cast(UserMessage, _Produced(role="user", content=content))


def is_produced(message: ProviderMessage) -> bool:
    return type(message) is _Produced


def is_asked(message: ProviderMessage) -> bool:
    """Return whether a person said this."""
    return message["role"] == "user" and not is_produced(message)


@dataclass(frozen=True, slots=True)
class Author:
    """The assistant that wrote an answer."""

    id: str
    name: str
    description: str = ""


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
    provider_fields: MessageFields = field(default_factory=MessageFields)
