import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator

from tools.openapi.functions import (
    MAX_FUNCTIONS,
    MAX_SCHEMA_BYTES,
    MAX_WARNINGS,
    FunctionsRequest,
    describe,
)

DATA = Path(__file__).parents[1] / "data"
SHOP = (DATA / "petstore-3.0.yaml").read_bytes()
FOREST = (DATA / "forest-3.1.json").read_bytes()
SHOP_URL = "https://shop.example.com/docs/openapi.yaml"
NOTHING_SAID = FunctionsRequest()


def document(paths, **more):
    whole = {"openapi": "3.1.0", "servers": [{"url": "https://a.example.com"}], "paths": paths}
    return json.dumps(whole | more).encode()


def described(paths, request=NOTHING_SAID, **more):
    return describe(document(paths, **more), request)


def functions_of(content):
    description = describe(content, FunctionsRequest(document_url=SHOP_URL))
    assert description.problems == {}
    return {function["name"]: function for function in description.functions}


def test_every_operation_is_a_function():
    shop = functions_of(SHOP)
    assert list(shop) == [
        *("listPets", "addPet", "get_pet", "replacePet", "delete_pets_id"),
        *("petPhoto", "addPhoto", "order"),
    ]
    assert shop["listPets"]["description"] == "All pets, newest first."
    assert shop["delete_pets_id"]["description"] == "Take a pet away"
    assert shop["replacePet"]["description"] == "PUT /pets/{id}"
    safe = {name for name, function in shop.items() if function["idempotent"]}
    assert safe == {"listPets", "get_pet", "petPhoto"}


def test_every_schema_is_valid():
    for content in (SHOP, FOREST):
        for function in functions_of(content).values():
            Draft202012Validator.check_schema(function["parameters"])


