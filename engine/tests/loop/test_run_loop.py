"""The loop of a turn: rounds of calls and results, failures, and ends from outside."""

import asyncio
from contextlib import aclosing

import pytest

from engine import loop
from engine.loop_events import CallFinished, CallStarted, LoopEvent, Reply, Text
from engine.messages import SystemMessage
from engine.provider.model import ModelProfile, ModelRequest, ProviderError, TextChunk, Usage
from engine.tests.loop.runs import (
    ASKED,
    OPTIONS,
    Tools,
    at_once,
    consume,
    kinds,
    loop_events,
    never,
    replies,
    run,
)
from engine.tests.scripted_model import Line, ScriptedModel, call, calls, forever, says


def test_an_answer_is_text_and_a_whole_reply():
    with ScriptedModel([says("It is ", "noon.", usage=Usage(7, 3))]) as model:
        seen = run(model)
    assert seen[:2] == [Text(1, "It is "), Text(1, "noon.")]
    (reply,) = replies(seen)
    assert (reply.text, reply.calls, reply.finish_reason) == ("It is noon.", (), "stop")
    assert reply.usage == Usage(7, 3)
    assert reply.first_token_seconds is not None
    assert 0 <= reply.first_token_seconds <= reply.seconds
    assert model.requests[0].messages == [ASKED]
    assert model.requests[0].temperature == 0.5
    assert model.closed == 1


def test_a_call_is_run_and_its_result_asked_with():
    toolbox = Tools(at_once)
    asked = call(arguments='{"zone": "UTC"}')
    with ScriptedModel([calls(asked, text="One moment."), says("Noon.")]) as model:
        seen = run(model, toolbox)
    assert kinds(seen) == [
        ("Text", 1),
        ("Reply", 1),
        ("CallStarted", 1),
        ("CallFinished", 1),
        ("Text", 2),
        ("Reply", 2),
    ]
    assert toolbox.called == [("c1", "clock", '{"zone": "UTC"}')]
    assert model.requests[1].messages == [
        ASKED,
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "clock", "arguments": '{"zone": "UTC"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "result of c1"},
    ]
    assert model.requests[0].messages == [ASKED], "an earlier request was changed"


def test_a_reply_is_told_before_its_calls_begin():
    """Whoever consumes stores it first: a tool is never called before its call is a row."""
    toolbox = Tools(at_once)

    async def consume() -> None:
        async with aclosing(loop_events(model, toolbox)) as parts:
            async for part in parts:
                if isinstance(part, Reply | CallStarted) and part.step == 1:
                    assert toolbox.called == []

    with ScriptedModel([calls(call()), says("Noon.")]) as model:
        asyncio.run(consume())
    assert len(toolbox.called) == 1


def test_calls_of_one_reply_run_at_the_same_time():
    """Each waits for the other: one after the other they would wait for ever."""
    both = [call(id="c1"), call(id="c2")]

    async def scenario() -> list[LoopEvent]:
        together = asyncio.Barrier(2)

        async def meet(call_id: str) -> str:
            await together.wait()
            return call_id

        async with asyncio.timeout(20), aclosing(loop_events(model, Tools(meet))) as parts:
            return [part async for part in parts]

    with ScriptedModel([calls(*both), says("Done.")]) as model:
        seen = asyncio.run(scenario())
    assert kinds(seen)[:3] == [("Reply", 1), ("CallStarted", 1), ("CallStarted", 1)]
    assert kinds(seen)[3:5] == [("CallFinished", 1)] * 2


def test_results_go_back_in_the_order_of_the_calls_whichever_is_ready_first():
    async def scenario() -> list[str]:
        second_is_done = asyncio.Event()

        async def in_reverse(call_id: str) -> str:
            if call_id == "c1":
                await second_is_done.wait()
            second_is_done.set()
            return call_id

        async with asyncio.timeout(20), aclosing(loop_events(model, Tools(in_reverse))) as parts:
            return [part.call.id async for part in parts if isinstance(part, CallFinished)]

    with ScriptedModel([calls(call(id="c1"), call(id="c2")), says("Done.")]) as model:
        assert asyncio.run(scenario()) == ["c2", "c1"]
    answers = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert answers == ["c1", "c2"]


