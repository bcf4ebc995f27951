"""Define the values that a chat is made of, as the engine sees them: frozen, without a database.

The roles are a table here; what clients may do with them is in `chats.messages.roles`, and
docs/architecture.md ("Roles") has both. What a model provider understands is made from these by
`engine.history.normaliser.render_history`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict, cast

from engine.tool_calls import ChatToolCall, ToolCall


class MessageRole(StrEnum):
    """A message's role, as it is stored: at most 12 characters."""

    HUMAN = "human"
    HIDE_HUMAN = "hide_human"
    HUMAN_LATER = "human_later"
    SYSTEM = "system"
    HIDE_SYSTEM = "hide_system"
    ASSISTANT = "assistant"
    FILE = "file"
    TOOL_CALL = "tool_call"
    TOOL = "tool"
    KNOWLEDGE = "knowledge"


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """What the engine must know of a role.

    `speaker` is who says it, in OpenAI's words; None for what nobody says. `asks`: it is a
    question. `joins_question`: it belongs to the question after it. `is_stamped`: the model is
    shown when it was said.
    """

    speaker: Literal["user", "assistant", "system"] | None = None
    asks: bool = False
    joins_question: bool = False
    is_stamped: bool = False
    is_typed: bool = False
    is_untrusted: bool = False


ROLES: Final[Mapping[str, RoleFacts]] = {
    MessageRole.HUMAN: RoleFacts("user", asks=True, is_stamped=True, is_typed=True),
    MessageRole.HIDE_HUMAN: RoleFacts("user", asks=True),
    MessageRole.HUMAN_LATER: RoleFacts("user", joins_question=True, is_typed=True),
    MessageRole.SYSTEM: RoleFacts("system", joins_question=True),
    MessageRole.HIDE_SYSTEM: RoleFacts("system", joins_question=True),
    MessageRole.ASSISTANT: RoleFacts("assistant", is_stamped=True),
    MessageRole.FILE: RoleFacts(joins_question=True, is_untrusted=True),
    MessageRole.TOOL_CALL: RoleFacts("assistant"),
    MessageRole.TOOL: RoleFacts(is_untrusted=True),
    MessageRole.KNOWLEDGE: RoleFacts(is_untrusted=True),
}

_UNKNOWN: Final = RoleFacts()


def facts_of(role: str) -> RoleFacts:
    """Return what is known of a stored role. One that a newer release has made says nothing to anybody."""
    return ROLES.get(role, _UNKNOWN)


ASKING_ROLES: Final = frozenset(role for role, facts in ROLES.items() if facts.asks)
SPEAKERS: Final = ("user", "assistant")
"""Those who talk to each other."""
SYSTEM_ROLES: Final = frozenset(role for role, facts in ROLES.items() if facts.speaker == "system")


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


MessageFields = Mapping[str, Any]
"""What a provider sends with a reply, and wants back as it came (`engine.provider_fields`)."""


class AssistantMessage(TypedDict):
    """What a model said. Beside these stand the fields of `engine.provider_fields`."""

    role: Literal["assistant"]
    content: str | None
    name: NotRequired[str]
    tool_calls: NotRequired[list[ChatToolCall]]


class ResultMessage(TypedDict):
    role: Literal["tool"]
    tool_call_id: str
    content: str


ProviderMessage = SystemMessage | UserMessage | AssistantMessage | ResultMessage
"""One message in OpenAI's chat form. The `openai` package has types of it, too, but contents that
can be read only once, and no fields of other providers."""


class _ProducedMessage(dict[str, Any]):
    """A message of the user's role that a tool made; on the wire it looks like what a person wrote."""


def is_plain(message: ProviderMessage) -> bool:
    """Return whether a message has only a role and content, as nearly all have, so that a pass can skip it."""
    return len(message) == 2 and "content" in message


def calls_in(message: ProviderMessage) -> Sequence[ChatToolCall]:
    """Return the calls that a message asks for."""
    return message.get("tool_calls") or () if message["role"] == "assistant" else ()


def mark_produced(content: Content) -> UserMessage:
    """Return what a tool made as a user message, because results can hold text only.

    No person wrote it: it is never the question (`is_asked`).
    """
    return cast(UserMessage, _ProducedMessage(role="user", content=content))


def is_produced(message: ProviderMessage) -> bool:
    return type(message) is _ProducedMessage


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


class Message(NamedTuple):
    """One row of a chat. `created_at` is aware, or None when no time is known.

    A file with a `tool_call` is what that call made. `name` tells apart several people (or
    assistants) of one role, as OpenAI's form does; stored chats have none. `provider_fields` are
    those of the reply, which the answering model may be sent (`engine.provider_fields`).

    A tuple, because a long chat makes hundreds: 0.3 µs each, where a frozen dataclass takes 2.
    """

    role: str
    content: str = ""
    created_at: datetime | None = None
    assistant: Author | None = None
    tool_call: ToolCall | None = None
    file: Attachment | None = None
    name: str = ""
    provider_fields: MessageFields = {}
