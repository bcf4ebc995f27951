"""Lists and objects that are too long are refused before anything in them is looked at; names are cleaned."""

from typing import Any

import pytest
from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedDictField, BoundedListField, PlainNameField


class Watched(serializers.IntegerField):
    seen: list[object] = []

    def to_internal_value(self, data):
        self.seen.append(data)
        return super().to_internal_value(data)


class Shape(serializers.Serializer[Any]):
    numbers = BoundedListField(child=Watched(), max_length=2, required=False)
    named = BoundedDictField(child=Watched(), max_entries=2, required=False)


def faults_of(data):
    Watched.seen.clear()
    shape = Shape(data=data)
    shape.is_valid()
    return shape.errors


def test_a_long_list_is_refused_unread():
    assert str(faults_of({"numbers": [1, 2, 3]})["numbers"][0]).endswith("no more than 2 elements.")
    assert Watched.seen == []


def test_a_large_object_is_refused_unread():
    assert faults_of({"named": {"a": 1, "b": 2, "c": 3}})["named"] == [
        "This object may have at most 2 entries."
    ]
    assert Watched.seen == []


def test_what_is_within_the_limit_is_read():
    assert faults_of({"numbers": [1, 2], "named": {"a": 1, "b": 2}}) == {}
    assert Watched.seen == [1, 2, 1, 2]
    assert "numbers" in faults_of({"numbers": [1, "x"]})
    assert "numbers" in faults_of({"numbers": "text"})


class Named(serializers.Serializer[Any]):
    name = PlainNameField(max_length=5)
    alias = PlainNameField(max_length=5, required=False, allow_blank=True)


def test_a_name_is_kept_without_what_nobody_sees():
    shape = Named(data={"name": " Al\u202eice\u200b ", "alias": "\u200b"})
    assert shape.is_valid(), shape.errors
    assert shape.validated_data == {"name": "Alice", "alias": ""}


@pytest.mark.parametrize(
    ("name", "code"),
    [("\u202e \u200b", "blank"), ("Alices", "max_length"), (["a"], "invalid"), (None, "null")],
)
def test_a_name_that_is_none_is_refused(name, code):
    shape = Named(data={"name": name})
    assert not shape.is_valid()
    assert [each.code for each in shape.errors["name"]] == [code]
