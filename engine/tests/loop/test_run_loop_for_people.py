"""Calls of the loop that wait for a person or are for whoever asked, and what is shown of what tools make."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from engine import loop
from engine.loop_events import ApprovalNeeded, ClientCallsReturned
from engine.messages import Attachment, is_asked
from engine.provider.model import ModelProfile, ModelRequest
from engine.tests.loop.runs import (
    ASKED,
    OPTIONS,
    Tools,
    at_once,
    consume,
    kinds,
    loop_events,
    replies,
    run,
)
from engine.tests.scripted_model import ScriptedModel, call, calls, says
from engine.tool_calls import ToolCall
from engine.tools import ResultFile, ToolResult
from engine.trust import Exposure

# -- Calls that wait for a person ------------------------------------------------------------------


def test_a_call_that_asks_first_waits_while_the_others_run():
    free, asking = call("clock", id="c1"), call("send", id="c2")
    toolbox = Tools(at_once, names=("clock", "send"), asking=("send",))
    with ScriptedModel([calls(asking, free)]) as model:
        seen = run(model, toolbox)
    assert kinds(seen) == [
        ("Reply", 1),
        ("CallStarted", 1),
        ("CallFinished", 1),
        ("ApprovalNeeded", 1),
    ]
    assert [called[0] for called in toolbox.called] == ["c1"]
    (reply,) = replies(seen)
    assert [c.id for c in reply.calls] == ["c2", "c1"]
    assert reply.unapproved == (reply.calls[0],)
    assert seen[-1] == ApprovalNeeded(1, reply.unapproved)


def test_only_calls_that_were_offered_can_wait():
    toolbox = Tools(at_once, names=("send",), asking=("send",))
    with ScriptedModel([calls(call("send"), text="I would send.")]) as model:
        seen = run(model, toolbox, max_tool_rounds=0)
    assert replies(seen)[0].unapproved == ()


# -- Calls that are for whoever asked --------------------------------------------------------------


def test_calls_of_the_askers_functions_end_the_turn_when_the_others_have_their_results():
    ours, client_tools = call("clock", id="c1"), call("theirs", id="c2")
    toolbox = Tools(at_once, names=("clock", "theirs"), client_tools=("theirs",))
    with ScriptedModel([calls(client_tools, ours, text="Both.")]) as model:
        seen = run(model, toolbox)
    assert kinds(seen) == [
        ("Text", 1),
        ("Reply", 1),
        ("CallStarted", 1),
        ("CallFinished", 1),
        ("ClientCallsReturned", 1),
    ]
    assert [called[0] for called in toolbox.called] == ["c1"]
    (reply,) = replies(seen)
    assert seen[-1] == ClientCallsReturned(1, (reply.calls[0],), "tool_calls")


def test_a_persons_approval_comes_before_handing_back():
    asking, client_tools = call("send", id="c1"), call("theirs", id="c2")
    names = ("send", "theirs")
    toolbox = Tools(at_once, names=names, asking=("send",), client_tools=("theirs",))
    with ScriptedModel([calls(asking, client_tools)]) as model:
        seen = run(model, toolbox)
    assert kinds(seen) == [("Reply", 1), ("ApprovalNeeded", 1)]
    assert toolbox.called == []


@pytest.mark.parametrize(
    ("choice", "after"),
    [
        ("required", None),
        ({"type": "function", "function": {"name": "clock"}}, None),
        ("auto", "auto"),
        ("none", "none"),
        (None, None),
    ],
)
def test_a_call_is_forced_once(choice, after):
    toolbox = Tools(at_once)
    request = ModelRequest([ASKED], tools=tuple(toolbox.specs), tool_choice=choice)
    with ScriptedModel([calls(call()), says("Noon.")]) as model:
        asyncio.run(consume(loop.run(model, request, toolbox=toolbox, **OPTIONS)))
    assert [asked.tool_choice for asked in model.requests] == [choice, after]


# -- What tools make -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vision", "shown"),
    [
        (True, [{"type": "image_url", "image_url": {"url": "data:b", "detail": "auto"}}]),
        (False, "[image: b.png]"),
    ],
)
def test_images_are_shown_behind_all_results_in_the_order_they_came(vision, shown):
    async def scenario() -> None:
        b_is_made = asyncio.Event()

        class Draws(Tools):
            async def call(self, call: ToolCall, exposure: Exposure) -> ToolResult:
                if call.id == "a":
                    await b_is_made.wait()
                b_is_made.set()
                image = Attachment(f"{call.id}.png", "image/png", url=f"data:{call.id}")
                return ToolResult(call.id, True, call.id, produced=(ResultFile("1", image),))

        async with asyncio.timeout(20), aclosing(loop_events(model, Draws(at_once))) as parts:
            async for _ in parts:
                pass

    profile = ModelProfile("scripted", vision=vision)
    script = [calls(call(id="a"), call(id="b")), says("Done.")]
    with ScriptedModel(script, profile=profile) as model:
        asyncio.run(scenario())
    messages = model.requests[1].messages
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user"]
    content: Any = messages[-1]["content"]
    assert content[:1] == shown if vision else content == f"{shown}\n[image: a.png]"
    assert not is_asked(messages[-1])
