"""Read manifests that strangers write: every fault is named at its place, nothing is fetched."""

from typing import Any

import pytest

from tools.calling.schema_check import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH
from tools.discovery.manifest import MAX_FAULTS, MAX_FUNCTIONS, read_manifest
from tools.source import DiscoveryError
from tools.tests.tool_service import function

GOOD: dict[str, Any] = {
    "name": "Weather",
    "description": "Knows the weather.",
    "callback_url": "https://weather.example/call",
    "functions": [function()],
}


def faults(**fields: Any) -> dict[str, list[str]]:
    with pytest.raises(DiscoveryError) as caught:
        read_manifest(GOOD | fields)
    assert caught.value.fields
    return {name: list(texts) for name, texts in caught.value.fields.items()}


def faults_of_schema(schema: Any) -> dict[str, list[str]]:
    return faults(functions=[function(), function("second", parameters=schema)])


def test_a_good_one_is_read():
    manifest = read_manifest(GOOD | {"homepage_url": "https://weather.example", "more": [1]})
    assert (manifest.name, manifest.description) == ("Weather", "Knows the weather.")
    assert manifest.callback_url == "https://weather.example/call"
    assert manifest.homepage_url == "https://weather.example"
    assert manifest.functions == (function(),)
    assert manifest.warnings == ()


def test_optional_fields_may_be_null_and_unknown_ones_are_ignored():
    given = function(idempotent=None, requires_approval=None, timeout_seconds=None, colour="red")
    assert read_manifest(GOOD | {"functions": [given], "homepage_url": None}).functions == (
        function(),
    )


@pytest.mark.parametrize("missing", ["name", "description", "callback_url", "functions"])
def test_a_missing_field_is_named(missing):
    with pytest.raises(DiscoveryError) as caught:
        read_manifest({name: value for name, value in GOOD.items() if name != missing})
    assert caught.value.fields == {missing: ["This field is missing."]}
    assert missing in caught.value.message


@pytest.mark.parametrize("missing", ["name", "description", "parameters"])
def test_a_missing_field_of_a_function_is_named(missing):
    given = {name: value for name, value in function("b").items() if name != missing}
    assert faults(functions=[function(), given]) == {
        f"functions[1].{missing}": ["This field is missing."]
    }


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"name": 5}, "name"),
        ({"name": " \n"}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"name": None}, "name"),
        ({"description": ["text"]}, "description"),
        ({"description": "d" * 4_001}, "description"),
        ({"callback_url": 5}, "callback_url"),
        ({"callback_url": "/call"}, "callback_url"),
        ({"callback_url": "weather.example/call"}, "callback_url"),
        ({"callback_url": "ftp://weather.example/call"}, "callback_url"),
        ({"callback_url": "https://user:pw@weather.example/"}, "callback_url"),
        ({"callback_url": "https://weather.example:99999/"}, "callback_url"),
        ({"callback_url": "https://" + "w" * 9_000}, "callback_url"),
        ({"homepage_url": "javascript:alert(1)"}, "homepage_url"),
        ({"homepage_url": 1}, "homepage_url"),
        ({"functions": {}}, "functions"),
        ({"functions": []}, "functions"),
        ({"functions": ["f"]}, "functions[0]"),
        ({"functions": [None]}, "functions[0]"),
        ({"functions": [function(n) for n in map(str, range(MAX_FUNCTIONS + 1))]}, "functions"),
        ({"functions": [function(name=5)]}, "functions[0].name"),
        ({"functions": [function(name="")]}, "functions[0].name"),
        ({"functions": [function(name="f" * 201)]}, "functions[0].name"),
        ({"functions": [function(name="a\0b")]}, "functions[0].name"),
        ({"functions": [function(name="a\u202eb")]}, "functions[0].name"),
        ({"functions": [function(), function()]}, "functions[1].name"),
        ({"functions": [function(description="")]}, "functions[0].description"),
        ({"functions": [function(idempotent="yes")]}, "functions[0].idempotent"),
        ({"functions": [function(requires_approval=1)]}, "functions[0].requires_approval"),
        ({"functions": [function(timeout_seconds="5")]}, "functions[0].timeout_seconds"),
        ({"functions": [function(timeout_seconds=0)]}, "functions[0].timeout_seconds"),
        ({"functions": [function(timeout_seconds=-1)]}, "functions[0].timeout_seconds"),
        ({"functions": [function(timeout_seconds=601)]}, "functions[0].timeout_seconds"),
        ({"functions": [function(timeout_seconds=True)]}, "functions[0].timeout_seconds"),
        ({"functions": [function(parameters=None)]}, "functions[0].parameters"),
        ({"functions": [function(parameters=[])]}, "functions[0].parameters"),
        ({"functions": [function(parameters="{}")]}, "functions[0].parameters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_field_is_named(fields, place):
    assert list(faults(**fields)) == [place]


@pytest.mark.parametrize("given", [None, [], "text", 5, True])
def test_what_is_no_object_is_refused(given):
    with pytest.raises(DiscoveryError, match="not a JSON object"):
        read_manifest(given)


def test_all_faults_are_said_at_once():
    said = faults(name="", functions=[function(name=1), function(parameters=2)])
    assert set(said) == {"name", "functions[0].name", "functions[1].parameters"}


def test_endless_faults_are_counted_and_not_listed():
    with pytest.raises(DiscoveryError) as caught:
        read_manifest(GOOD | {"functions": [{}] * MAX_FUNCTIONS})
    assert len(caught.value.fields or {}) == MAX_FAULTS
    assert f"({3 * MAX_FUNCTIONS - 1} more)" in caught.value.message


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("get weather", "get_weather"),
        ("wetter-für", "wetter-f_r"),
        ("天气", "__"),
        ("f" * 65, "f" * 64),
    ],
    ids=["space", "umlaut", "chinese", "long"],
)
def test_a_name_that_models_do_not_take_is_kept_with_a_warning(name, offered):
    manifest = read_manifest(GOOD | {"functions": [function(name)]})
    assert manifest.functions[0]["name"] == name
    assert len(manifest.warnings) == 1
    assert manifest.warnings[0].startswith("functions[0].name")
    assert f"offered to models as {offered}." in manifest.warnings[0]


