"""Test that each operation gets the key as it wants it, in its place, and no operation another's."""

import asyncio
import json
from dataclasses import replace

import pytest

from amber.lib.tests.local_server import say
from tools.openapi.functions import FunctionsRequest, describe
from tools.openapi.security import NOT_SUPPORTED
from tools.openapi.source import OpenAPISource
from tools.outgoing.auth import send_key
from tools.outgoing.requests import ServiceError
from tools.protocol import Exchange
from tools.source import Connection, DiscoveryError

SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "login": {"type": "http", "scheme": "basic"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api key"},
    "ask": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "mutual": {"type": "mutualTLS"},
    "host": {"type": "apiKey", "in": "header", "name": "Host"},
}
BEARER = {"type": "bearer"}


def document(*, security=None, **wanted):
    """One operation for each; its `security`, None for none of its own."""
    paths = {}
    for name, own in wanted.items():
        paths[f"/{name}"] = {
            "get": {"operationId": name} | ({} if own is None else {"security": own})
        }
    whole = {"openapi": "3.1.0", "servers": [{"url": "https://a.example.com"}], "paths": paths}
    whole |= {"components": {"securitySchemes": SCHEMES}}
    return whole if security is None else whole | {"security": security}


def auths_of(content, **request):
    found = describe(json.dumps(content).encode(), FunctionsRequest(**request))
    assert found.problems == {}
    return {f["name"]: f.get("auth", "as the tool") for f in found.functions}, found.warnings


def test_an_operations_own_security_counts_before_the_documents():
    content = document(
        security=[{"token": []}],
        usual=None,
        open=[],
        own=[{"header": []}],
        either=[{}, {"login": []}],
        both=[{"header": [], "ask": []}],
        unsendable=[{"mutual": []}, {"cookie": []}],
    )
    auths, warnings = auths_of(content)
    assert auths == {
        "usual": [BEARER | {"scheme": "token"}],
        "open": [],
        "own": [{"type": "header", "name": "X-Api-Key", "scheme": "header"}],
        "either": [{"type": "basic", "scheme": "login"}],
        "both": [
            {"type": "header", "name": "X-Api-Key", "scheme": "header"},
            {"type": "query", "name": "key", "scheme": "ask"},
        ],
        "unsendable": [{"type": "cookie", "name": "sid", "scheme": "cookie"}],
    }
    assert warnings == []


def test_what_nobody_says_is_the_tools_and_what_the_owner_says_counts():
    auths, _ = auths_of(document(usual=None))
    assert auths == {"usual": "as the tool"}
    auths, _ = auths_of(document(usual=None, own=[{"login": []}], open=[]), auth=BEARER)
    assert auths == {"usual": "as the tool", "own": "as the tool", "open": []}


def test_what_amber_cannot_send_is_told():
    content = document(a=[{"mutual": []}], b=[{"gone": []}])
    content["components"] = {"securitySchemes": {"mutual": {"type": "mutualTLS"}}}
    auths, warnings = auths_of(content)
    assert auths == {"a": "as the tool", "b": "as the tool"}
    assert warnings[0] == NOT_SUPPORTED
    assert [w for w in warnings if "that Amber cannot send" in w] == [
        "a: it wants credentials that Amber cannot send.",
        "b: it wants credentials that Amber cannot send.",
    ]


@pytest.mark.parametrize("security", [5, "x", {}, [5], [[]], [{"token": 5}], None, [None]])
def test_odd_requirements_do_no_harm(security):
    auths_of(document(security=security, a=security))


def test_parameters_that_carry_the_key_are_not_the_models():
    content = document(a=[{"ask": [], "cookie": []}], b=[])
    parameters = [
        {"name": name, "in": where, "schema": {"type": "string"}}
        for name, where in (("key", "query"), ("sid", "cookie"), ("key", "header"), ("q", "query"))
    ]
    for path in content["paths"].values():
        path["parameters"] = parameters
    found = describe(json.dumps(content).encode(), FunctionsRequest())
    one, other = [set(f["parameters"]["properties"]) for f in found.functions]
    assert one == {"key", "q"}
    assert other == {"key", "key_header", "q", "sid"}


