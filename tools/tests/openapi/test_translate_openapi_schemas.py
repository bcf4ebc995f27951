import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator

from tools.openapi.schema import SchemaReader, TooManyValuesError

V30, V31 = "3.0.3", "3.1.0"


def read(schema, *, schemas=None, version=V30, max_depth=8, max_values=1_000):
    document = {"openapi": version, "components": {"schemas": schemas or {}}}
    reader = SchemaReader(document, max_depth=max_depth, max_values=max_values)
    return reader.read(schema), list(reader.notes)


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "translated"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}], "nullable": True},
            {
                "anyOf": [
                    {"oneOf": [{"type": "string"}, {"type": "number"}]},
                    {"type": "null"},
                ]
            },
        ),
        ({"nullable": True}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
        ({"type": "string", "example": "Rex"}, {"type": "string", "examples": ["Rex"]}),
        ({"type": "string", "example": "x" * 300}, {"type": "string"}),
        ({"type": "string", "xml": {}, "externalDocs": {}, "x-own": 1}, {"type": "string"}),
        (True, {}),
        (False, {"not": {}}),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": False},
        ),
        (
            {"allOf": [{"type": "string"}], "description": "x"},
            {"type": "string", "description": "x"},
        ),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {}}, "required": ["a", "b"]},
                ]
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {}},
                "required": ["a", "b"],
            },
        ),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {}}}]},
            {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {}}}]},
        ),
        (
            {
                "type": "object",
                "properties": {"id": {"type": "string", "readOnly": True}, "name": {}},
                "required": ["id", "name"],
            },
            {"type": "object", "properties": {"name": {}}, "required": ["name"]},
        ),
        (
            {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
            {},
        ),
    ],
    ids=range(18),
)
def test_a_schema_becomes_json_schema_2020_12(schema, translated):
    assert read(schema) == (translated, [])


def test_a_chain_of_references_is_written_out():
    schemas = {"A": ref("B"), "B": ref("C"), "C": {"type": "string", "maxLength": 3}}
    assert read({"items": ref("A")}, schemas=schemas) == (
        {"items": {"type": "string", "maxLength": 3}},
        [],
    )


def test_what_stands_beside_a_reference_counts_in_3_1_and_only_its_description_in_3_0():
    schemas = {"A": {"type": "string"}}
    beside = ref("A") | {"maxLength": 3, "description": "x"}
    assert read(beside, schemas=schemas)[0] == {"type": "string", "description": "x"}
    combined = read(beside, schemas=schemas, version=V31)[0]
    assert combined == {"allOf": [{"type": "string"}, {"maxLength": 3, "description": "x"}]}


def test_a_recursive_schema_is_described_once_and_that_is_said():
    schemas = {"Node": {"type": "object", "properties": {"next": ref("Node"), "name": {}}}}
    read_schema, notes = read(ref("Node"), schemas=schemas)
    assert read_schema == {
        "type": "object",
        "properties": {
            "next": {"type": "object", "description": "Not described further here."},
            "name": {},
        },
    }
    assert notes == ["#/components/schemas/Node refers to itself and is described once only"]


def test_references_in_a_circle_end():
    read_schema, notes = read(ref("A"), schemas={"A": ref("B"), "B": ref("A")})
    assert read_schema == {"description": "Not described further here."}
    assert len(notes) == 1


def test_a_thousand_references_in_a_row_end():
    schemas = {f"N{number}": ref(f"N{number + 1}") for number in range(1_000)}
    assert len(read(ref("N0"), schemas=schemas)[1]) == 1


@pytest.mark.parametrize(
    "reference", ["other.json", "http://127.0.0.1/s.json", "#/components/schemas/None", "#x"]
)
def test_a_reference_to_elsewhere_allows_anything_and_that_is_said(reference):
    read_schema, notes = read({"$ref": reference})
    assert read_schema == {}
    assert "is not in the document" in notes[0]


def test_what_lies_too_deep_is_cut_to_its_type():
    schema: dict[str, object] = {"type": "string"}
    for _ in range(5):
        schema = {"type": "object", "properties": {"a": schema}}
    read_schema, notes = read(schema, max_depth=1)
    inner = read_schema["properties"]["a"]["properties"]["a"]
    assert inner == {"type": "object", "description": "Not described further here."}
    assert notes == ["what is nested more than 1 deep is not described"]


def test_a_schema_that_doubles_with_every_reference_is_given_up():
    schemas = {
        f"N{number}": {"properties": {"a": ref(f"N{number + 1}"), "b": ref(f"N{number + 1}")}}
        for number in range(30)
    }
    with pytest.raises(TooManyValuesError):
        read(ref("N0"), schemas=schemas, max_depth=40)


def test_a_long_enumeration_is_told_in_words():
    read_schema, _ = read({"type": "string", "enum": [f"value {n}" for n in range(1_000)]})
    assert "enum" not in read_schema
    assert "One of 1000 values" in read_schema["description"]


def test_wrong_keywords_are_left_out_and_said():
    schema = {"type": "strnig", "minimum": "1", "required": "a", "enum": [], "properties": [1]}
    read_schema, notes = read(schema)
    assert read_schema == {}
    assert len(notes) == 4


KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "required", "items", "allOf", "oneOf", "not", "enum", "const"),
        *("nullable", "exclusiveMinimum", "minimum", "multipleOf", "maxLength", "$ref", "default"),
        *("additionalProperties", "readOnly", "example", "examples", "uniqueItems", "description"),
        *("patternProperties", "prefixItems", "dependentSchemas", "if", "$defs", "$schema", "$id"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["object", "string", "a", "#/components/schemas/A", "#", "[", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=300)
@given(VALUES, VALUES, st.sampled_from([V30, V31]))
def test_any_value_becomes_a_valid_schema(schema, other, version):
    read_schema, _ = read(schema, schemas={"A": other}, version=version)
    Draft202012Validator.check_schema(read_schema)
