"""Register this app's built-in tools, one module each, when the package is imported."""

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
