"""Test that a manifest's fields are in the declared order, not in Postgres' order."""

from chats.api.manifest_serializers import in_order


def test_the_model_comes_first_and_nothing_is_lost():
    kept = {"tools": [], "later_field": 1, "request_hash": "6f", "model": "offline"}
    ordered = in_order(kept)
    assert list(ordered) == ["model", "tools", "request_hash", "later_field"]
    assert ordered == kept
