"""Items of a response's input that no client of OpenAI's would send."""

import pytest
from rest_framework.serializers import ValidationError

from public_api.responses.items_field import ItemField


@pytest.mark.parametrize("kind", [["message"], [None], {"a": 1}, 7, True, "no such"], ids=repr)
def test_a_type_that_is_none_is_told_as_such(kind):
    with pytest.raises(ValidationError) as refused:
        ItemField().run_validation({"type": kind, "role": "user", "content": "Hi"})
    assert set(refused.value.detail) == {"type"}


@pytest.mark.parametrize("item", ["message", 7, None, ["message"]], ids=repr)
def test_what_is_no_object_is_refused(item):
    with pytest.raises(ValidationError):
        ItemField().run_validation(item)
