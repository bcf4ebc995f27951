"""Test which calls need a person once a turn has read what strangers wrote."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engine.tools import ToolSpec
from engine.trust import PASSAGES, Exposure, ToolReading
from tools.calling.guard import is_guarded
from tools.calling.registry import offer_builtin_tools, register_tool
from tools.protocol import Circumstances, OfferedTool, ToolContext, UntrustedCalls

READ = Exposure(
    frozenset({PASSAGES}),
    typed=("Is the north pump, number 7, at https://a.example/x?y=1 all right?",),
    readings=(
        ToolReading("list", "Order AB-12", in_turn=False),
        ToolReading("other", "Secret KESTREL", in_turn=True),
    ),
)
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "level": {"enum": ["low", "high", 3]},
        "kind": {"const": "pump"},
        "is_old": {"type": "boolean"},
        "place": {"type": "object", "properties": {"side": {"enum": ["left"]}}},
        "numbers": {"type": "array", "items": {"type": "number"}},
    },
}


@dataclass(frozen=True)
class Function(OfferedTool):
    """A service's function, as far as it is guarded."""

    is_read_only: bool = True
    source: str = "Shop"
    spec: ToolSpec = field(default_factory=lambda: ToolSpec("get", "Gets.", SCHEMA))

    async def call(self, arguments: Any, context: ToolContext) -> Any:
        raise NotImplementedError


@pytest.fixture
def guards(context):
    def ask(
        arguments: Any = None,
        *,
        exposure: Exposure = READ,
        untrusted_calls: str = "ask",
        **about: Any,
    ) -> bool:
        asked = replace(context, exposure=exposure, untrusted_calls=UntrustedCalls(untrusted_calls))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        names = frozenset({"get", "list"})
        return is_guarded(Function(**about), written, asked, same_source=names)

    return ask


def test_what_may_change_something_is_guarded(guards):
    assert guards(is_read_only=False)
    assert guards({"level": "low"}, is_read_only=False)


def test_nothing_is_guarded_before_anything_was_read(guards):
    assert not guards(is_read_only=False, exposure=replace(READ, untrusted=frozenset()))


def test_what_its_owner_trusts_and_trusted_assistants_are_not_guarded(guards):
    assert not guards(is_read_only=False, is_harmless=True)
    assert not guards(is_read_only=False, untrusted_calls="allow")
    assert guards(is_read_only=False, untrusted_calls="refuse")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "North pump"},
        {"query": "7"},
        {"numbers": [7]},
        {"numbers": [7.0]},
        {"query": "https://a.example/x?y=1"},
        {"query": "AB-12", "is_old": True},
        {"level": "high", "kind": "pump", "place": {"side": "left"}, "query": None},
        {"level": 3},
        "not json",
    ],
)
def test_a_function_that_reads_gets_what_the_user_and_its_service_said(guards, arguments):
    assert not guards(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "KESTREL"},
        {"query": "north pump KESTREL"},
        {"query": "8"},
        {"numbers": [7, 4711]},
        {"numbers": [7.000001]},
        {"level": "4711"},
        {"KESTREL": True},
        {"place": {"KESTREL": None}},
        {"query": "https://a.example/x?y=KESTREL"},
        {"query": "https://a.example/pump"},
        {"query": "..-..-...-"},
        {"numbers": [7] * 200},
        {"query": ["deep", [["KESTREL"]]]},
    ],
)
def test_nothing_else_that_was_read_goes_to_it(guards, arguments):
    assert guards(arguments)


def test_deep_arguments_are_looked_through(guards):
    assert guards('{"query":' + "[" * 900 + '"KESTREL"' + "]" * 900 + "}")
    assert not guards('{"query":' + "[" * 900 + '"pump"' + "]" * 900 + "}")


def test_built_in_tools_say_so_themselves(empty_registry):
    @register_tool
    def plain() -> str:
        """Does something."""
        return ""

    @register_tool(harmless=True)
    def quiet() -> str:
        """Does nothing."""
        return ""

    offered = {tool.name: tool.is_harmless for tool in offer_builtin_tools(Circumstances())}
    assert offered == {"plain": False, "quiet": True}


def test_of_ambers_own_tools_only_forgetting_needs_a_person(settings):
    settings.AMBER_SEARXNG_URL = "http://search.example"
    everything = Circumstances(has_library=True, has_sealed_blocks=True)
    guarded = [tool.name for tool in offer_builtin_tools(everything) if not tool.is_harmless]
    assert guarded == ["forget"]
