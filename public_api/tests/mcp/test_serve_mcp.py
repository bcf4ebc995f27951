"""The MCP server for the official client: libraries and assistants, by API key."""

import asyncio
import threading
import time
from typing import Any

import httpx2
import pytest

from chats.models import Chat, Turn
from chats.tests.rows import new_assistant
from engine.events import TurnStatus
from libraries.models import Document, Library
from libraries.tests.ledger import ingest, new_document, new_library
from providers.models import OFFLINE_URL, LanguageModel, Provider
from public_api.tests.live_server import until
from public_api.tests.mcp.client import call, text_of, with_client
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db(transaction=True)

MODES = ("auto", "legacy")
SILENT = "[[fake ttft=60000]]"
QUESTION = "How is the pump bled?"
PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
NAMES = [
    *("list_libraries", "search_libraries", "read_passage"),
    *("list_assistants", "ask_assistant"),
]


@pytest.fixture
def library(alice: Persona, settings: Any, tmp_path: Any) -> Library:
    settings.MEDIA_ROOT = tmp_path
    made: Library = new_library(alice, name="Manuals")
    new_document(made, PUMP, name="pump.txt")
    ingest()
    return made


@pytest.fixture
def assistant(alice: Persona, provider: Any, library: Library) -> Any:
    """It quotes what was found for the question."""
    offline = Provider.objects.create(name="Offline model", base_url=OFFLINE_URL)
    LanguageModel.objects.create(
        provider=offline, alias="quoting", upstream_id="offline", default=True
    )
    return new_assistant(alice, model="quoting", library=library, slug="ada", name="Ada")


@pytest.fixture
def key(alice: Persona) -> str:
    return alice.new_key(scopes=["mcp"])[1]


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_are_listed_with_their_schemas(address, key, mode):
    async def talk(client: Any) -> Any:
        return client.server_info, client.instructions, await client.list_tools()

    about, instructions, listing = with_client(address, key, talk, mode=mode)
    assert (about.name, about.title) == ("amber", "Amber")
    assert "libraries" in instructions
    assert [tool.name for tool in listing.tools] == NAMES
    for tool in listing.tools:
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint is (tool.name != "ask_assistant")


@pytest.mark.parametrize("mode", MODES)
def test_a_passage_is_found_and_read_on_with_its_citation(address, key, library, mode):
    listed = call(address, key, "list_libraries", mode=mode)
    assert listed.structured_content == {
        "libraries": [{"id": str(library.pk), "name": "Manuals", "description": ""}]
    }
    found = call(address, key, "search_libraries", mode=mode, query=QUESTION)
    (passage,) = found.structured_content["results"]
    document = Document.objects.get()
    cited = passage["citation"]
    assert (cited["document_id"], cited["document"]) == (str(document.pk), "pump.txt")
    assert passage["content"] == PUMP[cited["start"] : cited["end"]]
    assert PUMP in text_of(found)
    assert str(document.pk) in text_of(found)
    read = call(
        address, key, "read_passage", mode=mode, document_id=str(document.pk), start=4, end=8
    )
    assert read.structured_content["content"] == PUMP[4:8]
    assert read.structured_content["length"] == len(PUMP)
    assert "goes on until" in text_of(read)


@pytest.mark.parametrize("mode", MODES)
def test_an_assistant_answers_with_its_sources_and_tells_how_far_it_is(
    address, key, assistant, mode
):
    listed = call(address, key, "list_assistants", mode=mode)
    assert [each["slug"] for each in listed.structured_content["assistants"]] == ["ada"]
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    answered = with_client(
        address,
        key,
        lambda client: client.call_tool(
            "ask_assistant", {"assistant": "ada", "question": QUESTION}, progress_callback=note
        ),
        mode=mode,
    )
    values = answered.structured_content
    assert "[1]" in values["answer"]
    assert [each["document"] for each in values["sources"]] == ["pump.txt"]
    assert "Sources:\n[1] pump.txt" in text_of(answered)
    assert told
    assert [progress for progress, _ in told] == sorted({progress for progress, _ in told})
    assert any("Writing" in (words or "") for _, words in told)
    assert not Chat.objects.exists()


def test_a_chat_goes_on_where_it_was(address, key, assistant):
    asked = {"assistant": "ada", "question": QUESTION, "chat_id": "new"}
    first = call(address, key, "ask_assistant", **asked).structured_content
    again = call(address, key, "ask_assistant", **asked | {"chat_id": first["chat_id"]})
    assert again.structured_content["chat_id"] == first["chat_id"]
    chat = Chat.objects.get()
    assert chat.owner == "api"
    assert Turn.objects.filter(chat=chat, status=TurnStatus.COMPLETED).count() == 2


