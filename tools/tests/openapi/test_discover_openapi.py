"""Read documents from a real server in the real child process."""

import asyncio
import json
import os
import resource
import sys
from pathlib import Path

import pytest

from amber.lib import egress
from amber.lib.egress import FetchError, UnsafeAddress
from amber.lib.errors import Invalid
from amber.lib.tests.egress.guarded_client import door, guarded, through_door
from amber.lib.tests.egress.hostile_urls import HOSTILE_URLS
from amber.lib.tests.local_server import say, send_to
from tools.openapi import options as openapi_options
from tools.openapi import reader, source
from tools.openapi.functions import FunctionsRequest, describe
from tools.openapi.reader import read_in_child
from tools.openapi.source import OpenAPISource
from tools.outgoing.requests import ServiceError
from tools.source import Connection, DiscoveryError

DATA = Path(__file__).parents[1] / "data"
SHOP = (DATA / "petstore-3.0.yaml").read_bytes()
FOREST = (DATA / "forest-3.1.json").read_bytes()


@pytest.fixture
def allowed(settings, server):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    server.routes["/docs/openapi.yaml"] = say(SHOP)
    return f"http://127.0.0.1:{server.port}/docs/openapi.yaml"


def discover(url="", api_key="", **options):
    connection = Connection(url, api_key, OpenAPISource().check_options(options))
    return asyncio.run(OpenAPISource().discover(connection))


def fields_of(url="", api_key="", **options):
    with pytest.raises(DiscoveryError) as caught:
        discover(url, api_key, **options)
    assert caught.value.code == "discovery_failed"
    return caught.value.fields


def paths_document(server, **more):
    paths = {"/things": {"get": {"operationId": "things"}}}
    return json.dumps({"openapi": "3.1.0", "servers": [{"url": server}], "paths": paths} | more)


# -- By address ----------------------------------------------------------------------------------


def test_a_document_is_fetched_and_its_functions_found(allowed, server):
    found = discover(allowed)
    assert found.name == "Pet shop"
    assert found.description == "Sells pets, and remembers whom to."
    names = [function["name"] for function in found.data["functions"]]
    assert names[:3] == ["listPets", "addPet", "get_pet"]
    request = found.data["functions"][0]["request"]
    assert request["server"] == f"http://127.0.0.1:{server.port}/api/v2"
    assert found.data["auth"] == {"type": "header", "name": "X-Api-Key"}
    assert found.warnings[0] == "The service may want a key, and none was given."
    assert any("refers to itself" in warning for warning in found.warnings)
    assert any("paths./archive.post" in warning for warning in found.warnings)
    json.dumps(found.data)


def test_only_picked_operations_are_kept(allowed):
    found = discover(allowed, operations=["listPets", "get pet"])
    assert [function["name"] for function in found.data["functions"]] == ["listPets", "get_pet"]


def test_a_key_is_not_sent_for_an_open_document(allowed, server):
    discover(allowed, "secret")
    assert len(server.requests) == 1
    assert "secret" not in str(server.requests)


def test_a_key_is_sent_for_a_closed_document_of_its_own_server(allowed, server):
    def closed(connection, request):
        known = request.headers.get("authorization") == "Bearer secret"
        say(SHOP if known else b"who?", status=200 if known else 401)(connection, request)

    server.routes["/docs/openapi.yaml"] = closed
    assert discover(allowed, "secret").name == "Pet shop"
    assert list(fields_of(allowed, "wrong")) == ["api_key"]
    assert list(fields_of(allowed)) == ["api_key"]


def test_a_key_for_another_server_is_not_sent_for_the_document(allowed, server):
    server.routes["/docs/openapi.yaml"] = say(b"who?", status=403)
    fields_of(allowed, "secret", server="https://api.example.com")
    assert len(server.requests) == 1
    assert "secret" not in str(server.requests)


def test_a_document_cannot_draw_the_key_to_another_server(allowed, server):
    server.routes["/docs/openapi.yaml"] = say(paths_document("https://evil.example.com").encode())
    fields = fields_of(allowed, "secret")
    assert list(fields) == ["options.server"]
    assert "https://evil.example.com" in fields["options.server"][0]
    assert discover(allowed).data["functions"]
    assert discover(allowed, "secret", server="https://evil.example.com").data["functions"]


def test_a_bad_answer_is_told_at_its_place(allowed, server):
    server.routes["/docs/openapi.yaml"] = say(b"no", status=404)
    assert fields_of(allowed) == {"discovery_url": ["The address answered with status 404."]}
    server.routes["/docs/openapi.yaml"] = say(b"<html>")
    assert list(fields_of(allowed)) == ["document"]
    server.routes["/docs/openapi.yaml"] = say(b'{"openapi": "3.1.0"}')
    assert list(fields_of(allowed)) == ["paths"]


