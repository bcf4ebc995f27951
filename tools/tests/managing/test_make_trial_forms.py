"""Test that forms made of JSON schemas say what they can, and refuse in words what they cannot."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.calling.arguments import check_arguments
from tools.protocol import ArgumentsError
from tools.trial_forms.controls import Control, argument_rows, controls_of
from tools.trial_forms.posted_arguments import add_item, read_posted, remove_item, to_posted
from tools.trial_forms.schema_fields import MAX_FIELDS, FieldKind, read_fields, rows_of

CITY = {"type": "string", "description": "Where."}
NAMES = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
WHOLE = st.integers(-(2**63), 2**63)
NUMBER = WHOLE | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), min_size=1)
LEAVES = st.sampled_from(
    [
        ({"type": "string"}, TEXT),
        ({"type": "integer"}, WHOLE),
        ({"type": "number"}, NUMBER),
        ({"type": "boolean"}, st.booleans()),
        ({"enum": ["a", 1, True, None, ["b"]]}, st.sampled_from(["a", 1, True, None, ["b"]])),
        ({"type": ["string", "null"]}, TEXT),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, WHOLE),
        ({"$ref": "#/$defs/colour"}, st.sampled_from(["red", "green"])),
        ({"type": ["string", "integer"]}, TEXT | WHOLE),
        ({"type": "object"}, st.dictionaries(NAMES, WHOLE)),
    ]
)
DEFS = {"$defs": {"colour": {"enum": ["red", "green"]}}}


def lists_of(described: Any) -> Any:
    schema, values = described
    return {"type": "array", "items": schema}, st.lists(values, min_size=1, max_size=3)


def group_of(parts: dict[str, Any]) -> Any:
    """An object whose properties are all required, with arguments for it."""
    schema = {
        "type": "object",
        "properties": {name: inner for name, (inner, _) in parts.items()},
        "required": list(parts),
    }
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in parts.items()})


PARTS = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(lists_of) | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(group_of)
    ),
    max_leaves=5,
)


@st.composite
def wholes(draw: Any) -> Any:
    """A schema with arguments that fit it and that a form can say; some are left out."""
    parts = draw(st.dictionaries(NAMES, PARTS, max_size=4))
    schema, values = group_of(parts)
    arguments = draw(values)
    required = [name for name in parts if draw(st.booleans())]
    kept = {n: v for n, v in arguments.items() if n in required or draw(st.booleans())}
    return {**schema, **DEFS, "required": required}, kept


def controls_in(controls: tuple[Control, ...]) -> Any:
    for control in controls:
        yield control
        yield from controls_in(control.parts)


@settings(max_examples=60, deadline=None)
@given(wholes())
def test_the_form_posts_the_arguments_that_it_shows(described):
    schema, arguments = described
    whole = read_fields(schema)
    posted = to_posted(whole, arguments)
    assert posted is not None
    read = read_posted(whole, posted)
    assert read.arguments == arguments
    assert not read.errors
    check_arguments(read.arguments, schema)
    drawn = {c.name for c in controls_in(controls_of(whole, posted, {}))}
    assert {name.removesuffix(".n") for name in posted} <= drawn


@settings(max_examples=60, deadline=None)
@given(st.data(), wholes())
def test_whatever_is_posted_fits_or_is_refused_in_words(data, described):
    schema, arguments = described
    whole = read_fields(schema)
    names = [c.name for c in controls_in(controls_of(whole, to_posted(whole, arguments) or {}, {}))]
    names += [f"{name}.n" for name in names]
    posted = data.draw(
        st.dictionaries(
            st.sampled_from(names) if names else st.just("a.0"),
            st.text(max_size=6) | st.sampled_from(["1", "2", "true", "-0.5e3", "1e999", "[1]"]),
        )
    )
    read = read_posted(whole, posted)
    assert all(text.endswith((".", ")")) and text[0].isupper() for text in read.errors.values())
    if not read.errors:
        try:
            check_arguments(read.arguments, schema)
        except ArgumentsError as refusal:
            assert str(refusal)


@settings(max_examples=60, deadline=None)
@given(JSON, JSON)
def test_any_json_for_a_schema_makes_some_form(schema, arguments):
    whole = read_fields({"properties": {"a": schema}, "type": "object", "required": schema})
    controls_of(whole, to_posted(whole, {"a": arguments}) or {}, {})
    assert len(list(rows_of(whole))) <= MAX_FIELDS
    argument_rows(schema)


def test_schemas_that_contain_themselves_stay_small():
    node = {"type": "object", "properties": {n: {"$ref": "#"} for n in "abcdefgh"}}
    assert len(list(rows_of(read_fields(node)))) <= MAX_FIELDS
    assert {part.kind for part in read_fields(node).parts} == {FieldKind.JSON}
    wide = {"type": "object", "properties": {str(n): CITY for n in range(MAX_FIELDS)}}
    many = {"type": "object", "properties": {"a": wide, "b": wide}}
    assert len(list(rows_of(read_fields(many)))) <= MAX_FIELDS
    endless = read_fields({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}})
    assert endless.parts[0].kind is FieldKind.JSON


def test_the_table_names_what_lies_inside():
    rows = argument_rows(
        {
            "type": "object",
            "properties": {
                "city": CITY | {"default": "Rome", "maxLength": 20},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                "unit": {"enum": ["C", "F"]},
                "who": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
            },
            "required": ["city"],
        }
    )
    shown = [(row.depth, row.name, row.type, row.is_required) for row in rows]
    assert shown == [
        (0, "city", "text", True),
        (0, "days", "list of whole number", False),
        (0, "unit", "one of", False),
        (0, "who", "list of object", False),
        (1, "who[].name", "text", False),
    ]
    assert rows[0].rules == ("at most 20 characters", "default: Rome")
    assert rows[1].rules == ("at least 1",)
    assert rows[2].choices == ("C", "F")


LIST = {"type": "object", "properties": {"l": {"type": "array", "items": CITY}}}


def test_items_are_added_and_removed_in_their_order():
    whole = read_fields(LIST)
    posted = to_posted(whole, {"l": ["x", "y", "z"]}) or {}
    less = remove_item(posted, "a.0", 1)
    assert read_posted(whole, less).arguments == {"l": ["x", "z"]}
    more = add_item(less, "a.0")
    assert read_posted(whole, more).arguments == {"l": ["x", "z", ""]}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"type": "string"}}}, {"a": ""}),
        ({"properties": {"a": {"type": "string"}}}, {"b": "more"}),
        ({"properties": {"a": {"type": "boolean"}}}, {"a": 1}),
        ({"properties": {"a": {"enum": [1, 2]}}}, {"a": True}),
    ],
)
def test_what_a_form_cannot_say_is_known(schema, arguments):
    assert to_posted(read_fields(schema), arguments) is None
