"""Every kind of row goes out as the OpenAPI document says, field by field: nothing more or less."""

import asyncio
from typing import Any

import orjson
import pytest

from amber.processes import wait_until
from assistants.models import Assistant
from chats.models import Chat, Feedback, Turn
from chats.tests.rows import new_file, say
from chats.tests.runs import marker
from libraries.models import Library, Repository
from libraries.tests.ledger import ingest, new_document
from libraries.tests.ledger import new_model as new_embedding_model
from memory.models import Memory
from providers.models import Budget
from public_api.tests.exchange import request
from tests.fixtures.personas import Persona, api
from tests.rest.documented import check, documented_components
from tests.rest.routes import all_routes
from tests.tenancy.test_tenancy import no_rates, rows_of
from tools.models import Tool, ToolCallRecord
from tools.services import create_tool
from tools.tests.tool_service import function, weather

__all__ = ["no_rates", "weather"]

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
NOT_SHAPES = ("/events/", "/content/", "/me/export/", "/audit/export/", "/usage/export/")
"""Streams, bytes, lines, and the export, whose form is in docs/privacy.md."""
NOT_REACHED = {"BlockPart", "LeftOutPart", "MemoryPart", "PassagePart", "Connection", "Queue"}
"""Parts of a manifest that take more of a chat (test_seal_chats, test_cite_passages), what needs a server
with OAuth (test_connect_tools), and why a turn waits (test_tell_queue)."""


class Client:
    """Asks as alice, and compares each answer with the document."""

    def __init__(self, persona: Persona) -> None:
        self.rest = api(persona)
        self.reached: set[str] = set()

    def ask(self, method: str, path: str, body: Any = None, *, client: Any = None) -> Any:
        address = path if path.startswith("/") else f"/api/v1/{path}"
        given = {} if method == "get" else {"data": {} if body is None else body}
        answer = getattr(client or self.rest, method)(address, **given)
        content = read(answer)
        return self.take(method, address, answer.status_code, content)

    def ask_later(self, method: str, path: str, body: Any, key: str) -> Any:
        """Ask an address that answers once a turn has ended."""
        answer = request(method, path, body=body, headers={"authorization": f"Bearer {key}"})
        assert answer is not None
        return self.take(method.lower(), path, answer.status, answer.body)

    def take(self, method: str, address: str, status: int, content: bytes) -> Any:
        body = orjson.loads(content)
        self.reached |= check(method, address, status, body)
        return body


def read(answer: Any) -> bytes:
    async def gather() -> bytes:
        return b"".join([piece async for piece in answer])

    return asyncio.run(gather()) if answer.streaming else bytes(answer.content)


@pytest.fixture
def tool(alice: Persona, weather: Any) -> Tool:
    weather.functions = [function(timeout_seconds=5)]
    file = {"mime_type": "text/plain", "name": "a.txt", "base64": "aGk="}
    weather.reply = lambda _: {"content": "sunny", "files": [file]}
    return create_tool(alice.principal, given={"kind": "discovery", "discovery_url": weather.url})


@pytest.fixture
def rows(alice: Persona, tool: Tool, new_model: Any, settings: Any, tmp_path: Any) -> Any:
    """A row of every kind."""
    settings.MEDIA_ROOT = tmp_path
    new_model(default=True)
    ids: dict[str, Any] = rows_of(alice) | {"tool_id": tool.pk}
    library = Library.objects.get(pk=ids["library_id"])
    library.embedding_model = new_embedding_model(default=True)
    library.save()
    ids["document_id"] = new_document(library, PUMP, name="pump.txt", metadata={"year": 2022}).pk
    ingest()
    Budget.objects.update(limit=1_000_000)
    Repository.objects.filter(pk=ids["import_id"]).update(
        progress={"step": "done", "new": 1, "skipped": {"large": 1}, "refused": {"a": "b"}}
    )
    assistant = Assistant.objects.get(pk=ids["assistant_id"])
    assistant.library, assistant.public = library, True
    assistant.save()
    ToolCallRecord.objects.create(
        organization=alice.organization, tool=tool, function="f", outcome="ok", latency_ms=1
    )
    return ids


def answer_a_question(client: Client, rows: dict[str, Any]) -> None:
    """Let a chat have a question that was answered from a library, after a call of a tool."""
    asked = f"How is the pump bled? {marker('forecast', {'city': 'Rome'})}"
    about = {"assistant_id": str(rows["assistant_id"]), "pinned_scene_id": str(rows["scene_id"])}
    rows["chat_id"] = client.ask("post", "chats/", about)["id"]
    posted = client.ask("post", f"chats/{rows['chat_id']}/messages/", {"content": asked})
    rows["turn_id"], rows["message_id"] = posted["turn"]["id"], posted["message"]["id"]
    turns = Turn.objects.filter(pk=rows["turn_id"])
    assert wait_until(lambda: turns.get().ended_at is not None, timeout_seconds=30)


