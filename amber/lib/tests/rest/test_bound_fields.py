"""Lists and objects that are too long are refused before anything in them is looked at."""

from typing import Any

from rest_framework import serializers

from amber.lib.rest.bounded_fields import BoundedDictField, BoundedListField


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
