"""Every address of the MCP server and of OAuth against every asker, from the URLconf."""

import json
from typing import Any

import pytest
from django.test import Client as Browser

from public_api.mcp import server
from tests.fixtures.personas import api
from tests.rest.routes import application_routes

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
OPEN = {
    ".well-known/oauth-authorization-server",
    ".well-known/oauth-protected-resource",
    ".well-known/oauth-protected-resource/mcp",
}


def test_the_addresses_are_these():
    assert {route.template for route in application_routes()} == {
        "mcp",
        *OPEN,
        "tools/connected",
        "identity/sign-in",
        "identity/o/authorize",
        "identity/o/api/token",
        "identity/o/api/revoke",
        "identity/o/api/clients",
    }


@pytest.mark.django_db
def test_what_is_open_tells_nothing_of_anybody(alice):
    for template in OPEN:
        told = Browser().get(f"/{template}")
        assert told.status_code == 200
        assert told["Access-Control-Allow-Origin"] == "*"
        assert str(alice.organization.pk) not in told.content.decode()


@pytest.mark.django_db
def test_guests_and_sessions_are_no_callers(alice, guest):
    for client, status in ((api(), 401), (api(alice), 401), (api(key=guest.token), 403)):
        answer = client.post("/mcp", LIST, content_type="application/json")
        assert answer.status_code == status, answer.content
        assert answer.json()["error"]["data"]["code"] in ("not_authenticated", "forbidden")


def test_what_fails_unexpectedly_is_logged_and_told_without_its_words(monkeypatch, caplog):
    import asyncio
    from dataclasses import replace
    from types import SimpleNamespace

    import mcp_types

    async def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a secret of the server")

    tool = replace(server.TOOLS["list_libraries"], run=fail)
    monkeypatch.setitem(server.TOOLS, "list_libraries", tool)
    request = SimpleNamespace(scope={server.PRINCIPAL_IN_SCOPE: None})
    context: Any = SimpleNamespace(request=request, session=None)
    params = mcp_types.CallToolRequestParams(name="list_libraries", arguments={})
    result = asyncio.run(server._call_tool(context, params))
    assert result.is_error
    assert "secret" not in str(result)
    assert "a secret of the server" in caplog.text
