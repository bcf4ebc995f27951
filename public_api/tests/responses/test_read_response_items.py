"""Items of a response's input that no client of OpenAI's would send."""

import pytest
from rest_framework.serializers import ValidationError

from engine.tool_calls import ToolCall
from public_api.openai.messages import RequestMessage
from public_api.responses.items import messages_of
from public_api.responses.items_field import MAX_REFERENCES, ItemField, ItemsField


@pytest.mark.parametrize("kind", [["message"], [None], {"a": 1}, 7, True, "no such"], ids=repr)
def test_a_type_that_is_none_is_told_as_such(kind):
    with pytest.raises(ValidationError) as refused:
        ItemField().run_validation({"type": kind, "role": "user", "content": "Hi"})
    assert set(refused.value.detail) == {"type"}


@pytest.mark.parametrize("item", ["message", 7, None, ["message"]], ids=repr)
def test_what_is_no_object_is_refused(item):
    with pytest.raises(ValidationError):
        ItemField().run_validation(item)


def test_of_items_named_by_their_ids_there_may_be_fewer():
    named = [{"id": "msg_1"}] * MAX_REFERENCES
    assert len(ItemsField().run_validation(named)) == MAX_REFERENCES
    with pytest.raises(ValidationError, match="by their ids"):
        ItemsField().run_validation([*named, {"id": "msg_1"}])


def test_a_text_and_the_calls_after_it_are_one_reply():
    said = RequestMessage(role="user", parts=("Hi",))
    text = RequestMessage(role="assistant", parts=("Wait.",))
    first, second = (
        RequestMessage(
            role="assistant",
            calls=(ToolCall(name, "f", "{}"),),
            provider_fields={"reasoning_content": name},
            sender=name,
        )
        for name in "ab"
    )
    joined = RequestMessage(
        role="assistant",
        parts=("Wait.",),
        calls=(*first.calls, *second.calls),
        provider_fields={"reasoning_content": "a"},
        sender="a",
    )
    assert messages_of([said, text, first, second, said, second, text]) == [
        *(said, joined, said, second, text)
    ]
