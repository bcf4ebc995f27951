"""List the formats that chats are imported from: a further one is a module here, and a line.

Each converts one conversation to Amber's own export form (`chats.importing.converted`). They are
pure: no I/O, no database.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from chats.importing.converted import ConvertedChat
from chats.importing.formats.amber import convert_amber, is_amber
from chats.importing.formats.chatgpt import convert_chatgpt, is_chatgpt
from chats.importing.formats.librechat import convert_librechat, is_librechat
from chats.importing.formats.open_webui import convert_open_webui, is_open_webui
from chats.importing.formats.openai_messages import convert_openai_messages, is_openai_messages


@dataclass(frozen=True, slots=True)
class Format:
    """`recognises` looks at the outermost names alone."""

    name: str
    recognises: Callable[[Any], bool]
    convert: Callable[[Any], ConvertedChat]


FORMATS: Final = (
    Format("chatgpt", is_chatgpt, convert_chatgpt),
    Format("open_webui", is_open_webui, convert_open_webui),
    Format("librechat", is_librechat, convert_librechat),
    Format("openai_messages", is_openai_messages, convert_openai_messages),
    Format("amber", is_amber, convert_amber),
)
"""In the order in which they are asked: Amber's is the most permissive."""


def format_of(conversation: Any) -> Format | None:
    """Return the format of a conversation, None if it has none of these."""
    return next((each for each in FORMATS if each.recognises(conversation)), None)
