import asyncio

import pytest

from amber.lib.egress import FetchError, UnsafeAddress
from amber.lib.tests.local_server import say, send_to
from tools.mcp.listing import MAX_FUNCTIONS
from tools.mcp.session import MAX_PAGES
from tools.mcp.source import MCPSource
from tools.source import Connection, DiscoveryError
from tools.tests.mcp.service import Running, Seen, make_server
from tools.tests.mcp.stub import ABOUT, TOOL, error_of, in_turn, method_of, result_of, stub


@pytest.fixture
def discover(server, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]

    def ask(**answers):
        server.routes["/mcp"] = stub({name.replace("_", "/"): a for name, a in answers.items()})
        connection = Connection(f"http://127.0.0.1:{server.port}/mcp", api_key="sesame")
        return asyncio.run(MCPSource().discover(connection))

    return ask


def listing(*tools):
    return result_of({"tools": list(tools)})


def test_a_server_says_what_it_is_and_offers(settings):
    running = Running(lambda: make_server(Seen()).streamable_http_app())
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{running.port}"]
    try:
        found = asyncio.run(MCPSource().discover(Connection(running.url)))
    finally:
        running.stop()

    assert (found.name, found.description) == ("Test service", "Adds numbers, and more.")
    functions = {each["name"]: each for each in found.data["functions"]}
    assert functions["add"]["description"] == "Adds two numbers."
    assert functions["add"]["parameters"]["required"] == ["a", "b"]
    assert functions["add"]["idempotent"] is True
    assert functions["add"]["read_only"] is True
    assert not {"idempotent", "read_only"} & functions["forget"].keys()
    (warning,) = found.warnings
    assert warning.startswith("forget can destroy")


def test_a_server_of_the_older_kind_is_understood(discover):
    found = discover(initialize=result_of({**ABOUT, "instructions": "Go."}))
    assert (found.name, found.description) == ("Stub", "Go.")
    assert found.data == {
        "protocol_version": "2025-11-25",
        "functions": [{"name": "go", "description": "Goes.", "parameters": {"type": "object"}}],
    }


def test_all_pages_are_read(discover):
    first = result_of({"tools": [TOOL], "nextCursor": "2"})
    second = listing({**TOOL, "name": "stop"})
    found = discover(tools_list=in_turn(first, second))
    assert [each["name"] for each in found.data["functions"]] == ["go", "stop"]


def test_pages_without_end_are_read_up_to_a_limit(discover, server):
    pages = [result_of({"tools": [], "nextCursor": str(n)}) for n in range(MAX_PAGES * 2)]
    pages[0] = result_of({"tools": [TOOL], "nextCursor": "0"})
    found = discover(tools_list=in_turn(*pages))
    assert len(found.data["functions"]) == 1
    assert f"more tools than the {MAX_FUNCTIONS}" in found.warnings[0]
    assert sum(method_of(each) == "tools/list" for each in server.requests) == MAX_PAGES


def test_a_page_that_leads_to_itself_is_read_twice(discover, server):
    discover(tools_list=result_of({"tools": [TOOL], "nextCursor": "again"}))
    assert sum(method_of(each) == "tools/list" for each in server.requests) == 2


def test_more_functions_than_a_model_may_see_are_left_out(discover):
    found = discover(tools_list=listing(*({**TOOL, "name": f"go_{n}"} for n in range(200))))
    assert len(found.data["functions"]) == MAX_FUNCTIONS
    assert "more tools" in found.warnings[-1]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": " "}, "was left out: a name has 1 to 200 characters"),
        ({"name": "x" * 201}, "was left out: a name has 1 to 200 characters"),
        ({}, "go is listed twice"),
        (
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 1}}}},
            "bad was left out: inputSchema.properties.a.type",
        ),
        (
            {"name": "bad", "inputSchema": {"type": "object", "x": "y" * 70_000}},
            "bad was left out: inputSchema: The schema is larger",
        ),
        (
            {"name": "bad", "inputSchema": {"type": "object", "$ref": "http://10.0.0.1/schema"}},
            "leads out of the schema",
        ),
        (
            {"name": "slow", "execution": {"taskSupport": "required"}},
            "slow was left out: it runs as a task",
        ),
    ],
    ids=["blank", "long", "twice", "no-schema", "huge-schema", "reference", "task"],
)
def test_a_tool_that_cannot_be_used_is_left_out_with_the_reason(discover, wrong, reason):
    found = discover(tools_list=listing(TOOL, {**TOOL, **wrong}))
    assert [each["name"] for each in found.data["functions"]] == ["go"]
    assert reason in found.warnings[0]