# -- Schemas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#here"}, "b": {"$anchor": "here"}}},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"properties": {"a": {"enum": [{"$ref": "https://elsewhere.example/"}]}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}},
        {"properties": {"a": True, "b": {"pattern": "(a+)+$"}}, "additionalProperties": False},
    ],
    ids=str,
)
def test_schemas_that_are_whole_are_taken(schema):
    manifest = read_manifest(GOOD | {"functions": [function(parameters=schema)]})
    assert manifest.functions[0]["parameters"] == schema


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        ({"type": "array"}, ".type", "object"),
        ({"type": ["object", "null"]}, ".type", "object"),
        ({"properties": 5}, ".properties", "not JSON Schema"),
        ({"properties": {"a": {"type": "strng"}}}, ".properties.a.type", "strng"),
        ({"required": "a"}, ".required", "not JSON Schema"),
        ({"properties": {"a": []}}, ".properties.a", "not JSON Schema"),
        ({"$ref": 5}, ".$ref", "not JSON Schema"),
        ({"properties": {"a": {"$ref": "http://10.0.0.1/s"}}}, "", "leads out of the schema"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "", "leads out of the schema"),
        ({"items": {"$ref": "other.json#/a"}}, "", "leads out of the schema"),
        ({"$dynamicRef": "other.json#a"}, "", "leads out of the schema"),
        ({"$ref": "#/nowhere"}, "", "leads nowhere"),
        ({"$ref": "#/required/x", "required": ["a"]}, "", "leads nowhere"),
        ({"$ref": "#/required/0", "required": ["a"]}, "", "leads to no schema"),
        ({"$ref": "#/x-part", "x-part": {"type": 3}}, "", "leads to no schema"),
        ({"properties": {"a": {"$id": "https://x.example/"}}}, "", "`$id`"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_schema_is_said(schema, place, words):
    ((name, texts),) = faults_of_schema(schema).items()
    assert name == f"functions[1].parameters{place}"
    assert words in texts[0]


def test_schemas_have_a_size_and_a_depth():
    large = {"description": "x" * MAX_SCHEMA_BYTES}
    assert "larger" in faults_of_schema(large)["functions[1].parameters"][0]
    deep: dict[str, Any] = {}
    for _ in range(MAX_SCHEMA_DEPTH):
        deep = {"not": deep}
    assert "deep" in faults_of_schema(deep)["functions[1].parameters"][0]
