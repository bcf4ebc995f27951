"""Numbers that jsonb gives back as integers of more than 64 bits."""

import json
import uuid

import orjson
import pytest

from amber.lib.json_text import numbers
from amber.lib.rest.wire import JSONRenderer


@pytest.mark.parametrize("number", [10**30, -(10**30), 2**64, -(2**63) - 1], ids=str)
def test_goes_out_as_the_float_it_came_in_as(number):
    written = numbers.write({"a": [{"b": number}]}, option=0)
    assert orjson.loads(written) == {"a": [{"b": float(number)}]}


@pytest.mark.parametrize("number", [0, 2**64 - 1, -(2**63), True], ids=str)
def test_what_fits_stays_as_it_is(number):
    kept, _ = json.loads(numbers.write([number, 10**30], option=0))
    assert (kept, type(kept)) == (number, type(number))


def test_what_is_beyond_floats_is_told_in_digits():
    assert orjson.loads(numbers.write([10**400], option=0)) == [str(10**400)]


def test_other_values_are_written_beside_it():
    data = {"id": uuid.UUID(int=1), "n": 10**30}
    assert orjson.loads(JSONRenderer().render(data)) == {"id": str(uuid.UUID(int=1)), "n": 1e30}


def test_what_is_no_json_is_still_refused():
    with pytest.raises(TypeError):
        numbers.write({"a": object()}, option=0)