def test_another_tenants_things_are_not_there(address, alice, mallory, library, assistant):
    others = mallory.new_key(scopes=["mcp"])[1]
    document = str(Document.objects.get().pk)
    assert call(address, others, "list_libraries").structured_content == {"libraries": []}
    assert call(address, others, "list_assistants").structured_content == {"assistants": []}
    found = call(address, others, "search_libraries", query=QUESTION)
    assert found.structured_content["results"] == []
    for tool, arguments in (
        ("search_libraries", {"query": QUESTION, "library_ids": [str(library.pk)]}),
        ("read_passage", {"document_id": document}),
        ("ask_assistant", {"assistant": "ada", "question": QUESTION}),
        ("ask_assistant", {"assistant": str(assistant.pk), "question": QUESTION}),
    ):
        refused = call(address, others, tool, **arguments)
        assert refused.is_error, (tool, refused)
        assert PUMP not in text_of(refused)
        nowhere = "00000000-0000-4000-8000-000000000000"
        absent = {
            name: [nowhere]
            if isinstance(value, list)
            else nowhere
            if name != "question" and name != "query"
            else value
            for name, value in arguments.items()
        }
        said = text_of(call(address, others, tool, **absent))
        nameless = text_of(refused).replace(str(assistant.pk), "").replace("`ada`", "``")
        assert said.replace(nowhere, "") == nameless
    assert not Turn.objects.exists()


def test_a_colleague_sees_what_is_shared_alone(address, alice, bob, library, assistant):
    others = bob.new_key(scopes=["mcp"])[1]
    assert call(address, others, "list_libraries").structured_content == {"libraries": []}
    Library.objects.update(shared=True)
    (seen,) = call(address, others, "list_libraries").structured_content["libraries"]
    assert seen["id"] == str(library.pk)


def test_a_key_of_one_assistant_sees_it_alone(address, alice, library, assistant):
    other = new_assistant(alice, model="quoting", slug="other")
    bound = alice.new_key(assistant_id=assistant.pk)[1]
    listed = call(address, bound, "list_assistants").structured_content["assistants"]
    assert [each["slug"] for each in listed] == ["ada"]
    assert call(address, bound, "ask_assistant", assistant=other.slug, question="?").is_error
    assert not call(address, bound, "ask_assistant", assistant="ada", question=QUESTION).is_error


@pytest.mark.parametrize("scopes", [["public"], ["read"], ["write"], ["read", "write", "public"]])
def test_a_key_needs_the_scope(address, alice, scopes):
    secret = alice.new_key(scopes=scopes)[1]
    answer = post(address, secret, LIST)
    assert answer.status_code == 403
    assert answer.json()["error"]["data"]["code"] == "forbidden"


def test_a_key_without_scopes_may_do_it(address, alice):
    assert post(address, alice.new_key()[1], LIST).status_code == 200


# -- Over plain HTTP ---------------------------------------------------------------------------

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(address: str, key: str, message: Any, **headers: str) -> httpx2.Response:
    given = {**ACCEPT, "Authorization": f"Bearer {key}", **headers}
    body = {"content": message} if isinstance(message, bytes) else {"json": message}
    given |= {"Content-Type": "application/json"}
    return httpx2.post(f"{address}/mcp", headers=given, trust_env=False, **body)


def test_without_a_credential_the_way_to_one_is_told(address, settings):
    answer = httpx2.post(f"{address}/mcp", json=LIST, headers=ACCEPT, trust_env=False)
    assert answer.status_code == 401
    assert answer.json()["error"]["data"]["code"] == "not_authenticated"
    said = answer.headers["WWW-Authenticate"]
    assert f'resource_metadata="{address}/.well-known/oauth-protected-resource/mcp"' in said
    assert 'scope="mcp"' in said
    about = httpx2.get(said.split('resource_metadata="')[1].split('"')[0], trust_env=False).json()
    assert about["resource"] == f"{address}/mcp"
    assert about["authorization_servers"] == [address]


@pytest.mark.parametrize("credential", ["amb_live_wrong", "x" * 5_000, "a b", "~"])
def test_a_wrong_credential_is_401(address, credential):
    answer = post(address, credential, LIST)
    assert answer.status_code == 401
    assert "resource_metadata" in answer.headers["WWW-Authenticate"]


def test_a_session_is_not_looked_at(address, alice):
    from tests.fixtures.personas import api

    cookies = {name: each.value for name, each in api(alice).cookies.items()}
    answer = httpx2.post(
        f"{address}/mcp", json=LIST, headers=ACCEPT, cookies=cookies, trust_env=False
    )
    assert answer.status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
