"""Tools of MCP servers that want OAuth: their owner connects them once, tokens are renewed."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from amber.lib.ids import new_id
from amber.lib.secrets import encrypt_column
from tests.fixtures.personas import Persona, api, new_group
from tools.connections.connected import functions_of
from tools.models import Tool, ToolCallRecord
from tools.outgoing.requests import ServiceError
from tools.protocol import ToolContext
from tools.tests.mcp.oauth_service import OAuthService, serving_oauth

pytestmark = pytest.mark.django_db(transaction=True)

ALL = "/api/v1/tools/"
OAUTH = {"auth": {"type": "oauth"}}


@pytest.fixture
def service(settings: Any) -> Any:
    with serving_oauth() as made:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{made.port}"]
        yield made


def add(persona: Persona, service: OAuthService, **body: Any) -> Any:
    given = {"kind": "mcp", "discovery_url": f"{service.root}/mcp", "options": OAUTH}
    return api(persona).post(ALL, given | body)


def begin(persona: Persona, tool_id: str) -> Any:
    return api(persona).post(f"{ALL}{tool_id}/connect/")


def come_back(persona: Persona, query: Any) -> Any:
    return api(persona).get("/tools/connected", query)


def connected(persona: Persona, service: OAuthService, **body: Any) -> Tool:
    answer = add(persona, service, **body)
    assert answer.status_code == 201, answer.content
    page = begin(persona, answer.json()["id"])
    assert page.status_code == 200, page.content
    back = come_back(persona, service.let_in(page.json()["authorization_url"]))
    assert back.status_code == 200, back.content
    return Tool.objects.get(pk=answer.json()["id"])


def call(tool: Tool, name: str = "add", **arguments: Any) -> str:
    (function,) = [f for f in functions_of(tool) if f.spec.name == name]
    context = ToolContext(organization_id=tool.organization_id, user_id=tool.user_id, call_id="c")
    try:
        return asyncio.run(function.call(arguments, context)).text
    finally:
        connections.close_all()


def test_a_tool_waits_until_it_is_connected(alice, service):
    shown = add(alice, service).json()
    assert shown["is_connected"] is False
    assert shown["functions"] == []
    assert "not connected" in shown["last_error"]
    assert shown["name"] == "127.0.0.1"


def test_its_owner_connects_it_once_and_it_is_called(alice, service):
    tool = connected(alice, service, name="Sums")
    shown = api(alice).get(f"{ALL}{tool.pk}/").json()
    assert shown["is_connected"] is True
    assert shown["last_error"] == ""
    assert "add" in shown["function_names"]
    assert call(tool, a=2, b=3) == "5.0"
    (client,) = service.clients.values()
    assert client["client_name"] == "Amber"
    (token,) = service.access
    everything = json.dumps(shown) + str(Tool.objects.values().get()["data"])
    assert token not in everything
    assert token not in tool.oauth_sealed
    assert service.token_requests[0]["resource"] == f"{service.root}/mcp"


def test_the_page_tells_what_can_be_used_and_holds_no_token(alice, service):
    page = begin(alice, add(alice, service).json()["id"]).json()["authorization_url"]
    back = come_back(alice, service.let_in(page))
    assert "is connected" in back.content.decode()
    assert not any(token in back.content.decode() for token in service.access)


def test_a_token_that_ends_is_renewed_before_a_call(alice, service):
    service.lifetime_seconds = 1
    tool = connected(alice, service)
    service.lifetime_seconds = 3_600
    before = len(service.token_requests)
    assert call(tool, a=1, b=1) == "2.0"
    assert call(Tool.objects.get(), a=1, b=2) == "3.0"
    assert len(service.token_requests) == before + 1
    assert service.token_requests[-1]["grant_type"] == "refresh_token"


def test_a_token_that_is_refused_is_renewed_once(alice, service):
    tool = connected(alice, service)
    service.access.clear()
    assert call(tool, a=1, b=1) == "2.0"
    assert [r["grant_type"] for r in service.token_requests] == [
        "authorization_code",
        "refresh_token",
    ]
    assert service.seen.calls == ["add"]


def test_calls_at_once_renew_once(alice, service):
    tool = connected(alice, service)
    service.access.clear()
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda n: call(tool, a=n, b=0), range(4)))
    assert answers == ["0.0", "1.0", "2.0", "3.0"]
    renewals = [r for r in service.token_requests if r["grant_type"] == "refresh_token"]
    assert len(renewals) == 1


def test_a_connection_that_was_ended_there_is_told_and_ends_here(alice, service):
    tool = connected(alice, service)
    service.access.clear()
    service.refresh.clear()
    with pytest.raises(ServiceError, match="key is not usable") as caught:
        call(tool, a=1, b=1)
    assert "Connect the tool again" in caught.value.detail
    assert api(alice).get(f"{ALL}{tool.pk}/").json()["is_connected"] is False
    assert "Connect the tool again" in ToolCallRecord.objects.latest("created_at").detail


def test_an_authorization_server_that_is_down_keeps_the_connection(alice, service):
    tool = connected(alice, service)
    service.access.clear()
    service.faults.add("down")
    with pytest.raises(ServiceError):
        call(tool, a=1, b=1)
    service.faults.clear()
    assert call(Tool.objects.get(), a=1, b=1) == "2.0"


def test_another_address_or_way_ends_the_connection(alice, service):
    tool = connected(alice, service)
    changed = api(alice).patch(f"{ALL}{tool.pk}/", {"discovery_url": f"{service.root}/other"})
    assert changed.status_code == 200, changed.content
    assert changed.json()["is_connected"] is False
    assert changed.json()["functions"] == []


def test_its_owner_disconnects_it(alice, service):
    tool = connected(alice, service)
    assert api(alice).delete(f"{ALL}{tool.pk}/connect/").status_code == 204
    assert Tool.objects.get().oauth_sealed == ""
    with pytest.raises(ServiceError):
        call(Tool.objects.get(), a=1, b=1)


# -- Who may ----------------------------------------------------------------------------------


def test_only_who_may_change_the_tool_connects_it(alice, bob, mallory, service):
    made = add(alice, service, shared=True).json()["id"]
    assert begin(mallory, made).status_code == 404
    assert begin(bob, made).status_code == 403
    assert api(key=alice.new_key()[1]).post(f"{ALL}{made}/connect/").status_code == 403
    assert api().post(f"{ALL}{made}/connect/").status_code == 401


def test_nobody_else_ends_what_one_began(alice, bob, mallory, service):
    """A page that sends alice's browser back with mallory's code would connect mallory's account."""
    made = add(alice, service).json()["id"]
    query = service.let_in(begin(alice, made).json()["authorization_url"])
    for other in (bob, mallory):
        assert come_back(other, query).status_code in (400, 404)
    assert come_back(alice, query | {"state": "x"}).status_code == 400
    assert come_back(alice, {}).status_code == 400
    assert Tool.objects.get().oauth_sealed == ""
    assert come_back(alice, query).status_code == 200
    assert come_back(alice, query).status_code == 400  # once