def test_two_calls_with_the_same_id_both_get_their_result():
    same = [call(arguments="1"), call(arguments="2")]
    with ScriptedModel([calls(*same), says("Done.")]) as model:
        seen = run(model, Tools(at_once))
    assert sum(isinstance(part, CallFinished) for part in seen) == 2
    assert [m["role"] for m in model.requests[1].messages] == ["user", "assistant", "tool", "tool"]


def test_two_equal_calls_both_get_their_result():
    with ScriptedModel([calls(call(), call()), says("Done.")]) as model:
        seen = run(model, Tools(at_once))
    assert sum(isinstance(part, CallFinished) for part in seen) == 2


def test_a_prompt_that_stands_last_stays_last():
    prompt: SystemMessage = {"role": "system", "content": "Be brief."}
    profile = ModelProfile("scripted", system_position="last")
    with ScriptedModel([calls(call()), says("Noon.")], profile=profile) as model:
        toolbox = Tools(at_once)
        request = ModelRequest([ASKED, prompt], tools=tuple(toolbox.specs))
        asyncio.run(consume(loop.run(model, request, toolbox=toolbox, **OPTIONS)))
    assert [m["role"] for m in model.requests[1].messages] == [
        *("user", "assistant", "tool", "system")
    ]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds_are_bounded_and_the_last_request_offers_no_tools(rounds):
    script = [*([calls(call())] * rounds), says("Enough.")]
    with ScriptedModel(script) as model:
        seen = run(model, Tools(at_once), max_tool_rounds=rounds)
    offered = [len(request.tools) for request in model.requests]
    assert offered == [1] * rounds + [0]
    assert replies(seen)[-1].text == "Enough."


def test_calls_that_nobody_offered_are_dropped():
    with ScriptedModel([calls(call(), text="I would call.")]) as model:
        seen = run(model, Tools(at_once), max_tool_rounds=0)
    (reply,) = replies(seen)
    assert (reply.text, reply.calls) == ("I would call.", ())


def test_goes_on_at_the_step_it_is_given():
    with ScriptedModel([calls(call()), says("Done.")]) as model:
        seen = run(model, Tools(at_once), first_step=5, max_tool_rounds=5)
    assert {step for _, step in kinds(seen)} == {5, 6}
    assert [len(request.tools) for request in model.requests] == [1, 0]
    assert replies(seen)[0].calls[0].reply_id == "step-5"


def test_a_failed_tool_is_a_result_and_the_turn_goes_on():
    with ScriptedModel([calls(call("nonsense")), says("Sorry.")]) as model:
        seen = run(model, Tools(at_once, names=("clock",)))
    assert replies(seen)[-1].text == "Sorry."


@pytest.mark.parametrize(
    "pieces",
    [
        ["[Sent at 2024-01-01 00:00:00]\nNoon."],
        ["[Sent", " at 2024-01-01 ", "00:00:00]", "\n", "Noon."],
        ["\n[Sent at 2024-01-01 00:00:00]\n", "No", "on."],
    ],
)
def test_a_parroted_time_is_neither_shown_nor_kept(pieces):
    with ScriptedModel([says(*pieces)]) as model:
        seen = run(model)
    shown = "".join(part.text for part in seen if isinstance(part, Text))
    assert shown == replies(seen)[0].text == "Noon."


def test_text_held_back_as_a_likely_time_comes_at_the_end():
    with ScriptedModel([says("[Sent at")]) as model:
        seen = run(model)
    assert seen[0] == Text(1, "[Sent at")
    assert replies(seen)[0].text == "[Sent at"


def test_a_failure_before_any_text_is_tried_again_and_told():
    told: list[str] = []
    down = ProviderError("provider_unavailable", "down")
    with ScriptedModel([[down], says("Noon.")]) as model:
        seen = run(model, on_retry=lambda error, _: told.append(error.code))
    assert told == ["provider_unavailable"]
    assert replies(seen)[0].text == "Noon."