def test_an_address_or_a_document_is_needed():
    assert list(fields_of()) == ["discovery_url"]


def test_a_header_that_belongs_to_the_connection_is_not_the_keys(allowed, server):
    schemes = {"securitySchemes": {"it": {"type": "apiKey", "in": "header", "name": "Host"}}}
    content = paths_document("/", components=schemes)
    server.routes["/docs/openapi.yaml"] = say(content.encode())
    found = discover(allowed, "secret")
    assert found.data["auth"] is None
    assert "does not set" in found.warnings[0]


# -- Pasted --------------------------------------------------------------------------------------


def test_a_pasted_document_needs_no_address():
    found = discover(document=FOREST.decode())
    assert found.name == "Forest"
    assert found.data["functions"][0]["request"]["server"] == "https://forest.example.com/api"


def test_a_pasted_document_without_a_server_asks_for_one():
    text = SHOP.decode()
    assert list(fields_of(document=text)) == ["options.server"]
    found = discover(document=text, server="https://shop.example.com/")
    assert found.data["functions"][0]["request"]["server"] == "https://shop.example.com"


def test_the_key_of_a_pasted_document_is_for_its_first_server():
    assert discover("", "user:pw", document=FOREST.decode()).data["functions"]
    paths = {
        "/a": {"get": {}},
        "/b": {"get": {}, "servers": [{"url": "https://other.example.com"}]},
    }
    text = paths_document("https://one.example.com", paths=paths)
    assert discover(document=text).data["functions"]
    assert list(fields_of("", "secret", document=text)) == ["options.server"]


def test_a_key_that_cannot_be_sent_is_refused():
    assert list(fields_of("", "no colon", document=FOREST.decode())) == ["api_key"]
    assert list(fields_of("", "a:b\r\nEvil: 1", document=FOREST.decode())) == ["api_key"]


def test_functions_ask_first_if_the_owner_or_the_document_says_so():
    text = FOREST.decode()
    found = discover(document=text, ask_first=["note"])
    connection = Connection("", "", {"ask_first": ["note"], "document": text})
    functions = OpenAPISource().functions(connection, found.data)
    assert {f.spec.name for f in functions if f.asks_first} == {"note", "growTree"}


def test_get_alone_only_reads():
    functions = discover(document=FOREST.decode()).data["functions"]
    reading = {f["name"] for f in functions if f["read_only"]}
    assert reading == {f["name"] for f in functions if f["request"]["method"] in ("GET", "HEAD")}
    connection = Connection("", "", {"document": FOREST.decode()})
    offered = OpenAPISource().functions(connection, {"functions": functions})
    assert {f.spec.name for f in offered if f.is_read_only} == reading
    assert reading and not any(f.is_harmless for f in offered)


def test_nul_characters_do_not_reach_the_row():
    text = paths_document("https://a.example.com").replace("things", "a\\u0000b\\\\u0000")
    (function,) = discover(document=text).data["functions"]
    assert function["request"]["path"] == "/ab\\u0000"


# -- Options -------------------------------------------------------------------------------------


def test_options_are_kept_as_they_are_meant():
    options = {
        "document": "x",
        "server": "https://a.example.com/v1/",
        "operations": ["a", "b", "a"],
        "auth": {"type": "header", "name": "X-Key"},
        "ask_first": ["a"],
    }
    checked = OpenAPISource().check_options(options)
    assert checked == options | {"server": "https://a.example.com/v1", "operations": ["a", "b"]}


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"documnet": "x"}, "options.documnet"),
        ({"document": ""}, "options.document"),
        ({"document": {}}, "options.document"),
        ({"document": "a\0"}, "options.document"),
        ({"document": "x" * 10_000_001}, "options.document"),
        ({"server": 1}, "options.server"),
        ({"server": "a.example.com"}, "options.server"),
        ({"server": "https://a.example.com?x"}, "options.server"),
        ({"server": "http://127.0.0.1"}, "options.server"),
        ({"server": "http://u:p@a.example.com"}, "options.server"),
        ({"operations": "a"}, "options.operations"),
        ({"operations": [1]}, "options.operations"),
        ({"operations": [""]}, "options.operations"),
        ({"operations": [str(n) for n in range(200)]}, "options.operations"),
        ({"ask_first": {"a": 1}}, "options.ask_first"),
        ({"auth": "bearer"}, "options.auth"),
        ({"auth": {"type": "query"}}, "options.auth.name"),
        ({"auth": {"type": "body"}}, "options.auth.type"),
        ({"auth": {"type": "header"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "A\r\nB"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "Host"}}, "options.auth.name"),
    ],
    ids=range(21),
)
def test_a_wrong_option_is_named(options, place):
    with pytest.raises(Invalid) as caught:
        OpenAPISource().check_options(options)
    assert list(caught.value.fields or ()) == [place]


