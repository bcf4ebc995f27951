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
from public_api.openai.serializers import ChatProxyInput
from public_api.responses.serializers import ResponseInput
from tests.patterns import modules

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
        (CompletionInput, "messages", SAID),
        (CompletionInput, "stop", "x"),
        (ChatProxyInput, "messages", SAID),
        (ResponseInput, "tools", {"type": "function", "name": "f"}),
        (ResponseInput, "input", SAID),
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