def test_each_attempt_tells_once_that_the_provider_answers_if_only_with_a_call():
    told: list[str] = []
    down = ProviderError("provider_unavailable", "down")
    arguments_come = TextChunk("")
    script: list[list[Line]] = [
        [down],
        [arguments_come, arguments_come, *calls(call())],
        says("It is ", "noon."),
    ]
    with ScriptedModel(script) as model:
        run(
            model,
            Tools(at_once),
            on_retry=lambda *_: told.append("retry"),
            on_answer=lambda: told.append("answer"),
        )
    assert told == ["retry", "answer", "answer"]


def test_a_failure_after_text_is_not_tried_again():
    script: list[list[Line]] = [
        [TextChunk("It is "), ProviderError("provider_unavailable", "down")]
    ]
    shown: list[LoopEvent] = []

    async def consume() -> None:
        nonlocal shown
        async with aclosing(loop_events(model)) as parts:
            async for part in parts:
                shown += [part]

    with ScriptedModel(script) as model, pytest.raises(ProviderError) as lost:
        asyncio.run(consume())
    assert lost.value.code == "provider_lost"
    assert shown == [Text(1, "It is ")]


def test_closing_in_mid_reply_closes_the_models_stream():
    async def scenario() -> None:
        parts = loop_events(model)
        assert await anext(parts) == Text(1, "It is ")
        await parts.aclose()
        assert model.closed == 1

    with ScriptedModel([[TextChunk("It is "), forever]]) as model:
        asyncio.run(scenario())


def test_cancelling_while_the_model_is_silent_closes_its_stream():
    async def scenario() -> None:
        silent = asyncio.Event()

        async def fall_silent() -> None:
            silent.set()
            await forever()

        model.script = [[fall_silent]]

        async def consume() -> None:
            async with aclosing(loop_events(model)) as parts:
                async for _ in parts:
                    pass

        task = asyncio.create_task(consume())
        await silent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.closed == 1

    with ScriptedModel([[]]) as model:
        asyncio.run(scenario())


@pytest.mark.parametrize("way", ["close", "cancel"])
def test_stopping_while_tools_run_lets_all_of_them_go(way):
    async def scenario() -> None:
        both_run = asyncio.Barrier(3)

        async def hang(call_id: str) -> str:
            await both_run.wait()
            await forever()
            return ""

        toolbox = Tools(hang)

        async def consume() -> None:
            async with aclosing(loop_events(model, toolbox)) as parts:
                async for _ in parts:
                    pass

        task = asyncio.create_task(consume())
        await both_run.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert toolbox.let_go == 2
        assert len(asyncio.all_tasks()) == 1, "a tool's task was left behind"

    async def closing() -> None:
        async def second_hangs(call_id: str) -> str:
            return call_id if call_id == "c1" else await never(call_id)

        toolbox = Tools(second_hangs)
        parts = loop_events(model, toolbox)
        async for part in parts:
            if isinstance(part, CallFinished):
                break
        await parts.aclose()
        assert toolbox.let_go == 2
        assert len(asyncio.all_tasks()) == 1

    with ScriptedModel([calls(call(id="c1"), call(id="c2"))]) as model:
        asyncio.run(scenario() if way == "cancel" else closing())


def test_a_deadline_of_theconsumer_stays_with_theconsumer():
    """It fires while the consumer works, not inside the loop: the stream ends with it, quietly."""

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02), aclosing(loop_events(model)) as parts:
                async for _ in parts:
                    await forever()
        assert model.closed == 1
        assert len(asyncio.all_tasks()) == 1
        await asyncio.sleep(0)  # a stray cancellation would arrive here

    with ScriptedModel([[TextChunk("It is "), forever]]) as model:
        asyncio.run(scenario())


def test_the_script_itself_is_strict():
    with pytest.raises(AssertionError, match="never asked for"), ScriptedModel([says("x")]):
        pass
    with pytest.raises(AssertionError, match="not in the script"), ScriptedModel([]) as model:
        run(model)