def test_all_wrong_options_are_named_at_once():
    with pytest.raises(Invalid) as caught:
        OpenAPISource().check_options({"x": 1, "server": 1, "auth": 1})
    assert set(caught.value.fields or ()) == {"options.x", "options.server", "options.auth"}


# -- Hostile documents and addresses -------------------------------------------------------------


def bomb():
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(layers)


def doubling():
    """Return a schema of a few kilobytes that is 2^60 values when written out."""
    schemas = {
        f"N{n}": {"properties": {p: {"$ref": f"#/components/schemas/N{n + 1}"} for p in "ab"}}
        for n in range(60)
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/N0"}}}}
    paths = {"/": {"post": {"requestBody": body}}}
    return paths_document("https://a.example.com", paths=paths, components={"schemas": schemas})


def huge():
    """Return a document of 10 MB, full of operations."""
    text = "x" * 1_000
    paths = {
        f"/p{n}": {"get": {"operationId": f"op{n}", "description": text}} for n in range(9_000)
    }
    return paths_document("https://a.example.com", paths=paths)


@pytest.mark.parametrize("make", [bomb, lambda: "[" * 9_000_000, lambda: "- " * 4_000_000, huge])
def test_a_hostile_document_is_refused_and_costs_this_process_little(make):
    content = make().encode()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    description = read_in_child(content, FunctionsRequest())
    assert description.problems
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 50 * 1_024


def test_a_huge_document_is_read_where_operations_are_picked():
    found = read_in_child(huge().encode(), FunctionsRequest(operations=["op7", "op8999"]))
    assert [function["name"] for function in found.functions] == ["op7", "op8999"]


def test_a_schema_that_grows_without_end_is_cut():
    description = read_in_child(doubling().encode(), FunctionsRequest())
    assert description.problems == {}
    assert "is not described" in description.warnings[0]


def test_a_child_that_takes_too_long_or_dies_is_a_problem_of_the_document(monkeypatch):
    monkeypatch.setattr(reader, "WALL_SECONDS", 0.001)
    assert list(read_in_child(SHOP, FunctionsRequest()).problems) == ["document"]
    monkeypatch.setattr(reader, "WALL_SECONDS", 30)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert list(read_in_child(SHOP, FunctionsRequest()).problems) == ["document"]


def test_the_child_gets_no_environment(monkeypatch, tmp_path):
    """The child could give away whatever it is started with."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n/usr/bin/env > {tmp_path}/seen\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("AMBER_SECRET_KEY", "very secret")
    monkeypatch.setattr(sys, "executable", os.fspath(program))
    read_in_child(SHOP, FunctionsRequest())
    assert "very secret" not in (tmp_path / "seen").read_text()


@pytest.fixture
def policed(monkeypatch, server, other):
    """Allow only the door's address; the hostile names resolve as the corpus says."""

    def use(policy):
        for module in (egress, source, openapi_options):
            monkeypatch.setattr(module, "installation_policy", lambda: policy)

    return use


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
def test_no_document_is_fetched_from_a_hostile_address(url, server, policed):
    policed(guarded(server.port))
    with pytest.raises((UnsafeAddress, DiscoveryError)):
        discover(url.format(port=server.port))
    assert server.accepted == 0


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
def test_no_hostile_server_of_a_document_is_called(url, server, policed, context, monkeypatch):
    """The address is refused when it is found, or at the latest when it is called."""
    policed(guarded(server.port))
    monkeypatch.setattr(source, "read_in_child", describe)  # without a process for each
    text = paths_document(url.format(port=server.port))
    try:
        found = discover(document=text)
    except DiscoveryError as error:
        assert set(error.fields or ()) <= {"servers", "servers[0].url", "options.server"}
        return
    connection = Connection("", "", {"document": text})
    (function,) = OpenAPISource().functions(connection, found.data)
    with pytest.raises(ServiceError, match="address"):
        asyncio.run(function.call({}, context))
    assert server.accepted == 0


REDIRECTS = [url for url in HOSTILE_URLS if "://" in url and url.isprintable() and url.isascii()]


@pytest.mark.parametrize("url", REDIRECTS, ids=ascii)
def test_no_redirect_of_a_document_leads_to_a_hostile_address(url, server, other, policed):
    policed(through_door(server, other))
    server.routes["/"] = send_to(url.format(port=other.port))
    with pytest.raises((UnsafeAddress, FetchError, DiscoveryError)):
        discover(door(server))
    assert other.accepted == 0