@pytest.mark.parametrize("support", ["optional", "forbidden"])
def test_a_tool_that_may_run_as_a_task_is_called_without_one(discover, support):
    found = discover(tools_list=listing({**TOOL, "execution": {"taskSupport": support}}))
    assert [each["name"] for each in found.data["functions"]] == ["go"]
    assert found.warnings == []


def test_a_server_without_a_usable_tool_is_no_tool(discover):
    with pytest.raises(DiscoveryError) as caught:
        discover(tools_list=listing())
    assert caught.value.fields == {"tools": ["The server lists no tool that can be used."]}


@pytest.mark.parametrize("schema", ["none", {"type": "array"}], ids=["text", "array"])
def test_what_is_against_the_protocol_is_named(discover, schema):
    with pytest.raises(DiscoveryError) as caught:
        discover(tools_list=listing(TOOL, {"name": "bad", "inputSchema": schema}))
    assert any("tools[1].inputSchema" in place for place in caught.value.fields or {})


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_the_keys_fault(discover, status):
    refusal = say(b"go away", status=status)
    with pytest.raises(DiscoveryError) as caught:
        discover(server_discover=refusal, initialize=refusal)
    assert caught.value.fields == {
        "api_key": [f"The server refused the key: it answered with status {status}."]
    }


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (say(b"<html>", headers={"Content-Type": "text/html"}), "Unexpected content type"),
        (say(b"", status=404), "status 404"),
        (say(b"", status=500), "status 500"),
        (error_of(-32600, "Not today."), "Not today."),
        (result_of({**ABOUT, "protocolVersion": "1999-01-01"}), "no version of the protocol"),
    ],
    ids=["page", "missing", "broken", "refusing", "ancient"],
)
def test_what_is_no_mcp_server_is_said_to_be_none(discover, answer, said):
    with pytest.raises(DiscoveryError) as caught:
        discover(initialize=answer)
    (text,) = (caught.value.fields or {})["discovery_url"]
    assert said in text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_origin_is_not_followed(discover, server, other, status):
    elsewhere = send_to(f"http://127.0.0.1:{other.port}/mcp", status)
    with pytest.raises(DiscoveryError):
        discover(server_discover=elsewhere, initialize=elsewhere)
    assert other.accepted == 0
    assert server.accepted > 0


def test_a_redirect_within_the_origin_is_followed(discover, server):
    server.routes["/mcp/"] = stub({})
    moved = send_to("/mcp/", 307)
    found = discover(server_discover=moved, initialize=moved, tools_list=moved)
    assert found.data["functions"][0]["name"] == "go"


def test_an_address_that_may_not_be_called_is_not_called(discover, server, settings):
    settings.AMBER_TOOL_ALLOWED_HOSTS = []
    with pytest.raises(UnsafeAddress):
        asyncio.run(MCPSource().discover(Connection(f"http://127.0.0.1:{server.port}/mcp")))
    assert server.accepted == 0


def test_silence_ends(discover, monkeypatch):
    monkeypatch.setattr("tools.mcp.source.DISCOVERY_SECONDS", 0.3)

    def say_nothing(connection, _):
        connection.recv(1)

    with pytest.raises(FetchError) as caught:
        discover(server_discover=say_nothing)
    assert caught.value.reason == "timeout"