# -- On the wire -----------------------------------------------------------------------------------


@pytest.fixture
def call(settings, server, context):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    address = f"http://127.0.0.1:{server.port}"

    def call(function, content, api_key, exchanges=None, says=b"ok", **options):
        options = {"document": json.dumps(content), "server": address} | options
        connection = Connection("", api_key, OpenAPISource().check_options(options), name="Shop")
        found = asyncio.run(OpenAPISource().discover(connection))
        kept = json.loads(json.dumps(found.data))
        functions = {f.spec.name: f for f in OpenAPISource().functions(connection, kept)}
        server.routes[f"/{function}"] = say(says, headers={"Content-Type": "text/plain"})
        server.requests.clear()
        about = replace(context, call_id="c1", exchanges=exchanges)
        output = asyncio.run(functions[function].call({}, about))
        assert says != b"ok" or output.text == "ok"
        (request,) = server.requests
        return request

    return call


KEYED = document(
    security=[{"token": []}],
    usual=None,
    open=[],
    inheader=[{"header": []}],
    inquery=[{"ask": []}],
    incookie=[{"cookie": []}],
    both=[{"header": [], "ask": []}],
)


def test_each_operation_gets_the_key_in_its_own_place(call):
    seen = {name: call(name, KEYED, "s3&t") for name in ("usual", "open", "inheader", "inquery")}
    assert seen["usual"].headers["authorization"] == "Bearer s3&t"
    assert seen["inheader"].headers["x-api-key"] == "s3&t"
    assert "authorization" not in seen["inheader"].headers
    assert seen["inquery"].target == "/inquery?key=s3%26t"
    assert call("incookie", KEYED, "s3&t").headers["cookie"] == "sid=s3&t"
    assert not {"authorization", "x-api-key", "cookie"} & set(seen["open"].headers)
    assert "?" not in seen["open"].target


def test_several_keys_are_told_apart_by_their_schemes(call):
    keys = json.dumps({"header": "partner", "ask": "user", "token": "t"})
    request = call("both", KEYED, keys)
    assert request.headers["x-api-key"] == "partner"
    assert request.target == "/both?key=user"
    assert call("usual", KEYED, keys).headers["authorization"] == "Bearer t"
    without = call("incookie", KEYED, keys)
    assert not {"authorization", "cookie"} & set(without.headers)


def test_the_key_is_shown_in_no_exchange(call):
    for api_key in ("s3 &/t", json.dumps({"ask": "s3 &/t", "cookie": "c00kie"})):
        for name in ("inquery", "both"):
            exchanges: list[Exchange] = []
            call(name, KEYED, api_key, exchanges)
            shown = str(exchanges)
            assert "s3" not in shown
            assert "•••" in shown
    exchanges = []
    call("incookie", KEYED, json.dumps({"cookie": "c00kie"}), exchanges)
    assert "c00kie" not in str(exchanges)


SEVERAL_KEYS = {"token": "abc==", "login": "me:hunter2", "cookie": "c00kie==", "ask": "a key"}