def test_parameters_and_a_plain_body_are_one_flat_object():
    shop = functions_of(SHOP)
    assert shop["addPet"]["parameters"] == {
        "type": "object",
        "properties": {
            "X-Trace": {"type": "string"},
            "name": {"type": "string", "maxLength": 50, "examples": ["Rex"]},
            "born": {"type": ["string", "null"], "format": "date"},
            "price": {"type": "number", "minimum": 0, "exclusiveMaximum": 1000},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_name_that_two_places_share_is_told_apart():
    parameters: list[object] = [
        {"name": "id", "in": where, "required": where == "path", "schema": {}}
        for where in ("cookie", "header", "query", "path")
    ]
    body = {
        "required": True,
        "content": {"application/json": {"schema": {"properties": {"id": {}}, "required": ["id"]}}},
    }
    operation = {"post": {"operationId": "x", "parameters": parameters, "requestBody": body}}
    (function,) = described({"/a/{id}": operation}).functions
    assert list(function["parameters"]["properties"]) == [
        *("id", "id_query", "id_header", "id_cookie", "id_body")
    ]
    assert function["parameters"]["required"] == ["id", "id_body"]


def test_a_body_that_is_no_plain_object_is_one_argument():
    forest = functions_of(FOREST)
    grow = forest["growTree"]["parameters"]
    assert grow["required"] == ["tree"]
    assert grow["properties"]["body"]["required"] == ["by"]
    assert forest["note"]["parameters"]["required"] == ["body"]


def test_headers_of_the_connection_and_of_the_key_are_not_the_models():
    names = ["Authorization", "Host", "Content-Type", "Cookie", "X-Api-Key", "X Bad", "X-Good"]
    parameters = [{"name": name, "in": "header", "schema": {}} for name in names]
    request = FunctionsRequest(auth={"type": "header", "name": "x-api-key"})
    (function,) = described({"/": {"get": {"parameters": parameters}}}, request).functions
    assert list(function["parameters"]["properties"]) == ["X-Good"]


def test_an_operation_replaces_its_paths_parameter():
    item = {
        "parameters": [{"name": "a", "in": "query", "schema": {"type": "string"}}],
        "get": {"parameters": [{"name": "a", "in": "query", "schema": {"type": "integer"}}]},
    }
    (function,) = described({"/": item}).functions
    assert function["parameters"]["properties"] == {"a": {"type": "integer"}}


def test_a_part_of_the_path_that_nobody_described_is_required_text():
    (function,) = described({"/a/{b}": {"get": {}}}).functions
    assert function["parameters"]["required"] == ["b"]


def test_names_are_made_fit_and_unique():
    item = {method: {"operationId": "a.b c"} for method in ("get", "put", "post")}
    found = described({"/": item, "/x": {"get": {"operationId": "é" * 3}, "put": {}}}).functions
    assert [each["name"] for each in found] == ["a_b_c", "a_b_c_2", "a_b_c_3", "get_x", "put_x"]


def test_the_kind_of_credential_is_the_documents():
    assert describe(SHOP, FunctionsRequest(document_url=SHOP_URL)).auth == {
        "type": "header",
        "name": "X-Api-Key",
    }
    assert describe(FOREST, FunctionsRequest()).auth == {"type": "basic"}
    own = {"type": "bearer"}
    assert describe(FOREST, FunctionsRequest(auth=own)).auth == own


@pytest.mark.parametrize(
    ("scheme", "auth"),
    [
        ({"type": "http", "scheme": "Bearer"}, {"type": "bearer"}),
        ({"type": "oauth2", "flows": {}}, {"type": "bearer"}),
        ({"type": "apiKey", "in": "query", "name": "key"}, {"type": "query", "name": "key"}),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, {"type": "cookie", "name": "sid"}),
        ({"type": "apiKey", "in": "body", "name": "key"}, None),
        ({"type": "apiKey", "in": "header", "name": "X\r\nEvil: 1"}, None),
        ({"type": "mutualTLS"}, None),
    ],
    ids=range(7),
)
def test_a_kind_that_cannot_be_sent_is_said(scheme, auth):
    components = {"securitySchemes": {"it": scheme}}
    description = described({"/": {"get": {}}}, components=components)
    assert description.auth == auth
    assert bool(description.warnings) == (auth is None)


# -- Servers -------------------------------------------------------------------------------------


def server_in(servers, *, document_url="", override=""):
    request = FunctionsRequest(document_url=document_url, server=override)
    more = {} if servers is None else {"servers": servers}
    content = json.dumps({"openapi": "3.0.0", "paths": {"/": {"get": {}}}} | more).encode()
    description = describe(content, request)
    if description.problems:
        return description.problems
    return description.functions[0]["request"]["server"]


@pytest.mark.parametrize(
    ("servers", "document_url", "server"),
    [
        ([{"url": "https://b.example.com/v1/"}], SHOP_URL, "https://b.example.com/v1"),
        ([{"url": "/v1"}], SHOP_URL, "https://shop.example.com/v1"),
        ([{"url": "v1"}], SHOP_URL, "https://shop.example.com/docs/v1"),
        ([{"url": "//b.example.com"}], SHOP_URL, "https://b.example.com"),
        ([], SHOP_URL, "https://shop.example.com"),
        (None, SHOP_URL, "https://shop.example.com"),
        (
            [{"url": "https://{r}.example.com", "variables": {"r": {"default": "eu"}}}],
            "",
            "https://eu.example.com",
        ),
    ],
    ids=range(7),
)
def test_a_server_is_found(servers, document_url, server):
    assert server_in(servers, document_url=document_url) == server


def test_an_own_server_counts_before_the_documents():
    override = "http://own.example.com/x/"
    assert server_in([{"url": "/v1"}], override=override) == "http://own.example.com/x"


@pytest.mark.parametrize(
    ("servers", "place"),
    [
        (None, "options.server"),
        ([{"url": "/v1"}], "options.server"),
        ([{"url": "ftp://a.example.com"}], "servers[0].url"),
        ([{"url": "https://user:pw@a.example.com"}], "servers[0].url"),
        ([{"url": "https://a.example.com?x=1"}], "servers[0].url"),
        ([{"url": "https://a.example.com\\@b"}], "servers[0].url"),
        ([{"url": "https://[::1"}], "servers[0].url"),
        ([{"url": 1}], "servers[0].url"),
        (["x"], "servers[0].url"),
        ([{"url": "https://{r}.example.com"}], "servers[0].variables.r"),
    ],
    ids=range(10),
)
def test_a_server_that_cannot_be_is_a_problem_at_its_place(servers, place):
    assert list(server_in(servers)) == [place]


# -- Limits ------------------------------------------------------------------------------------


def many_paths(count):
    return {f"/p{number}": {"get": {"operationId": f"op{number}"}} for number in range(count)}


def test_too_many_operations_ask_to_pick():
    description = described(many_paths(MAX_FUNCTIONS + 1))
    assert description.functions == []
    (text,) = description.problems.values()
    assert list(description.problems) == ["options.operations"]
    assert "has 129 operations" in text
    assert "op0, op1" in text


def test_operations_are_picked_by_id_by_name_or_by_address():
    paths = many_paths(MAX_FUNCTIONS + 1) | {"/a b": {"put": {"operationId": "odd name"}}}
    request = FunctionsRequest(operations=["op128", "GET /p3", "odd_name"])
    names = [function["name"] for function in described(paths, request).functions]
    assert names == ["op3", "op128", "odd_name"]


def test_an_unknown_pick_is_named():
    description = described(many_paths(2), FunctionsRequest(operations=["op1", "op7"]))
    assert description.problems == {
        "options.operations": "There is no operation op7. There are: op0, op1."
    }


def test_what_cannot_be_called_is_left_out_and_said_or_a_problem_if_it_was_picked():
    content = {"content": {"application/zip": {}}, "required": True}
    paths = {"/a": {"post": {"operationId": "zip", "requestBody": content}}, "/b": {"get": {}}}
    left_out = described(paths)
    assert [function["name"] for function in left_out.functions] == ["get_b"]
    assert "paths./a.post.requestBody.content" in left_out.warnings[0]
    picked = described(paths, FunctionsRequest(operations=["zip"]))
    assert list(picked.problems) == ["paths./a.post.requestBody.content"]


def test_a_document_without_operations_is_a_problem():
    assert "paths" in described({"/a": {"summary": "nothing"}}).problems


def wide(levels, width):
    schema: dict[str, object] = {"type": "string", "description": "x" * 100}
    for _ in range(levels):
        schema = {"type": "object", "properties": {f"field{n}": schema for n in range(width)}}
    return schema


def test_a_schema_is_described_as_deep_as_fits():
    body = {"required": True, "content": {"application/json": {"schema": wide(3, 8)}}}
    description = described({"/": {"post": {"operationId": "big", "requestBody": body}}})
    (function,) = description.functions
    assert len(orjson.dumps(function["parameters"])) <= MAX_SCHEMA_BYTES
    properties = function["parameters"]["properties"]
    assert properties["field0"]["properties"]["field0"]["type"] == "object"
    assert description.warnings == ["big: what is nested more than 1 deep is not described."]


def test_a_function_that_fits_at_no_depth_is_left_out():
    parameters = [{"name": f"p{n}", "in": "query", "schema": {}} for n in range(2_000)]
    description = described({"/a": {"get": {"parameters": parameters}}, "/b": {"get": {}}})
    assert [function["name"] for function in description.functions] == ["get_b"]
    assert "however much is left out" in description.warnings[0]


def test_warnings_are_few():
    parameters = [{"name": "q", "in": "query", "schema": {"$ref": "other.json"}}]
    paths = {f"/p{n}": {"get": {"parameters": parameters}} for n in range(100)}
    warnings = described(paths).warnings
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1] == "And 50 more of this kind."


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 300) | st.sampled_from(["", "/", "x", "query"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "get",
                        "post",
                        "parameters",
                        "name",
                        "in",
                        "schema",
                        "requestBody",
                        "servers",
                    ),
                    *(
                        "content",
                        "application/json",
                        "required",
                        "$ref",
                        "url",
                        "/a/{b}",
                        "variables",
                    ),
                    *("operationId", "description", "encoding", "style", "explode", "properties"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@given(ANYTHING, ANYTHING, ANYTHING)
def test_any_document_is_described_or_refused(item, components, rest):
    whole = {"openapi": "3.0.0", "paths": {"/a/{b}": item}, "components": components}
    for name in ("servers", "security", "info"):
        whole[name] = rest
    description = describe(
        json.dumps(whole).encode(), FunctionsRequest(server="https://a.example.com")
    )
    assert bool(description.functions) != bool(description.problems)
    for function in description.functions:
        Draft202012Validator.check_schema(function["parameters"])


def test_methods_of_other_names_and_whole_queries_are_openapi_3_2():
    item = {
        "query": {"operationId": "ask"},
        "additionalOperations": {
            "COPY": {"operationId": "copyIt"},
            "TRACE": {"operationId": "traceIt"},
            "get\r\n": {"operationId": "split"},
        },
        "get": {
            "operationId": "find",
            "parameters": [
                {
                    "name": "all",
                    "in": "querystring",
                    "required": True,
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
                                "required": ["q"],
                            }
                        }
                    },
                }
            ],
        },
        "post": {
            "operationId": "send",
            "requestBody": {
                "content": {"application/json": {"$ref": "#/components/mediaTypes/it"}}
            },
        },
    }
    media = {"it": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    whole = {
        "openapi": "3.2.0",
        "servers": [{"url": "https://a.example.com", "name": "only"}],
        "paths": {"/x": item},
        "components": {"mediaTypes": media},
    }
    found = describe(json.dumps(whole).encode(), FunctionsRequest())
    assert found.problems == {}
    functions = {each["name"]: each for each in found.functions}
    assert {name: each["request"]["method"] for name, each in functions.items()} == {
        "find": "GET",
        "send": "POST",
        "ask": "QUERY",
        "copyIt": "COPY",
    }
    assert functions["find"]["parameters"]["required"] == ["q"]
    assert [p["where"] for p in functions["find"]["request"]["places"]] == ["query", "query"]
    assert functions["ask"]["read_only"]
    assert not functions["copyIt"]["read_only"]
    assert list(functions["send"]["parameters"]["properties"]) == ["a"]
    assert len([each for each in found.warnings if "does not send that method" in each]) == 2
