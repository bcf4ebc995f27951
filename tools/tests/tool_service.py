"""Run a real service of Amber's tool protocol on 127.0.0.1, which records what it is asked."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from amber.lib.tests.local_server import Answer, LocalServer, Request, say
from tools.tests.services import say_json

Body = dict[str, Any]


def function(name: Any = "forecast", **fields: Any) -> Body:
    """Return an entry of a manifest's `functions`."""
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"name": name, "description": f"The {name}.", "parameters": parameters} | fields


@dataclass
class ToolService:
    """A service whose `functions` and `fields` make the manifest; `reply(body)` answers calls."""

    server: LocalServer
    functions: list[Body] = field(default_factory=lambda: [function()])
    fields: Body = field(default_factory=dict)
    key: str = ""
    reply: Callable[[Body], Any] = field(default=lambda body: {"content": f"{body['arguments']}"})

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    @property
    def url(self) -> str:
        return self.address("/manifest")

    def address(self, path: str) -> str:
        return f"http://{self.host}{path}"

    @property
    def manifest(self) -> Body:
        return {
            "name": "Weather",
            "description": "Knows the weather.",
            "callback_url": self.address("/call"),
            "functions": self.functions,
        } | self.fields

    @property
    def asked(self) -> list[Request]:
        """Return the requests for the manifest, oldest first."""
        return [each for each in self.server.requests if each.target == "/manifest"]

    @property
    def called(self) -> list[Body]:
        """Return the bodies of the calls, oldest first."""
        return [json.loads(each.body) for each in self.calls]

    @property
    def calls(self) -> list[Request]:
        return [each for each in self.server.requests if each.target == "/call"]

    def route(self, path: str, answer: Answer) -> None:
        self.server.routes[path] = answer

    def _manifest(self, connection: Any, request: Request) -> None:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            say(b"who are you?", status=401)(connection, request)
        else:
            say_json(self.manifest)(connection, request)

    def _call(self, connection: Any, request: Request) -> None:
        say_json(self.reply(json.loads(request.body)))(connection, request)


@contextmanager
def serving() -> Iterator[ToolService]:
    with LocalServer() as server:
        service = ToolService(server)
        server.routes["/manifest"] = service._manifest
        server.routes["/call"] = service._call
        yield service


@pytest.fixture
def weather(settings: Any) -> Iterator[ToolService]:
    """Run a service that Amber may call."""
    with serving() as service:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [service.host]
        yield service
