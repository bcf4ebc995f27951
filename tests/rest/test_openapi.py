"""The OpenAPI document against the URLconf: complete, true in form, and made without a warning."""

import re
from typing import Any

import pytest
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator

from amber.web.openapi_texts import EXAMPLES
from engine.events import EVENT_TYPES
from libraries.models import File
from libraries.wire import file_wire
from tests.fixtures.personas import api
from tests.rest.documented import check, closed, json_schema
from tests.rest.routes import METHODS, Route, all_routes, openai_routes

ROUTES = [*all_routes(), *openai_routes()]
FOR_ANYBODY = {
    ("/api/v1/public/assistants/{assistant_id}/", "get"),
    ("/api/v1/public/assistants/{assistant_id}/token/", "post"),
}
OPERATIONS = [(route, method) for route in ROUTES for method in route.methods]


@pytest.fixture(scope="module")
def document() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)


def named(value: Any) -> str:
    return value.template if isinstance(value, Route) else str(value)


@pytest.mark.parametrize(("route", "method"), OPERATIONS, ids=named)
def test_every_address_is_documented(document, route, method):
    operation = document["paths"][route.documented][method]
    assert any(code.startswith(("2", "3")) for code in operation["responses"])
    assert operation.get("security") or (route.documented, method) in FOR_ANYBODY, "no credential?"
    documented = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"]
    assert sorted(documented) == sorted(route.parameters)


def test_nothing_is_documented_that_is_not_there(document):
    there = {(route.documented, method) for route, method in OPERATIONS}
    documented = {
        (path, method)
        for path, operations in document["paths"].items()
        for method in operations
        if method in METHODS
    }
    assert documented == there


def test_is_made_without_a_warning():
    GENERATOR_STATS.reset()
    SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS


def test_is_valid_openapi(document):
    validate_schema(document)


def test_every_reference_leads_somewhere(document):
    wanted: set[str] = set()

    def gather(node: Any) -> None:
        if isinstance(node, dict):
            wanted.update(v for k, v in node.items() if k == "$ref")
            wanted.update(node.get("discriminator", {}).get("mapping", {}).values())
        for inner in node.values() if isinstance(node, dict) else node:
            if isinstance(inner, dict | list):
                gather(inner)

    gather(document)
    for reference in wanted:
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_operations_have_names_of_their_own(document):
    names = [
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))


def test_the_events_of_a_turn_are_documented(document):
    events = document["paths"]["/api/v1/turns/{turn_id}/events/"]["get"]
    assert list(events["responses"]["200"]["content"]) == ["text/event-stream"]
    assert {"400", "401", "403", "404", "503"} <= set(events["responses"])
    mapping = document["components"]["schemas"]["TurnEvent"]["discriminator"]["mapping"]
    assert set(mapping) == set(EVENT_TYPES)


@pytest.mark.parametrize(
    ("path", "method", "statuses"),
    [
        ("memories/", "delete", {"200"}),
        ("chats/", "post", {"201", "404"}),
        ("chats/search/", "get", {"200", "404"}),
        ("libraries/search/", "post", {"200", "404"}),
        ("invitations/find/", "post", {"200", "404"}),
        ("invitations/accept/", "post", {"200", "404"}),
        ("me/organization/", "put", {"200", "404"}),
        ("assistants/", "get", {"200", "404"}),
        ("libraries/", "get", {"200", "404"}),
        ("tools/", "get", {"200", "404"}),
    ],
)
def test_statuses_are_those_that_are_answered(document, path, method, statuses):
    responses = document["paths"][f"/api/v1/{path}"][method]["responses"]
    assert {status for status in responses if status[0] == "2" or status == "404"} == statuses


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        ("tools/{tool_id}/connect/", {"400"}),
        ("tools/{tool_id}/refresh/", {"400"}),
        ("documents/{document_id}/refresh/", {"400", "413"}),
    ],
)
def test_refusals_that_no_body_and_no_query_explain_are_documented(document, path, statuses):
    """They depend on the row, and on what the server at its address says."""
    assert statuses <= set(document["paths"][f"/api/v1/{path}"]["post"]["responses"])


