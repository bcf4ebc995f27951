"""Models of Anthropic's and OpenAI's own APIs, asked by programs through /v1.

What a client brings back of thoughts is what they signed, or the servers refuse it.
"""

from typing import Any

import pytest

from engine.provider import openai_model
from public_api.tests.completions import WEATHER, ask, deltas, said, streamed, text_of

pytestmark = pytest.mark.django_db(transaction=True)

MODELS: dict[str, dict[str, Any]] = {
    "claude-thinks": {
        "tool_dialect": "anthropic",
        "extra_parameters": {"thinking": {"type": "enabled", "budget_tokens": 2_048}},
    },
    "gpt-thinks": {"tool_dialect": "responses"},
}


@pytest.fixture(autouse=True)
def models(new_model, monkeypatch):
    monkeypatch.setattr(openai_model, "_refused_parameters", {})
    for name, fields in MODELS.items():
        new_model(name, **fields)


def whole(client: Any, messages: list[Any], name: str) -> dict[str, Any]:
    answer = ask(client, messages, model=name, tools=[WEATHER]).to_dict()
    message: dict[str, Any] = answer["choices"][0]["message"]
    return message


def grown(client: Any, messages: list[Any], name: str) -> dict[str, Any]:
    """The message that a client puts together of the pieces."""
    chunks = streamed(client, messages, model=name, tools=[WEATHER])
    message: dict[str, Any] = {"role": "assistant", "content": text_of(chunks)}
    for delta in deltas(chunks):
        for field, value in delta.items():
            if isinstance(value, list):
                message.setdefault(field, []).extend(value)
            elif field == "amber_sender":
                message[field] = value
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
    return message


@pytest.mark.parametrize("answered", [whole, grown])
@pytest.mark.parametrize("name", MODELS)
def test_a_client_brings_back_signed_thoughts(client, name, answered):
    history: list[Any] = [said("Weather in Ulm?")]
    message = answered(client, history, name)
    (call,) = message["tool_calls"]
    assert message["thinking_blocks"]
    history += [message, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]
    assert answered(client, history, name)["content"] == "Rain"


@pytest.mark.parametrize("name", MODELS)
def test_thoughts_that_were_changed_are_refused_by_their_maker(client, name):
    history: list[Any] = [said("Weather in Ulm?")]
    message = whole(client, history, name)
    first = message["thinking_blocks"][0]["block"]
    first["thinking" if "thinking" in first else "encrypted_content"] = "Something else."
    (call,) = message["tool_calls"]
    history += [message, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]
    with pytest.raises(Exception, match=r"could not be verified|Invalid `signature`"):
        whole(client, history, name)


def test_a_client_that_drops_its_thoughts_is_answered_without(client):
    """Anthropic cannot begin to think between a call and its answer."""
    history: list[Any] = [said("Weather in Ulm?")]
    message = whole(client, history, "claude-thinks")
    (call,) = message["tool_calls"]
    bare = {"role": "assistant", "content": message["content"], "tool_calls": [call]}
    history += [bare, {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}]
    assert whole(client, history, "claude-thinks")["content"] == "Rain"


@pytest.mark.parametrize("blocks", [[5], [{"block": 1}], [{"text_chars": "a", "calls": 0}], [{}]])
def test_blocks_of_another_form_are_passed_over(client, blocks):
    message = {"role": "assistant", "content": "Sun.", "thinking_blocks": blocks}
    calls = [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    history = [said("Weather?"), {**message, "tool_calls": calls}]
    history += [{"role": "tool", "tool_call_id": "c", "content": "Rain"}]
    assert whole(client, history, "claude-thinks")["content"] == "Rain"
