"""Read events of Anthropic's and OpenAI's own APIs that the strict servers do not send."""

from typing import Any

import orjson
import pytest

from engine.messages import AssistantMessage
from engine.provider.chunks import ReplyGatherer, gatherer_of
from engine.provider.dialects import DIALECTS
from engine.provider.dialects.placed_blocks import in_order
from engine.provider.model import ModelProfile, ModelRequest, ProviderError
from engine.tools import ToolSpec


def gathered(dialect: str, *events: dict[str, Any]) -> tuple[ReplyGatherer, str]:
    gatherer = gatherer_of(DIALECTS[dialect])
    text, failure = gatherer.add_all([orjson.dumps(event) for event in events])
    if failure:
        raise failure
    return gatherer, text


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def thought(index: int, text: str) -> list[dict[str, Any]]:
    return [
        start(index, type="thinking", thinking="", signature=""),
        piece(index, "thinking_delta", thinking=text),
        piece(index, "signature_delta", signature=f"signed {text}"),
        stop(index),
    ]


def said(index: int, text: str) -> list[dict[str, Any]]:
    return [start(index, type="text", text=""), piece(index, "text_delta", text=text), stop(index)]


def called(index: int, name: str) -> list[dict[str, Any]]:
    return [
        start(index, type="tool_use", id=name, name=name, input={}),
        piece(index, "input_json_delta", partial_json='{"a": 1}'),
        stop(index),
    ]


def test_thoughts_between_texts_and_calls_keep_their_places():
    gatherer, text = gathered(
        "anthropic",
        *thought(0, "one"),
        *said(1, "Hello"),
        *thought(2, "two"),
        *said(3, " there."),
        *called(4, "f"),
        *thought(5, "three"),
        *called(6, "g"),
        end("tool_use"),
    )
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in gatherer.calls()
    ]
    message: Any = {"role": "assistant", "content": text, "tool_calls": calls}
    message |= gatherer.provider_fields()
    shown = [
        (kind, item if kind == "text" else item.get("thinking") or item["id"])
        for kind, item in in_order(message)
        if item
    ]
    assert shown == [
        ("block", "one"),
        ("text", "Hello"),
        ("block", "two"),
        ("text", " there."),
        ("call", "f"),
        ("block", "three"),
        ("call", "g"),
    ]
    assert gatherer.reasoning == "onetwothree"


def test_a_text_that_was_cut_keeps_its_blocks_in_order():
    blocks = [{"text_chars": n, "calls": 0, "block": {"n": n}} for n in (2, 40, 10)]
    message: Any = {"role": "assistant", "content": "Hello", "thinking_blocks": blocks}
    kept: AssistantMessage = message
    assert [item for kind, item in in_order(kept) if kind == "block"] == [
        {"n": 2},
        {"n": 40},
        {"n": 10},
    ]
    assert "".join(item for kind, item in in_order(kept) if kind == "text") == "Hello"


def test_what_is_not_known_is_passed_over():
    gatherer, text = gathered(
        "anthropic",
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "a_new_event", "of": "tomorrow"},
        start(0, type="server_tool_use", id="s", name="web_search", input={}),
        piece(0, "input_json_delta", partial_json='{"q": 1}'),
        stop(0),
        start(1, type="text", text="Hi"),
        piece(1, "citations_delta", citation={}),
        stop(1),
        end("end_turn", output_tokens=3),
        {"type": "message_stop"},
    )
    assert (text, gatherer.finish(), list(gatherer.calls())) == ("Hi", "stop", [])
    assert gatherer.usage is not None
    assert (gatherer.usage.prompt_tokens, gatherer.usage.completion_tokens) == (5, 3)
    _, text = gathered(
        "responses",
        {"type": "response.queued", "response": {}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "new"}},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "new"}},
        {"type": "response.output_text.delta", "delta": "Hi"},
    )
    assert text == "Hi"


def test_a_server_that_does_not_count_is_not_counted():
    gatherer, _ = gathered("anthropic", *said(0, "Hi"), end("end_turn", output_tokens=3))
    assert gatherer.usage is None
    response = {"status": "completed", "output": []}
    gatherer, _ = gathered("responses", {"type": "response.completed", "response": response})
    assert (gatherer.usage, gatherer.finish()) == (None, "stop")


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
    ],
)
def test_reasons_to_end(reason, read):
    gatherer, _ = gathered("anthropic", *said(0, "Hi"), end(reason))
    assert gatherer.finish() == read