def test_a_tool_that_was_changed_meanwhile_is_not_connected(alice, service):
    made = add(alice, service).json()["id"]
    query = service.let_in(begin(alice, made).json()["authorization_url"])
    Tool.objects.update(discovery_url=f"{service.root}/elsewhere")
    assert come_back(alice, query).status_code == 400
    assert service.token_requests == []


def test_a_refusal_there_is_told_on_the_page(alice, service):
    made = add(alice, service).json()["id"]
    query = service.let_in(begin(alice, made).json()["authorization_url"])
    back = come_back(alice, {"state": query["state"], "error": "access_denied"})
    assert back.status_code == 400
    assert "server refused access" in back.content.decode()


def test_words_of_strangers_are_no_markup(alice, service):
    made = add(alice, service, name="<b>Sums</b>").json()["id"]
    back = come_back(alice, service.let_in(begin(alice, made).json()["authorization_url"]))
    assert "<b>" not in back.content.decode()


def test_a_stored_key_does_not_go_to_another_server_by_way_of_oauth(alice, bob, settings, service):
    """Whoever may change a shared tool would else read its key where they say that tokens are given."""
    made = Tool(pk=new_id(), organization_id=alice.organization.pk, user=alice.user, kind="mcp")
    made.name, made.discovery_url = "Sums", f"{service.root}/mcp"
    encrypt_column(made, "api_key", "alice's key")
    made.save(force_insert=True)
    place = f"{ALL}{made.pk}/"
    group = new_group("Sums", bob)
    grant = api(alice).put(f"{place}grants/{group.pk}/", {"right": "edit"})
    assert grant.status_code == 200, grant.content
    settings.AMBER_TOOL_ALLOWED_HOSTS = [*settings.AMBER_TOOL_ALLOWED_HOSTS, "localhost"]
    theirs: dict[str, Any] = {"discovery_url": f"http://localhost:{service.port}/mcp"}
    oauth: dict[str, Any] = {"options": {"auth": {"type": "oauth", "client_id": "theirs"}}}
    for changes in (oauth | theirs, oauth):
        refused = api(bob).patch(place, changes)
        assert refused.status_code == 400, refused.content
        assert "api_key" in refused.json()["error"]["fields"]
    assert api(bob).patch(place, oauth | {"api_key": "bob's own"}).status_code == 200
    for changes in (theirs, {"options": {}}):  # nor does a client's secret
        assert "api_key" in api(bob).patch(place, changes).json()["error"]["fields"]
    assert service.token_requests == []
    assert api(bob).patch(place, theirs | {"api_key": ""}).status_code == 200


