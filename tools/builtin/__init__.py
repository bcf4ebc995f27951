"""Built-in tools, one file each. Importing this package registers those of this room."""

from tools.builtin import (
    calculate,
    current_time,
    forget,
    remember,
    search_library,
    text_to_speech,
    web_browse,
    web_search,
)

__all__ = [
    "calculate",
    "current_time",
    "forget",
    "remember",
    "search_library",
    "text_to_speech",
    "web_browse",
    "web_search",
]