@pytest.mark.parametrize(
    ("dialect", "event"),
    [
        ("anthropic", {"type": "content_block_delta", "index": 3, "delta": {}}),
        ("anthropic", {"type": "content_block_start", "index": 0}),
        ("anthropic", {"type": "message_delta", "delta": None}),
        ("anthropic", start(0, type="text", text=5)),
        ("responses", {"type": "response.output_text.delta"}),
        ("responses", {"type": "response.output_item.added", "item": {"type": "function_call"}}),
        ("responses", {"type": "response.completed", "response": None}),
        ("responses", {"type": "response.output_text.delta", "delta": 5}),
    ],
)
def test_nonsense_is_a_fault_of_the_provider(dialect, event):
    with pytest.raises(ProviderError) as caught:
        gathered(dialect, event)
    assert caught.value.code == "provider_malformed"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("rate_limit_error", "provider_rate_limited"),
        ("authentication_error", "provider_auth"),
        ("invalid_request_error", "provider_rejected"),
        ("overloaded_error", "provider_unavailable"),
        ("api_error", "provider_unavailable"),
    ],
)
def test_errors_in_a_stream(kind, code):
    with pytest.raises(ProviderError) as caught:
        gathered("anthropic", {"type": "error", "error": {"type": kind, "message": "No."}})
    assert caught.value.code == code


@pytest.mark.parametrize("dialect", ["anthropic", "responses"])
def test_a_schema_goes_without_alternatives_at_its_top(dialect):
    schema = {"properties": {"a": {"anyOf": [{}]}}, "oneOf": [{"required": ["a"]}]}
    request = ModelRequest([{"role": "user", "content": "Hi"}], tools=[ToolSpec("t", "", schema)])
    fields: Any = DIALECTS[dialect].request_fields(request)
    (tool,) = fields["tools"]
    name = "input_schema" if dialect == "anthropic" else "parameters"
    assert tool[name] == {"type": "object", "properties": {"a": {"anyOf": [{}]}}}


def test_parameters_in_words_of_the_responses():
    asked = {
        "verbosity": "low",
        "reasoning_effort": "high",
        "max_tokens": 5,
        "top_p": 0.5,
        "seed": 1,
    }
    sent = DIALECTS["responses"].parameters(asked, ModelRequest([]), ModelProfile("gpt"))
    assert sent == {
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "high"},
        "max_output_tokens": 16,
        "top_p": 0.5,
    }


def test_parameters_in_words_of_the_messages():
    asked = {"verbosity": "low", "temperature": 1.5, "top_p": 0.5, "stop": ["a", " "], "top_k": 3}
    sent = DIALECTS["anthropic"].parameters(asked, ModelRequest([]), ModelProfile("claude"))
    assert sent == {"max_tokens": 4_096, "temperature": 1.0, "stop_sequences": ["a"], "top_k": 3}


def test_ids_are_fit_and_given_once():
    """Of other providers: too long, in other letters, or the same in two turns."""
    calls: Any = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "not json"}}
        for i in ("call:1", "call:1", "fine")
    ]
    messages: Any = [{"role": "assistant", "content": "Hi", "tool_calls": calls[:1]}]
    messages += [{"role": "tool", "tool_call_id": "call:1", "content": ""}]
    messages += [{"role": "tool", "tool_call_id": "nobody", "content": "stray"}]
    messages += [{"role": "assistant", "content": "  ", "tool_calls": calls[1:]}]
    messages += [{"role": "tool", "tool_call_id": i, "content": i} for i in ("fine", "call:1")]
    fields: Any = DIALECTS["anthropic"].request_fields(ModelRequest(messages))
    blocks = [block for message in fields["messages"] for block in message["content"]]
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert made == ["toolu_amber_0", "toolu_amber_1", "fine"]
    assert answered == ["toolu_amber_0", "fine", "toolu_amber_1"]
    assert [m["role"] for m in fields["messages"]] == ["user", "assistant"] * 2 + ["user"]
    assert blocks[2]["input"] == {"arguments": "not json"}
    assert [tool["name"] for tool in fields["tools"]] == ["f"]
