"""Keep the verdict on a schema, since clients send the same ones with every request."""

import pytest

from tools.calling import schema_check
from tools.calling.argument_check import SchemaError, find_misfit
from tools.calling.schema_check import Verdicts, schema_faults

GOOD = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
TURNED = {"properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "type": "object"}
BROKEN = {"type": "object", "properties": {"a": {"type": "text"}}}


@pytest.fixture
def looked_at(monkeypatch):
    """Return the schemas that are checked against the meta-schema; none is known before."""
    seen = []
    real = schema_check._meta_fault
    monkeypatch.setattr(schema_check, "_verdicts", Verdicts(10))

    def look(schema):
        seen.append(schema)
        return real(schema)

    monkeypatch.setattr(schema_check, "_meta_fault", look)
    return seen


def test_a_schema_is_checked_once_however_its_keys_are_ordered(looked_at):
    assert schema_faults(GOOD) == schema_faults(TURNED) == schema_faults(dict(GOOD)) == []
    assert len(looked_at) == 1


def test_a_fault_is_told_again(looked_at):
    first = schema_faults(BROKEN)
    assert first[0][0] == "properties.a.type"
    assert schema_faults(BROKEN) == first
    assert len(looked_at) == 1


def test_schemas_that_differ_are_each_checked(looked_at):
    assert schema_faults(GOOD) == []
    assert schema_faults({**GOOD, "required": ["a"]}) == []
    assert schema_faults({**GOOD, "required": "a"}) != []
    assert len(looked_at) == 3


def test_arguments_are_checked_each_time_and_their_schema_once(looked_at):
    assert find_misfit({"a": "x"}, GOOD) is None
    worst = find_misfit({"a": 1}, TURNED)
    assert worst is not None
    assert list(worst.absolute_path) == ["a"]
    assert len(looked_at) == 1
    for _ in range(2):
        with pytest.raises(SchemaError):
            find_misfit({}, BROKEN)
    assert len(looked_at) == 2


def test_what_was_asked_for_longest_ago_goes_first():
    verdicts, found = Verdicts(2), []

    def ask(text):
        def find():
            found.append(text)
            return text.decode()

        return verdicts.get("x", text, find)

    assert [ask(each) for each in (b"1", b"2", b"1", b"3", b"1", b"2")] == [
        "1",
        "2",
        "1",
        "3",
        "1",
        "2",
    ]
    assert found == [b"1", b"2", b"3", b"2"]
    assert verdicts.get("y", b"1", lambda: "other") == "other"
