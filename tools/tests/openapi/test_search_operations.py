"""A document of hundreds of operations is offered through a search over them."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from amber.lib.errors import Invalid
from amber.lib.tests.local_server import say
from tools.openapi.operation_search import CHANGE, FIND, READ
from tools.openapi.source import OpenAPISource
from tools.protocol import ArgumentsError
from tools.source import Connection, DiscoveryError

KEY = "secret-of-the-shop"


def document(count, **operation):
    paths: dict[str, Any] = {}
    for number in range(count):
        paths[f"/things{number}/{{id}}"] = {
            "get": {"operationId": f"getThing{number}", "summary": f"Reads thing {number}."}
        }
    paths["/invoices"] = {
        "get": {
            "operationId": "listInvoices",
            "summary": "Lists the invoices of a customer.",
            "parameters": [{"name": "customer", "in": "query", "schema": {"type": "string"}}],
        },
        "post": {"operationId": "createInvoice", "summary": "Writes an invoice."} | operation,
    }
    return {"openapi": "3.2.0", "info": {"title": "Big"}, "paths": paths}


@pytest.fixture
def discover(settings, server):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]

    def make(content, **options):
        given = {"document": json.dumps(content), "server": f"http://127.0.0.1:{server.port}"}
        connection = Connection("", KEY, OpenAPISource().check_options(given | options), name="Big")
        found = asyncio.run(OpenAPISource().discover(connection))
        kept = json.loads(json.dumps(found.data))
        return {f.spec.name: f for f in OpenAPISource().functions(connection, kept)}, kept

    return make


@pytest.fixture
def call(context):
    return lambda function, **arguments: (
        asyncio.run(function.call(arguments, replace(context, call_id="c1"))).text
    )


def test_without_the_search_the_refusal_names_it(discover):
    with pytest.raises(DiscoveryError) as caught:
        discover(document(300))
    assert '"search"' in str(caught.value.fields)


def test_three_functions_stand_for_all(discover):
    functions, kept = discover(document(300), search=True)
    assert list(functions) == [FIND, READ, CHANGE]
    assert len(kept["operations"]) == 302
    safe = {name: (f.is_idempotent, f.is_read_only, f.asks_first) for name, f in functions.items()}
    assert safe == {
        FIND: (True, True, False),
        READ: (True, True, False),
        CHANGE: (False, False, False),
    }


def test_a_search_finds_by_rare_words_and_by_name(discover, call):
    functions, _ = discover(document(300), search=True)
    found = call(functions[FIND], query="which invoices has this customer")
    assert found.index("listInvoices (read_operation)") < found.index(
        "createInvoice (change_operation)"
    )
    assert '"customer"' in found
    assert call(functions[FIND], query="getThing217").startswith("getThing217 (read_operation)")
    assert "No operation fits" in call(functions[FIND], query="weather")


def test_an_operation_is_called_with_the_key_and_its_arguments_checked(discover, call, server):
    server.routes["/invoices"] = say(
        f'[{{"number": 7, "told": "{KEY}"}}]'.encode(), headers={"Content-Type": "application/json"}
    )
    functions, _ = discover(document(300), search=True)
    said = call(functions[READ], operation="listInvoices", arguments={"customer": "a&b"})
    assert said == '[{"number": 7, "told": "•••"}]'
    assert server.requests[-1].target == "/invoices?customer=a%26b"
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    sent = len(server.requests)
    for name, arguments, words in (
        (READ, {"operation": "createInvoice"}, "Call createInvoice with change_operation"),
        (CHANGE, {"operation": "listInvoices"}, "Call listInvoices with read_operation"),
        (READ, {"operation": "nothing"}, "There is no operation 'nothing'"),
        (READ, {"operation": "listInvoices", "arguments": {"customer": 5}}, "customer"),
        (READ, {"operation": "listInvoices", "arguments": {"more": 5}}, "more"),
        (READ, {"operation": 5}, "operation"),
        (READ, {}, "operation"),
        (FIND, {"query": ""}, "query"),
    ):
        with pytest.raises(ArgumentsError, match=words):
            call(functions[name], **arguments)
    assert len(server.requests) == sent


def test_what_must_be_approved_is_asked_for(discover):
    functions, _ = discover(document(3, **{"x-openai-isConsequential": True}), search=True)
    assert functions[CHANGE].asks_first
    assert not functions[READ].asks_first
    functions, _ = discover(document(3), search=True, ask_first=[READ])
    assert functions[READ].asks_first


def test_a_document_that_only_reads_has_nothing_to_change(discover):
    functions, _ = discover(document(3), search=True, operations=["getThing*"])
    assert list(functions) == [FIND, READ]


def test_even_a_search_has_an_end(discover):
    with pytest.raises(DiscoveryError) as caught:
        discover(document(1_000), search=True)
    assert "at most 1,000" in str(caught.value.fields)


@pytest.mark.parametrize("value", ["yes", 1, None, []])
def test_the_option_is_true_or_false(value):
    with pytest.raises(Invalid) as caught:
        OpenAPISource().check_options({"search": value})
    assert caught.value.fields == {"options.search": ["Must be true or false."]}
