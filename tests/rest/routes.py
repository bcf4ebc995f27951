"""All addresses of the REST API, as the URLconf has them: tests are generated from this list."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

PREFIXES = ("api/v1/", "chat")
OPENAI_PREFIX = "v1/"
AUTH_PREFIX = "_allauth/"
APPLICATION_PREFIXES = ("mcp", ".well-known/", "identity/", "tools/")
METHODS = ("get", "post", "put", "patch", "delete")
_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")


@dataclass(frozen=True, slots=True)
class Route:
    """`template` without the leading slash, as in `api/v1/chats/<uuid:chat_id>/`."""

    template: str
    view: Any

    @property
    def parameters(self) -> list[str]:
        return [name for _, name in _PARAMETER.findall(self.template)]

    @property
    def methods(self) -> list[str]:
        return [method for method in METHODS if hasattr(self.view, method)]

    @property
    def is_endless(self) -> bool:
        """A stream that goes on for as long as the client stays, and tells ids as they change."""
        return self.template == "api/v1/events/"

    @property
    def is_for_guests(self) -> bool:
        """An address of public assistants: it takes guests, or anybody, and no member."""
        return self.template.startswith("api/v1/public/")

    @property
    def documented(self) -> str:
        """The path as OpenAPI writes it."""
        return "/" + _PARAMETER.sub(r"{\2}", self.template)

    def address(self, ids: dict[str, Any]) -> str:
        """Raises KeyError for a parameter that nobody made a row for."""
        return "/" + _PARAMETER.sub(lambda found: str(ids[found[2]]), self.template)


def all_routes() -> list[Route]:
    return _beginning_with(PREFIXES)


def openai_routes() -> list[Route]:
    """Those that speak OpenAI's protocol: other errors, and keys alone."""
    return _beginning_with((OPENAI_PREFIX,))


def application_routes() -> list[Route]:
    """The MCP server's, those by which applications get tokens for it, and where Amber gets its own."""
    return _beginning_with(APPLICATION_PREFIXES)


def auth_routes() -> list[Route]:
    """allauth's, in a format of its own."""
    return _beginning_with((AUTH_PREFIX,))


def _beginning_with(prefixes: tuple[str, ...]) -> list[Route]:
    routes = _walk(get_resolver().url_patterns, "")
    return [route for route in routes if route.template.startswith(prefixes)]


def _walk(patterns: list[Any], prefix: str) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "view_class", None) or getattr(
                pattern.callback, "cls", pattern.callback
            )
            yield Route(prefix + str(pattern.pattern), view)
