"""Name calls for services: unique over turns, and the same when a call is repeated."""

from dataclasses import replace
from uuid import UUID

import pytest


def test_a_call_is_named_by_its_turn_and_its_id(context):
    first = replace(context, call_id="call_0")
    assert first.call_key == f"{UUID(int=3)}:call_0"
    assert replace(first, turn_id=UUID(int=4)).call_key != first.call_key
    assert replace(first, turn_id=None).call_key == "call_0"


@pytest.mark.parametrize("call_id", ["a\nb", "ü", "c" * 500], ids=["line", "umlaut", "long"])
def test_what_no_header_may_hold_is_hashed(context, call_id):
    call = replace(context, call_id=call_id)
    assert call.call_key.isascii()
    assert len(call.call_key) == 64
    assert call.call_key == replace(context, call_id=call_id).call_key
