"""Swagger 2.0 documents become functions as their OpenAPI 3 twins do."""

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amber.lib.tests.local_server import say
from tools.openapi.functions import FunctionsRequest, describe
from tools.openapi.source import OpenAPISource
from tools.source import Connection

SHOP = {
    "swagger": "2.0",
    "info": {"title": "Shop", "version": "1"},
    "host": "shop.example.com",
    "basePath": "/v2",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "securityDefinitions": {
        "login": {"type": "basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "sign": {"type": "oauth2", "flow": "implicit", "authorizationUrl": "https://a.example"},
    },
    "security": [{"key": []}],
    "parameters": {
        "page": {"name": "page", "in": "query", "type": "integer", "minimum": 1},
        "pet": {
            "name": "pet",
            "in": "body",
            "required": True,
            "schema": {"$ref": "#/definitions/Pet"},
        },
    },
    "definitions": {
        "Pet": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "friends": {"$ref": "#/definitions/Pets"}},
        },
        "Pets": {"type": "array", "items": {"$ref": "#/definitions/Pet"}},
    },
    "paths": {
        "/pets": {
            "parameters": [{"$ref": "#/parameters/page"}],
            "get": {
                "operationId": "listPets",
                "parameters": [
                    {
                        "name": "tags",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "multi",
                    },
                    {
                        "name": "ids",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "integer"},
                        "collectionFormat": "pipes",
                    },
                    {"name": "sort", "in": "query", "type": "array", "items": {"type": "string"}},
                ],
            },
            "post": {
                "operationId": "addPet",
                "security": [{"login": []}],
                "parameters": [{"$ref": "#/parameters/pet"}],
            },
        },
        "/pets/{id}/photo": {
            "put": {
                "operationId": "setPhoto",
                "security": [{"sign": ["write"]}],
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "string"},
                    {"name": "photo", "in": "formData", "type": "file", "required": True},
                    {"name": "about", "in": "formData", "type": "string", "description": "Words."},
                ],
            },
            "patch": {
                "operationId": "rate",
                "security": [],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "type": "string"},
                    {"name": "stars", "in": "formData", "type": "integer", "required": True},
                ],
            },
        },
    },
}


def functions_of(document, **request):
    found = describe(json.dumps(document).encode(), FunctionsRequest(**request))
    assert found.problems == {}
    return {each["name"]: each for each in found.functions}


def test_operations_bodies_and_forms_become_functions():
    functions = functions_of(SHOP)
    assert list(functions) == ["listPets", "addPet", "setPhoto", "rate"]
    listed = functions["listPets"]["parameters"]
    assert listed["properties"]["page"] == {"type": "integer", "minimum": 1}
    assert set(listed["properties"]) == {"page", "tags", "ids", "sort"}
    added = functions["addPet"]["parameters"]
    assert added["required"] == ["name"]
    assert "friends" in added["properties"]
    photo = functions["setPhoto"]
    assert photo["request"]["media_type"] == "multipart/form-data"
    assert photo["parameters"]["required"] == ["id", "photo"]
    assert photo["parameters"]["properties"]["about"]["description"] == "Words."
    assert functions["rate"]["request"]["media_type"] == "application/x-www-form-urlencoded"
    assert {each["request"]["server"] for each in functions.values()} == {
        "https://shop.example.com/v2"
    }


def test_the_key_goes_where_each_operation_wants_it():
    auths = {name: each.get("auth") for name, each in functions_of(SHOP).items()}
    assert auths == {
        "listPets": [{"type": "header", "name": "X-Key", "scheme": "key"}],
        "addPet": [{"type": "basic", "scheme": "login"}],
        "setPhoto": [{"type": "bearer", "scheme": "sign"}],
        "rate": [],
    }


def test_without_a_host_the_documents_own_server_is_called():
    bare = {name: part for name, part in SHOP.items() if name not in ("host", "schemes")}
    functions = functions_of(bare, document_url="http://other.example.com:8080/docs/api.json")
    assert functions["rate"]["request"]["server"] == "http://other.example.com:8080/v2"


def test_calls_are_sent_as_the_document_says(settings, server, context):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    for path in ("/v2/pets", "/v2/pets/7/photo"):
        server.routes[path] = say(b"fine", headers={"Content-Type": "text/plain"})
    document = SHOP | {"host": f"127.0.0.1:{server.port}", "schemes": ["http"]}
    options = OpenAPISource().check_options({"document": json.dumps(document)})
    connection = Connection("", "k1:k2", options, name="Shop")
    found = asyncio.run(OpenAPISource().discover(connection))
    functions = {f.spec.name: f for f in OpenAPISource().functions(connection, found.data)}

    def call(called, **arguments):
        assert (
            asyncio.run(functions[called].call(arguments, replace(context, call_id="c"))).text
            == "fine"
        )
        return server.requests[-1]

    listed = call("listPets", tags=["a", "b"], ids=[1, 2], sort=["x", "y"], page=2)
    assert listed.target == "/v2/pets?page=2&tags=a&tags=b&ids=1%7C2&sort=x,y"
    assert listed.headers["x-key"] == "k1:k2"
    added = call("addPet", name="Rex")
    assert json.loads(added.body) == {"name": "Rex"}
    assert added.headers["authorization"].startswith("Basic ")
    rated = call("rate", id="7", stars=5)
    assert rated.body == b"stars=5"
    assert "authorization" not in rated.headers
    photo = call("setPhoto", id="7", photo="abc")
    assert b'name="photo"; filename="photo"' in photo.body


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "body", "formData", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["in", "name", "type", "$ref", "parameters", "schema", "get", "/a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(paths=ODD, rest=st.dictionaries(st.sampled_from(sorted(SHOP)), ODD, max_size=4))
def test_odd_documents_are_described_or_refused(paths, rest):
    whole = {
        **SHOP,
        **rest,
        "swagger": "2.0",
        "paths": {"/a": {"get": paths, "post": paths}, "/b": paths},
    }
    describe(json.dumps(whole).encode(), FunctionsRequest(document_url="https://a.example.com/"))


@pytest.mark.parametrize("version", ["1.2", 1.2, None, ["2.0"], {}])
def test_other_versions_of_swagger_are_refused(version):
    whole = json.dumps(SHOP | {"swagger": version}).encode()
    assert "swagger" in describe(whole, FunctionsRequest()).problems
