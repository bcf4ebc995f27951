import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.calling.arguments import MAX_ARGUMENT_CHARS, check_arguments, parse_arguments
from tools.protocol import ArgumentsError

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "where": {"type": "object", "properties": {"zip": {"type": "string"}}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ("{}", {}),
        ("", {}),
        ("  ", {}),
        ('{"a": [1, null]}', {"a": [1, None]}),
        ('{"中": 1}', {"中": 1}),
    ],
)
def test_an_object_is_read(raw, parsed):
    assert parse_arguments(raw) == parsed


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": "\ud800"}', "not valid JSON"),
        ("[]", "one JSON object"),
        ('"text"', "one JSON object"),
        ("null", "one JSON object"),
        (f'{{"a": "{"x" * MAX_ARGUMENT_CHARS}"}}', "longer than"),
    ],
)
def test_anything_else_is_explained(raw, words):
    with pytest.raises(ArgumentsError, match=words):
        parse_arguments(raw)


@given(st.text())
def test_any_text_is_an_object_or_explained(raw):
    try:
        assert isinstance(parse_arguments(raw), dict)
    except ArgumentsError as error:
        assert str(error)


@given(st.dictionaries(st.text(), st.integers(-(2**53), 2**53) | st.text() | st.booleans()))
def test_what_was_written_is_read(arguments):
    assert parse_arguments(orjson.dumps(arguments).decode()) == arguments


def test_what_fits_passes():
    check_arguments({"city": "Bonn", "days": 2, "where": {"zip": "5"}}, SCHEMA)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "'city' is a required property"),
        ({"city": 5}, "city: 5 is not of type 'string'"),
        ({"city": "Bonn", "days": 0}, "days: 0 is less than"),
        ({"city": "Bonn", "where": {"zip": 5}}, "where.zip: 5 is not of type"),
        ({"city": "Bonn", "more": 1}, "'more' was unexpected"),
    ],
)
def test_what_does_not_fit_is_named(arguments, words):
    with pytest.raises(ArgumentsError, match=words):
        check_arguments(arguments, SCHEMA)


def test_long_values_are_not_repeated():
    with pytest.raises(ArgumentsError) as caught:
        check_arguments({"city": ["x" * 10_000]}, SCHEMA)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"type": "banana"},
        {"$ref": "#"},
        {"properties": []},
    ],
)
def test_a_strangers_schema_is_not_followed_anywhere(schema):
    with pytest.raises(ArgumentsError, match="schema cannot be read"):
        check_arguments({"a": 1}, schema)


def test_a_strangers_patterns_are_not_run():
    """(a+)+$ takes longer than the age of the universe on this text."""
    hanging = {"properties": {"a": {"pattern": "(a+)+$"}}, "patternProperties": {"(a+)+$": False}}
    check_arguments({"a": "a" * 100 + "!", "a" * 100 + "!": 1}, hanging)


@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties"])
def test_nor_by_keywords_that_depend_on_them(keyword):
    hanging = {"patternProperties": {"(a+)+$": True}, keyword: False}
    check_arguments({"a" * 100 + "!": 1}, hanging)


def doubling() -> dict[str, object]:
    """Forty definitions, each twice the next: 2 to the 40th schemas."""
    steps = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    last = {"d40": {"type": "string"}}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": steps | last}


def branching() -> dict[str, object]:
    """Twice for each level of the arguments."""
    again = {"properties": {"a": {"$ref": "#"}}, "required": ["z"]}
    return {"anyOf": [again, again]}


def nested(levels: int) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for _ in range(levels):
        arguments = {"a": arguments}
    return arguments


@pytest.mark.parametrize("schema", [doubling(), branching()], ids=["doubling", "branching"])
def test_a_schema_that_would_take_for_ever_is_given_up(schema, monkeypatch):
    monkeypatch.setattr("tools.calling.argument_check.MAX_SECONDS", 0.1)
    with pytest.raises(ArgumentsError, match="takes too long"):
        check_arguments(nested(50), schema)


@pytest.mark.parametrize(
    ("items", "differ"),
    [
        ([1, 2], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([[1], [1]], False),
        ([1, True, "1", None], True),
        ([], True),
    ],
    ids=str,
)
def test_items_that_must_differ(items, differ):
    schema = {"properties": {"a": {"uniqueItems": True}}}
    if differ:
        check_arguments({"a": items}, schema)
    else:
        with pytest.raises(ArgumentsError, match="must differ"):
            check_arguments({"a": items}, schema)
