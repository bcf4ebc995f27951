"""What spans show of a model's messages, in the form of OpenTelemetry's conventions."""

import json
from typing import Any

from amber.lib.tracing.spans import MOST_CHARS
from engine.tool_calls import ToolCall
from providers.calls.traced import MOST_MESSAGES, written_reply, written_request


def test_messages_calls_and_results_are_written_without_images():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, picture]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x" * (MOST_CHARS + 1)},
    ]
    written = written_request(messages)
    assert "AAAA" not in written
    system, user, assistant, tool = json.loads(written)
    assert system == {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}
    assert user["parts"][1] == {"type": "image_url"}
    assert assistant["parts"][-1] == {
        "type": "tool_call",
        "id": "c1",
        "name": "add",
        "arguments": "{}",
    }
    assert len(tool["parts"][0]["response"]) == MOST_CHARS + 1
    assert (
        len(json.loads(written_request([{"role": "user", "content": "x"}] * 99))) == MOST_MESSAGES
    )


def test_a_reply_is_one_message_with_its_reason():
    calls = [ToolCall("c1", "add", "{}")]
    assert json.loads(written_reply("Wait.", calls, "tool_calls")) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Wait."},
                {"type": "tool_call", "id": "c1", "name": "add", "arguments": "{}"},
            ],
            "finish_reason": "tool_calls",
        }
    ]
