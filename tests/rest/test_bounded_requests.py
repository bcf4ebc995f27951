"""Every list and object in a request's body has a limit, which is looked at before what is in it."""

import importlib
import inspect
from itertools import repeat
from typing import Any

import pytest
from rest_framework import fields, serializers

from amber.lib.rest.bounded_fields import BoundedDictField, BoundedListField
from public_api.completions.serializers import CompletionInput
from public_api.openai import function_fields
from public_api.openai.serializers import MAX_ENTRIES, ChatProxyInput
from public_api.responses.serializers import ResponseInput
from tests.hostile.patterns import modules

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object"}},
}
SAID = {"role": "user", "content": "Hello"}


def writable_fields(field, path):
    """A field, and those in it, that a request may hold."""
    if field.read_only:
        return
    yield path, field
    inside = dict(getattr(field, "fields", {})) if isinstance(field, serializers.Serializer) else {}
    if child := getattr(field, "child", None):
        inside["[]"] = child
    for name, each in inside.items():
        yield from writable_fields(each, f"{path}.{name}")


def shapes():
    for name in modules():
        if (
            "serializers" in name
            or "_views" in name
            or name.endswith(("views", "_field", "_fields"))
        ):
            for _, each in inspect.getmembers(importlib.import_module(name), inspect.isclass):
                if issubclass(each, serializers.BaseSerializer) and each.__module__ == name:
                    yield each


def is_request(shape):
    return not shape.__name__.endswith(("Serializer", "Part", "Progress")) or issubclass(
        shape, serializers.ModelSerializer
    )


@pytest.mark.parametrize("shape", sorted({*shapes()}, key=str), ids=lambda each: each.__name__)
def test_lists_of_requests_have_a_limit_that_comes_first(shape):
    for path, field in writable_fields(shape(), shape.__name__):
        if isinstance(field, serializers.ListSerializer):
            assert not is_request(shape), path
        if isinstance(field, serializers.ListField):
            assert isinstance(field, BoundedListField) or not (
                is_request(shape) or field.max_length
            ), path
        if isinstance(field, serializers.DictField) and is_request(shape):
            costs = not isinstance(field.child, fields._UnvalidatedField)
            assert isinstance(field, BoundedDictField) or not costs, path


@pytest.mark.parametrize(
    ("shape", "field", "entry"),
    [
        (CompletionInput, "tools", TOOL),
        (CompletionInput, "functions", TOOL["function"]),
        (CompletionInput, "stop", "x"),
        (ResponseInput, "tools", {"type": "function", "name": "f"}),
    ],
)
def test_too_many_are_refused_without_a_look_at_one(monkeypatch, shape, field, entry):
    given = shape(
        data={"model": "m", "messages": [SAID], "input": "x", field: [*repeat(entry, 5_000)]}
    )
    child = given.fields[field].child
    monkeypatch.setattr(child, "run_validation", lambda *_: pytest.fail("It was looked at."))
    assert not given.is_valid()
    assert list(given.errors) == [field]


CALLING = {"role": "assistant", "tool_calls": [{}] * 99}
PARTS = {"role": "user", "content": [0] * 99}
LEGACY = {"role": "assistant", "function_call": {"name": "f"}}


@pytest.mark.parametrize(
    ("shape", "field", "messages"),
    [
        (CompletionInput, "messages", [SAID] * (MAX_ENTRIES + 1)),
        (CompletionInput, "messages", [CALLING] * (MAX_ENTRIES // 100 + 1)),
        (CompletionInput, "messages", [LEGACY] * (MAX_ENTRIES // 2 + 1)),
        (ChatProxyInput, "messages", [PARTS] * (MAX_ENTRIES // 100 + 1)),
        (ResponseInput, "input", [SAID] * (MAX_ENTRIES + 1)),
        (ResponseInput, "input", [PARTS] * (MAX_ENTRIES // 100 + 1)),
    ],
    ids=range(6),
)
def test_a_conversation_of_too_many_entries_is_refused_without_a_look_at_one(
    monkeypatch, shape, field, messages
):
    given = shape(data={"model": "m", field: messages})
    child = given.fields[field].child
    monkeypatch.setattr(child, "run_validation", lambda *_: pytest.fail("It was looked at."))
    assert not given.is_valid()
    assert [said.code for said in given.errors[field]] == ["max_length"]
    assert "At most 40,000 messages" in given.errors[field][0]


def test_too_large_schemas_are_refused_without_a_look_at_one(monkeypatch):
    monkeypatch.setattr(
        function_fields, "schema_faults", lambda _: pytest.fail("It was looked at.")
    )
    long = {"type": "object", "description": "x" * 3_000}
    tools = [
        {"type": "function", "function": {"name": f"f{n}", "parameters": long}} for n in range(128)
    ]
    given = CompletionInput(data={"model": "m", "messages": [SAID], "tools": tools})
    assert not given.is_valid()
    assert given.errors["tools"] == ["More than 256,000 bytes of schemas."]


@pytest.mark.parametrize("shape", sorted({*shapes()}, key=str), ids=lambda each: each.__name__)
def test_names_that_people_read_are_cleaned(shape):
    """Those of documents and files are cleaned by their services (`libraries.files.names`), and those
    of functions, which have a field of their own, are read by machines."""
    if is_request(shape) or shape.__name__.startswith(("New", "ApiKeyChanges", "MeChanges")):
        for path, field in writable_fields(shape(), shape.__name__):
            is_name = path.endswith(".name") and not path.startswith("Document")
            assert not (is_name and type(field) is serializers.CharField), path