@pytest.mark.parametrize(
    ("auth", "secrets"),
    [
        ({"type": "bearer", "scheme": "token"}, {"abc=="}),
        ({"type": "header", "name": "X-Api-Key", "scheme": "ask"}, {"a key"}),
        ({"type": "basic", "scheme": "login"}, {"bWU6aHVudGVyMg==", "me:hunter2", "hunter2"}),
        ({"type": "cookie", "name": "sid", "scheme": "cookie"}, {"c00kie=="}),
        ({"type": "query", "name": "key", "scheme": "ask"}, {"a key", "a%20key"}),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else "",
)
def test_each_of_several_keys_is_a_secret_in_every_form(auth, secrets):
    api_key = json.dumps(SEVERAL_KEYS)
    key = send_key([auth], api_key)
    assert secrets <= set(key.secrets(api_key))
    assert list(key.secrets(api_key)) == sorted(key.secrets(api_key), key=len, reverse=True)
    assert all(secret not in repr(key) for secret in secrets)


def test_what_a_service_echoes_of_several_keys_is_shown_nowhere(call):
    content = document(login=[{"login": []}], incookie=[{"cookie": []}], usual=[{"token": []}])
    for name, secret in (("login", "hunter2"), ("incookie", "c00kie=="), ("usual", "abc==")):
        exchanges: list[Exchange] = []
        body = f"You sent {secret}.".encode()
        call(name, content, json.dumps(SEVERAL_KEYS), exchanges, says=body)
        assert "You sent •••" in str(exchanges)
        assert secret not in str(exchanges)


def test_the_owner_may_say_query_and_cookie(call):
    own = call("usual", KEYED, "k", auth={"type": "query", "name": "token"})
    assert own.target == "/usual?token=k"
    own = call("usual", KEYED, "k", auth={"type": "cookie", "name": "t"})
    assert own.headers["cookie"] == "t=k"


def discovered(content, api_key):
    options = OpenAPISource().check_options({"document": json.dumps(content)})
    return asyncio.run(OpenAPISource().discover(Connection("", api_key, options, name="Shop")))


def test_a_key_that_no_operation_can_be_sent_is_refused_when_the_tool_is_added(call):
    only = document(incookie=[{"cookie": []}])
    with pytest.raises(DiscoveryError, match="cookie cannot carry"):
        discovered(only, "a;b")
    found = discovered(KEYED, "a;b")
    assert found.warnings == ["incookie: The key contains characters a cookie cannot carry."]
    with pytest.raises(ServiceError, match="its key is not usable"):
        call("incookie", KEYED, "a;b")


def test_a_documents_key_in_a_header_of_the_connection_is_not_sent(call):
    content = document(a=[{"host": []}])
    assert "k" not in {call("a", content, "k").headers.get(n) for n in ("host", "authorization")}


# -- Choosing --------------------------------------------------------------------------------------


def many():
    paths = {
        f"/{group}/p{number}": {"get": {"operationId": f"{group}{number}", "tags": [group]}}
        for group, count in (("pets", 150), ("users", 60), ("orders", 40))
        for number in range(count)
    }
    return {"openapi": "3.2.0", "servers": [{"url": "https://a.example.com"}], "paths": paths}


def names(*operations):
    found = describe(json.dumps(many()).encode(), FunctionsRequest(operations=operations))
    return [each["name"] for each in found.functions], found.problems


def test_hundreds_of_operations_are_chosen_by_tag_or_path():
    _, problems = names()
    (text,) = problems.values()
    assert "250 operations" in text
    assert "By tag: tag:pets (150), tag:users (60), tag:orders (40)." in text
    assert len(names("tag:users")[0]) == 60
    assert len(names("tag:users", "tag:orders")[0]) == 100
    assert names("/orders/p3")[0] == ["orders3"]
    assert names("/orders/p3*")[0] == ["orders3", *(f"orders3{n}" for n in range(10))]
    assert len(names("GET /users/*", "pets7")[0]) == 61
    assert "no operation /gone*, tag:gone" in names("tag:gone", "/gone*")[1]["options.operations"]


def test_query_of_3_2_is_read_and_only_reads():
    body = {
        "content": {"application/json": {"schema": {"type": "object", "properties": {"q": {}}}}}
    }
    paths = {"/find": {"query": {"operationId": "find", "requestBody": body}}}
    whole = {"openapi": "3.2.0", "servers": [{"url": "https://a.example.com"}], "paths": paths}
    (function,) = describe(json.dumps(whole).encode(), FunctionsRequest()).functions
    assert (function["request"]["method"], function["read_only"]) == ("QUERY", True)
    assert list(function["parameters"]["properties"]) == ["q"]