# -- What servers say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"issuer": "https://other.example"}, "another one"),
        ({"code_challenge_methods_supported": ["plain"]}, "S256"),
        ({"authorization_endpoint": "http://169.254.169.254/latest"}, "not"),
        ({"registration_endpoint": "http://169.254.169.254/latest"}, "not"),
        ({"token_endpoint": 5}, "where to get a token"),
    ],
)
def test_a_server_that_cannot_be_trusted_is_refused(alice, service, says, words):
    service.says = says
    answer = begin(alice, add(alice, service).json()["id"])
    assert answer.status_code == 400, answer.content
    assert words in str(answer.json()["error"])


def test_metadata_of_another_server_are_refused(alice, service):
    service.resource = {"resource": "https://other.example/mcp"}
    answer = begin(alice, add(alice, service).json()["id"])
    assert "another server" in str(answer.json()["error"])


def test_tokens_are_never_asked_for_at_an_address_that_may_not_be_called(alice, service):
    service.says = {"token_endpoint": "http://10.0.0.1/token"}
    made = add(alice, service).json()["id"]
    query = service.let_in(begin(alice, made).json()["authorization_url"])
    assert come_back(alice, query).status_code == 400
    assert Tool.objects.get().oauth_sealed == ""


def test_another_issuer_than_the_one_gone_to_is_refused(alice, service):
    service.says = {"authorization_response_iss_parameter_supported": True}
    made = add(alice, service).json()["id"]
    for issuer in ({}, {"iss": "https://evil.example"}):
        query = service.let_in(begin(alice, made).json()["authorization_url"])
        assert come_back(alice, query | issuer).status_code == 400
    query = service.let_in(begin(alice, made).json()["authorization_url"])
    assert come_back(alice, query | {"iss": service.root}).status_code == 200


def test_a_client_that_the_owner_registered_is_used(alice, service):
    service.registers = False
    made = add(alice, service).json()["id"]
    refused = begin(alice, made)
    assert "client's id" in str(refused.json()["error"])
    service.clients["mine"] = {"redirect_uris": ["http://testserver/tools/connected"]}
    service.says = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    options = {"auth": {"type": "oauth", "client_id": "mine", "scope": "a b"}}
    tool = connected(alice, service, options=options, api_key="its secret")
    assert service.token_requests[-1]["client_secret"] == "its secret"
    assert call(tool, a=1, b=1) == "2.0"


def test_a_server_without_oauth_is_told_so(alice, service):
    service.says = {"authorization_endpoint": None}
    answer = begin(alice, add(alice, service).json()["id"])
    assert answer.status_code == 400
    other = api(alice).post(
        ALL, {"kind": "mcp", "discovery_url": f"{service.root}/mcp", "options": {}}
    )
    assert other.status_code == 400  # as before: without a key it is refused


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "oauth", "client_secret": "x"},
        {"type": "oauth", "client_id": 5},
        {"type": "oauth", "scope": "a\nb"},
        {"type": "oauth", "scope": "x" * 1_001},
    ],
    ids=range(4),
)
def test_odd_options_are_refused(alice, service, auth):
    answer = add(alice, service, options={"auth": auth})
    assert answer.status_code == 400
    assert "options.auth" in str(answer.json()["error"]["fields"])


def test_an_operator_connects_a_tool_in_the_admin(alice, service):
    made = add(alice, service).json()["id"]
    alice.user.is_staff = alice.user.is_superuser = True
    alice.user.save()
    browser = api(alice)
    from django.urls import reverse

    away = browser.get(reverse("admin:tools_tool_connect", args=[made]))
    assert away.status_code == 302
    page = away["Location"]
    assert page.startswith(f"{service.root}/authorize")
    (client,) = service.clients.values()
    assert client["redirect_uris"] == ["http://testserver/admin/tools/tool/connected/"]
    back = browser.get("/admin/tools/tool/connected/", service.let_in(page))
    assert back["Location"] == f"/admin/tools/tool/{made}/change/"
    assert call(Tool.objects.get(), a=1, b=1) == "2.0"
