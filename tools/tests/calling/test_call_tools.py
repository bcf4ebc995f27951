import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tool_calls import ToolCall
from engine.tools import MAX_OFFERED_TOOLS, Toolbox, ToolResult, ToolSpec
from engine.trust import Exposure
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits, TurnToolbox, allowed_name, make_offered_names
from tools.protocol import OfferedTool, ToolContext, ToolError, ToolOutput


@dataclass(frozen=True)
class FakeTool(OfferedTool):
    """Answers with what it was given, or raises it."""

    name: str = "echo"
    answer: Any = "fine"
    calls: list[tuple[Mapping[str, Any], ToolContext]] = field(default_factory=list)
    spec: ToolSpec = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", ToolSpec(self.name, "Echoes.", {"type": "object"}))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.calls.append((arguments, context))
        if self.answer == "hang":
            await asyncio.Event().wait()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return ToolOutput(str(self.answer))


@pytest.fixture
def toolbox(context):
    def make(*tools, timeout_seconds=5.0, result_tokens=100, chat_id=None, **more):
        in_chat = replace(context, chat_id=chat_id)
        limits = ToolLimits(timeout_seconds, result_tokens, count=lambda text: len(text.split()))
        files = ResultFiles(in_chat, vision=False)
        return TurnToolbox(tools, context=in_chat, limits=limits, files=files, **more)

    return make


def run(box: Toolbox, name: str = "echo", arguments: str = "{}") -> ToolResult:
    return asyncio.run(box.call(ToolCall("c1", name, arguments), Exposure()))


def asks_first(box: Toolbox, name: str) -> bool:
    return box.asks_first(ToolCall("c1", name, "{}"), Exposure())


def test_a_call_gets_its_arguments_and_its_context(toolbox, context):
    tool = FakeTool()
    assert run(toolbox(tool), arguments='{"a": 1}') == ToolResult("c1", True, "fine")
    ((arguments, given_context),) = tool.calls
    assert arguments == {"a": 1}
    assert given_context.call_id == "c1"
    assert given_context.turn_id == context.turn_id


def test_an_unknown_name_lists_the_known_ones(toolbox):
    result = run(toolbox(FakeTool("a"), FakeTool("b")), "nope")
    assert result == ToolResult("c1", False, "There is no tool named nope. There are: a, b.")


def test_bad_json_is_explained_and_nothing_is_called(toolbox):
    tool = FakeTool()
    result = run(toolbox(tool), arguments='{"a": ')
    assert not result.ok
    assert "not valid JSON" in result.content
    assert tool.calls == []


def test_a_tool_error_is_what_the_model_reads(toolbox):
    result = run(toolbox(FakeTool(answer=ToolError("There is no such city; try another."))))
    assert result == ToolResult("c1", False, "There is no such city; try another.")


def test_any_other_fault_is_logged_and_hidden(toolbox, caplog):
    result = run(toolbox(FakeTool(answer=RuntimeError("password=hunter2"))))
    assert result == ToolResult("c1", False, "echo failed. The reason was logged for its owner.")
    assert "tool_failed" in caplog.text
    assert "hunter2" in caplog.text


def test_a_hanging_tool_is_given_up(toolbox):
    result = run(toolbox(FakeTool(answer="hang"), timeout_seconds=0.01))
    assert result == ToolResult("c1", False, "echo did not answer within 0.01 seconds.")


def test_a_tools_own_limit_counts_if_it_is_shorter(toolbox):
    tool = FakeTool(answer="hang", timeout_seconds=0.01)
    assert "within 0.01 seconds" in run(toolbox(tool)).content
    tool = FakeTool(answer="hang", timeout_seconds=60)
    assert "within 0.02 seconds" in run(toolbox(tool, timeout_seconds=0.02)).content


def test_a_timeout_inside_a_tool_is_its_fault(toolbox):
    assert "echo failed" in run(toolbox(FakeTool(answer=TimeoutError()))).content