def test_scenes_that_are_added_come_at_once(document):
    path = "/api/v1/assistants/{assistant_id}/scene-prompts/usual/"
    (content,) = document["paths"][path]["post"]["responses"]["201"]["content"].values()
    assert content["schema"]["type"] == "array"


def test_an_empty_page_of_usage_has_one_form(document):
    page = document["components"]["schemas"]["UsagePage"]
    assert set(page["required"]) == {"next", "previous", "results"}
    items = document["components"]["schemas"]["CallOrSum"]["oneOf"]
    assert len(items) == 2


def test_every_idempotency_key_has_the_form_that_is_taken(document):
    found = [
        parameter["schema"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "Idempotency-Key"
    ]
    assert len(found) > 10
    assert all(re.fullmatch(schema["pattern"], "k" * 200) for schema in found)
    assert not any(re.fullmatch(schema["pattern"], "k" * 201) for schema in found)


def test_files_are_of_their_own_type(document):
    content = document["paths"]["/api/v1/files/{file_id}/content/"]["get"]["responses"]["200"]
    assert list(content["content"]) == ["*/*"]


def test_what_streams_says_so(document):
    for path in ("chats/{chat_id}/messages/", "messages/{message_id}/regenerate/"):
        responses = document["paths"][f"/api/v1/{path}"]["post"]["responses"]
        assert "text/event-stream" in responses["200"]["content"]
        assert "application/json" in responses["201"]["content"]


def test_is_served_to_anybody_with_pages_to_read_it(db):
    assert api().get("/api/schema/").status_code == 200
    assert api().get("/api/docs/").status_code == 200


def test_every_operation_says_in_a_line_what_it_does(document):
    groups = {group["name"] for group in document["tags"] if group["description"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            summary = operation.get("summary", "")
            assert 0 < len(summary) <= 120, f"{method} {path} has no docstring, or a long sentence"
            assert set(operation["tags"]) <= groups, (
                f"{method} {path}: amber/lib/rest/openapi_descriptions.py"
            )


def test_what_is_said_of_an_operation_is_its_own(document):
    said = document["paths"]["/api/v1/messages/{message_id}/"]["get"]
    assert said["summary"] == "Show the message and the ids of its siblings on other branches"
    assert "description" not in said
    asked = document["paths"]["/api/v1/libraries/{library_id}/ask/"]["post"]
    assert asked["summary"] == "Ask the library one question and wait for the answer"
    assert asked["description"].startswith("If the model fails, the answer is 502")


def test_citations_are_documented_as_what_a_search_finds(document):
    schemas = document["components"]["schemas"]
    for name in ("Message", "Answer"):
        citations = schemas[name]["properties"]["citations"]
        assert citations["items"] == {"$ref": "#/components/schemas/Passage"}


def test_every_example_is_of_an_operation_and_has_its_shape(document):
    told = {
        operation["operationId"]: operation
        for operations in document["paths"].values()
        for operation in operations.values()
    }
    resolver = {"components": document["components"]}
    for operation_id, examples in EXAMPLES.items():
        content = told[operation_id]["requestBody"]["content"]["application/json"]
        assert set(content["examples"]) == set(examples)
        shape = closed(json_schema({**resolver, **content["schema"]}))
        for name, body in examples.items():
            problems = [error.message for error in Draft202012Validator(shape).iter_errors(body)]
            assert not problems, f"{operation_id}, {name}"


@pytest.mark.parametrize("change", [{"extra": 1}, {"size": None}, {"id": "no UUID"}])
def test_an_answer_that_differs_from_what_is_documented_is_noticed(change):
    address = "/api/v1/files/01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00/"
    file = File(name="f", size=1, created_at=timezone.now())
    body = dict(file_wire(file))
    assert check("get", address, 200, body) == {"File"}
    with pytest.raises(AssertionError):
        check("get", address, 200, body | change)
    with pytest.raises(AssertionError):
        check("get", address, 200, {name: body[name] for name in body if name != "file_hash"})