def test_other_methods_are_405(address, key, method):
    headers = {**ACCEPT, "Authorization": f"Bearer {key}"}
    answer = httpx2.request(method, f"{address}/mcp", headers=headers, trust_env=False)
    assert answer.status_code == 405


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"[" * 10_000, 400),
        (b'{"a":' * 300 + b"1" + b"}" * 300, 400),
        (b'{"jsonrpc": "2.0", "id": 1}', 400),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}', 400),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a\\u0000"}}',
            400,
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "' + b"x" * 2_000_000,
            413,
        ),
        (b"\xff\xfe", 400),
    ],
    ids=range(11),
)
def test_rubbish_is_refused_as_jsonrpc_does(address, key, body, status):
    answer = post(address, key, body)
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert told["jsonrpc"] == "2.0"
    assert told["error"]["message"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search_libraries", {}, "query"),
        ("search_libraries", {"query": ""}, "query"),
        ("search_libraries", {"query": "  "}, "query"),
        ("search_libraries", {"query": 5}, "query"),
        ("search_libraries", {"query": "x" * 2_001}, "query"),
        ("search_libraries", {"query": "x", "count": 0}, "count"),
        ("search_libraries", {"query": "x", "count": 10**30}, "count"),
        ("search_libraries", {"query": "x", "library_ids": ["../etc"]}, "not an id"),
        ("search_libraries", {"query": "x", "library_ids": []}, "library_ids"),
        ("search_libraries", {"query": "x", "organization_id": "1"}, "organization_id"),
        ("read_passage", {"document_id": "1; DROP TABLE"}, "not an id"),
        ("read_passage", {"document_id": "00000000-0000-4000-8000-000000000000"}, "does not exist"),
        ("read_passage", {"document_id": "x", "start": -1}, "start"),
        ("ask_assistant", {"assistant": "auto", "question": "?"}, "auto"),
        ("ask_assistant", {"assistant": "../x", "question": "?"}, "does not exist"),
        ("ask_assistant", {"assistant": "x"}, "question"),
        ("ask_assistant", {"assistant": "x", "question": ""}, "question"),
        ("list_libraries", {"more": True}, "more"),
    ],
)
def test_odd_arguments_are_refused_in_words(address, key, tool, arguments, words):
    result = call(address, key, tool, **arguments)
    assert result.is_error
    assert words in text_of(result)


def test_an_unknown_tool_is_an_error_of_the_protocol(address, key):
    message = {**LIST, "method": "tools/call", "params": {"name": "nothing", "arguments": {}}}
    answer = post(address, key, message)
    assert '"code":-32602' in answer.text
    assert "There is no tool" in answer.text


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("https://page.example", 200),
        ("", 200),
    ],
)
def test_pages_of_other_origins_may_not_ask(address, alice, origin, status):
    secret = alice.new_key(scopes=["mcp"], origins=["https://page.example"])[1]
    headers = {"Origin": origin} if origin else {}
    assert post(address, secret, LIST, **headers).status_code == status
    open_key = alice.new_key(scopes=["mcp"])[1]
    expected = 403 if origin == "https://page.example" else status
    assert post(address, open_key, LIST, **headers).status_code == expected


def test_rates_hold(address, alice, key, settings):
    settings.AMBER_RATE_KEY = 2
    statuses = [post(address, key, LIST).status_code for _ in range(4)]
    assert statuses[-1] == 429
    assert post(address, key, LIST).headers["Retry-After"]


def test_a_budget_that_is_spent_is_told_in_words(address, alice, key, assistant):
    from providers.models import Budget, BudgetPeriod, BudgetScope, BudgetUnit

    Budget.objects.create(
        organization=alice.organization,
        scope=BudgetScope.ORGANIZATION,
        period=BudgetPeriod.DAY,
        unit=BudgetUnit.TOKENS,
        limit=1,
    )
    refused = call(address, key, "ask_assistant", assistant="ada", question=QUESTION)
    assert refused.is_error
    assert "budget" in text_of(refused).lower()
    assert not Turn.objects.filter(status=TurnStatus.COMPLETED).exists()


def test_whoever_cuts_the_connection_stops_the_turn(
    address, alice, key, new_model, worker, fake_provider
):
    """The model never says anything; the client goes away while it waits."""
    new_assistant(alice, model=new_model().alias, slug="slow")

    def ask() -> None:
        async def run() -> None:
            from mcp import Client
            from mcp.client.streamable_http import streamable_http_client

            headers = {"Authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
                streams = streamable_http_client(f"{address}/mcp", http_client=http)
                async with Client(streams) as client:
                    asking = asyncio.ensure_future(
                        client.call_tool("ask_assistant", {"assistant": "slow", "question": SILENT})
                    )
                    while not await asyncio.to_thread(_runs):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                    await asyncio.sleep(1)
                    asking.cancel()
                    await asyncio.wait({asking})

        asyncio.run(run())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)


def _runs() -> bool:
    from django.db import connections

    try:
        return Turn.objects.filter(status=TurnStatus.RUNNING).exists()
    finally:
        connections.close_all()


def test_a_socket_that_breaks_stops_the_turn(address, alice, key, new_model, worker, fake_provider):
    new_assistant(alice, model=new_model().alias, slug="slow")
    params = {"name": "ask_assistant", "arguments": {"assistant": "slow", "question": SILENT}}
    message = {**LIST, "method": "tools/call", "params": params}
    headers = {**ACCEPT, "Authorization": f"Bearer {key}"}
    with (
        httpx2.Client(trust_env=False) as http,
        http.stream("POST", f"{address}/mcp", json=message, headers=headers),
    ):
        until(_runs)
        time.sleep(1)
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)