def test_a_cancelled_call_stays_cancelled(toolbox):
    async def cancel_it() -> None:
        box = toolbox(FakeTool(answer="hang"))
        task = asyncio.create_task(box.call(ToolCall("c1", "echo", "{}"), Exposure()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_it())


def test_a_long_result_keeps_its_head_and_its_tail(toolbox):
    words = [f"word{n}" for n in range(5_000)]
    result = run(toolbox(FakeTool(answer=" ".join(words)), result_tokens=50))
    assert result.ok
    assert result.content.startswith("word0 ")
    assert result.content.endswith(" word4999")
    assert "characters left out" in result.content
    assert len(result.content.split()) <= 50


def test_a_long_error_is_cut_too(toolbox):
    result = run(toolbox(FakeTool(answer=ToolError("word " * 5_000)), result_tokens=50))
    assert not result.ok
    assert "characters left out" in result.content
    assert result.kept is None


def test_what_asks_first_is_known_by_its_offered_name(toolbox):
    tools = [FakeTool("send it", asks_first=True), FakeTool("look")]
    in_chat = toolbox(*tools, chat_id=UUID(int=9))
    assert asks_first(in_chat, "send_it")
    assert not asks_first(in_chat, "look")
    assert not asks_first(in_chat, "unknown")
    assert run(in_chat, "send_it").ok, "whoever runs it has asked"


def test_without_a_chat_nobody_is_asked_and_nothing_called(toolbox):
    tool = FakeTool("send", asks_first=True)
    box = toolbox(tool)
    assert not asks_first(box, "send")
    result = run(box, "send")
    assert not result.ok
    assert result.content.startswith("send was not called: a person must approve each call")
    assert tool.calls == []


def test_in_a_chat_that_nobody_attends_such_a_call_is_refused_too(toolbox):
    tool = FakeTool("send", asks_first=True)
    box = toolbox(tool, chat_id=UUID(int=1), is_attended=False)
    assert not asks_first(box, "send")
    assert "nobody can" in run(box, "send").content
    assert tool.calls == []


def test_client_tools_are_offered_after_own_ones_and_keep_their_names(toolbox):
    client_tools = [ToolSpec("weather", "The caller's."), ToolSpec("echo", "The caller's too.")]
    box = toolbox(FakeTool("echo"), FakeTool("clock"), client_tools=client_tools)
    assert [(spec.name, spec.description) for spec in box.specs] == [
        ("clock", "Echoes."),
        ("weather", "The caller's."),
        ("echo", "The caller's too."),
    ]
    assert [name for name in ("clock", "weather", "echo") if box.is_client_tool(name)] == [
        "weather",
        "echo",
    ]
    assert not run(box, "echo").ok, "the own tool of that name is not called in its place"


def test_own_tools_make_way_for_client_tools_where_there_are_too_many(toolbox):
    own = [FakeTool(f"own_{n}") for n in range(MAX_OFFERED_TOOLS)]
    box = toolbox(*own, client_tools=[ToolSpec("weather", "")])
    assert len(box.specs) == MAX_OFFERED_TOOLS
    assert box.specs[-1].name == "weather"
    assert box.left_out == (f"own_{MAX_OFFERED_TOOLS - 1}",)


def test_a_short_result_is_not_even_counted(context):
    def refuse(text: str) -> int:
        raise AssertionError(text)

    box = TurnToolbox(
        [FakeTool()],
        context=context,
        limits=ToolLimits(5, 100, refuse),
        files=ResultFiles(context, vision=False),
    )
    assert run(box).content == "fine"


def test_what_postgres_does_not_take_is_taken_out(toolbox):
    assert run(toolbox(FakeTool(answer="a\0b\ud800c"))).content == "ab?c"
    assert run(toolbox(FakeTool(answer=ToolError("a\0b")))).content == "ab"


def test_only_idempotent_tools_are_safe_to_repeat(toolbox):
    box = toolbox(FakeTool("safe", is_idempotent=True), FakeTool("unsafe"))
    assert box.is_safe_to_repeat("safe")
    assert not box.is_safe_to_repeat("unsafe")
    assert not box.is_safe_to_repeat("unknown")


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([("", "a"), ("Weather", "b")], ["a", "b"]),
        ([("One", "get"), ("Two", "get")], ["One__get", "Two__get"]),
        ([("My tool", "get.it"), ("Two", "get it")], ["My_tool__get_it", "Two__get_it"]),
        ([("", "get"), ("Two", "get")], ["get", "Two__get"]),
        ([("Same", "get"), ("Same", "get")], ["Same__get", "Same__get_2"]),
        (
            [("One", "get"), ("Two", "get"), ("X", "Two__get")],
            ["One__get", "Two__get_2", "Two__get"],
        ),
        ([("天气", "查询")], ["__"]),
        ([("T" * 70, "f" * 10), ("U", "f" * 10)], ["T" * 52 + "__" + "f" * 10, "U__" + "f" * 10]),
        ([("One", "f" * 64), ("Two", "f" * 70)], ["f" * 64, "f" * 62 + "_2"]),
        ([("One", "")], ["tool"]),
    ],
)
def test_names_are_fit_for_models_and_unique(tools, names):
    assert make_offered_names([FakeTool(name, source=source) for source, name in tools]) == names


sources = st.lists(st.tuples(st.sampled_from(["", "A", "B b", "查"]), st.text(max_size=70)))


@pytest.mark.parametrize("name", ["calculate", "web_search", "web_browse"])
def test_a_name_by_which_results_are_trusted_is_no_strangers(name):
    assert make_offered_names([FakeTool(name, source="Shop")]) == [f"Shop__{name}"]
    assert make_offered_names([FakeTool("text_to_speech", source="Shop")]) == ["text_to_speech"]


@given(sources | st.lists(st.tuples(st.just("A"), st.sampled_from(["f", "f_2", "A__f", "f"]))))
def test_names_are_always_allowed_unique_and_the_same_again(tools):
    made = [FakeTool(name, source=source) for source, name in tools]
    names = make_offered_names(made)
    assert len(set(names)) == len(names) == len(made)
    assert all(name == allowed_name(name) for name in names)
    assert make_offered_names(made) == names


def test_specs_carry_the_names_in_the_order_given(toolbox):
    box = toolbox(FakeTool("b"), FakeTool("a b"))
    assert [spec.name for spec in box.specs] == ["b", "a_b"]
    assert run(box, "a_b").ok


def test_no_more_are_offered_than_providers_take(toolbox):
    box = toolbox(*(FakeTool(f"t{n}") for n in range(MAX_OFFERED_TOOLS + 2)))
    assert len(box.specs) == MAX_OFFERED_TOOLS
    assert box.left_out == ("t128", "t129")
    assert not run(box, "t128").ok
