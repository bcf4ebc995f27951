"""Check and log every call of a stored tool, whatever its source does."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engine.tools import ToolSpec
from tools.calling.recorded import RecordedTool
from tools.models import Tool, ToolCallRecord
from tools.outgoing.requests import ServiceError
from tools.protocol import OfferedTool, ToolError, ToolOutput

pytestmark = pytest.mark.django_db(transaction=True)

SPEC = ToolSpec("f", "A function.", {"type": "object", "required": ["a"]})


@dataclass(frozen=True)
class Function(OfferedTool):
    """Returns or raises what it was given."""

    outcome: Any = "done"
    spec: ToolSpec = field(default=SPEC, kw_only=True)
    source: str = field(default="Tool", kw_only=True)

    async def call(self, arguments: Any, context: Any) -> ToolOutput:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        if self.outcome == "hang":
            await asyncio.Event().wait()
        return ToolOutput(self.outcome)


@pytest.fixture
def row(alice):
    return Tool.objects.create(organization=alice.organization, user=alice.user, name="Tool")


@pytest.fixture
def called(alice, row, context):
    """Return a function that makes a call and returns the one entry of the log."""
    of_turn = replace(
        context,
        organization_id=alice.organization.pk,
        user_id=alice.user.pk,
        assistant_id=row.pk,
        call_id="call_1",
    )

    def call(
        function: Function, *, arguments: Any = None, deadline_seconds: float | None = None
    ) -> ToolCallRecord:
        tool = RecordedTool.of(function, row.pk, asks_first=False)

        async def run() -> None:
            async with asyncio.timeout(deadline_seconds):
                await tool.call({"a": 1} if arguments is None else arguments, of_turn)

        try:
            asyncio.run(run())
        except (ToolError, TimeoutError, ZeroDivisionError):
            pass
        return ToolCallRecord.objects.get()

    return call


def test_a_call_is_a_line_of_the_log(called, alice, row, context):
    line = called(Function())
    assert (line.organization, line.tool, line.user) == (alice.organization, row, alice.user)
    assert (line.turn_id, line.assistant_id) == (context.turn_id, row.pk)
    assert (line.function, line.call_id, line.is_test) == ("f", "call_1", False)
    assert (line.outcome, line.detail, line.http_status) == ("ok", "", None)


def test_arguments_that_do_not_fit_are_refused_before_the_source_sees_them(called):
    line = called(Function(ZeroDivisionError()), arguments={})
    assert (line.outcome, line.detail) == ("refused", "'a' is a required property")


@pytest.mark.parametrize(
    ("error", "detail", "status"),
    [
        (ToolError("for the model"), "for the model", None),
        (ServiceError("for the model", detail="for the owner", status=502), "for the owner", 502),
        (ToolError("with a \0"), "with a ", None),
        (ToolError("x" * 5_000), "x" * 1_000, None),
        (
            ZeroDivisionError("secret"),
            "The call failed unexpectedly. The reason is in Amber's log.",
            None,
        ),
    ],
    ids=["plain", "service", "nul", "long", "unforeseen"],
)
def test_a_failure_says_why(called, error, detail, status):
    line = called(Function(error))
    assert (line.outcome, line.detail, line.http_status) == ("failed", detail, status)


def test_the_deadline_is_told_from_being_stopped(called, settings):
    settings.AMBER_TOOL_TIMEOUT_SECONDS = 0.1
    assert called(Function("hang"), deadline_seconds=0.1).outcome == "timeout"
    ToolCallRecord.objects.all().delete()
    settings.AMBER_TOOL_TIMEOUT_SECONDS = 30
    line = called(Function("hang"), deadline_seconds=0.1)
    assert (line.outcome, line.detail) == (
        "failed",
        "The turn was stopped before an answer came.",
    )


def test_a_log_that_cannot_be_written_costs_no_answer(row, context):
    """The tool was deleted meanwhile."""
    Tool.objects.all().delete()
    tool = RecordedTool.of(Function(), row.pk, asks_first=False)
    output = asyncio.run(tool.call({"a": 1}, replace(context, organization_id=row.organization_id)))
    assert output.text == "done"
    assert not ToolCallRecord.objects.exists()


def test_the_rest_is_the_sources_own():
    inner = Function(is_idempotent=True, timeout_seconds=5)
    tool = RecordedTool.of(inner, row_id := Tool().pk, asks_first=True)
    assert (tool.spec, tool.source, tool.tool_id) == (SPEC, "Tool", row_id)
    assert (tool.is_idempotent, tool.timeout_seconds, tool.asks_first) == (True, 5, True)