def fill(alice: Persona, rows: dict[str, Any]) -> None:
    """Give the chat and its turn what an ordinary answer leaves out."""
    chat = Chat.objects.get(pk=rows["chat_id"])
    say(chat, role="file", file=new_file(alice))
    call = {"id": "c1", "name": "forecast", "arguments": "{}", "reply_id": "r1"}
    say(chat, role="tool_call", tool_call=call, provider_fields={"sender": "m", "fields": {}})
    Turn.objects.filter(pk=rows["turn_id"]).update(
        status="waiting",
        error={"code": "provider_timeout", "message": "It took too long.", "retryable": True},
        waiting_calls=[{"call_id": "c1", "name": "f", "arguments": "{}", "approved": None}],
    )
    answer = say(chat, "Yes", role="assistant", assistant=chat.assistant)
    judge = {"organization": alice.organization, "chat": chat, "assistant": chat.assistant}
    Feedback.objects.create(**judge, message=answer, user=alice.user, value="up", reason="clear")
    Memory.objects.filter(pk=rows["memory_id"]).update(evidence=[rows["message_id"]])


def addresses(rows: dict[str, Any]) -> list[str]:
    """Return the address of every GET of members that answers with a row or a list of them."""
    plain = [
        route.address(rows)
        for route in all_routes()
        if "get" in route.methods
        and not route.is_for_guests
        and not route.template.endswith(NOT_SHAPES)
    ]
    searching = {"/api/v1/chats/search/": "/api/v1/chats/search/?q=pump"}
    sums = "/api/v1/usage/?group_by=day,model,kind,user"
    return [*(searching.get(address, address) for address in plain), sums]


def ask_as_a_guest(client: Client, assistant: str) -> None:
    public = f"public/assistants/{assistant}/"
    client.ask("get", public, client=api())
    token = client.ask("post", f"{public}token/", client=api())["token"]
    guest = api(key=token)
    chat = client.ask("post", f"{public}chats/", client=guest)["id"]
    for path in ("chats/", f"chats/{chat}/", f"chats/{chat}/messages/"):
        client.ask("get", public + path, client=guest)
    client.ask("post", "me/claim/", {"token": token})


def create(client: Client, rows: dict[str, Any], stranger: Persona) -> None:
    """Ask for what only the answer of a POST shows, such as secrets."""
    organization = f"organizations/{rows['organization_id']}/"
    client.ask("post", "api-keys/", {"name": "k"})
    invited = {"email": stranger.user.email, "role": "member"}
    token = client.ask("post", f"{organization}invitations/", invited)["token"]
    client.ask("post", "invitations/find/", {"token": token}, client=api(stranger))
    client.ask("post", "webhooks/", {"url": "https://example.com/hook"})
    client.ask("post", f"libraries/{rows['library_id']}/search/", {"query": "pump"})
    client.ask("post", "memories/search/", {"query": "secret of the owner"})
    client.ask("post", f"tools/{rows['tool_id']}/call/", {"function": "forecast"})
    lost = {"role": "file", "content": "", "file_id": rows["organization_id"]}
    client.ask("post", "chats/import/", {"chats": [{"messages": [lost]}, {"title": "No chat"}]})
    client.ask("delete", "memories/?confirm=true")
    client.ask("delete", f"groups/{rows['group_id']}/")


def test_every_row_has_just_the_fields_that_are_documented(alice, mallory, rows, worker):
    client = Client(alice)
    answer_a_question(client, rows)
    fill(alice, rows)
    for address in addresses(rows):
        client.ask("get", address)
    create(client, rows, mallory)
    ask_as_a_guest(client, rows["assistant_id"])
    key = alice.new_key()[1]
    said = {"messages": [{"role": "user", "content": "[[fake tokens=6]]"}]}
    client.ask_later("POST", "/chat", said, key)
    library = f"/api/v1/libraries/{rows['library_id']}/ask/"
    client.ask_later("POST", library, {"question": "How is the pump bled?"}, key)
    client.ask("get", "/v1/models", client=api(key=key))
    asked = {"model": "fake-model", "input": "[[fake tokens=6]]"}
    response = client.ask_later("POST", "/v1/responses", asked, key)["id"]
    client.ask("delete", f"/v1/responses/{response}", client=api(key=key))
    assert documented_components() - client.reached == NOT_REACHED
