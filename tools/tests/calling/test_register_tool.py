import asyncio
import threading
from typing import Annotated, Any, Literal

import pytest
from jsonschema.validators import Draft202012Validator

from tools.calling.registry import BuiltinTool, builtin_names, offer_builtin_tools, register_tool
from tools.protocol import ArgumentsError, Circumstances, ToolContext

pytestmark = pytest.mark.usefixtures("empty_registry")


def only_tool() -> BuiltinTool:
    (tool,) = offer_builtin_tools(Circumstances())
    return tool


def call(arguments: dict[str, Any], context: ToolContext) -> str:
    return asyncio.run(only_tool().call(arguments, context)).text


def test_name_docstring_and_parameters_are_read():
    @register_tool
    def weather(
        city: Annotated[str, "The city's name"],
        days: Annotated[int, "How many days"] = 1,
        unit: Annotated[Literal["C", "F"], "Degrees"] = "C",
    ) -> str:
        """Says how the weather is.

        Also tomorrow's.
        """
        return f"{city} {days} {unit}"

    spec = only_tool().spec
    assert (spec.name, spec.description) == (
        "weather",
        "Says how the weather is.\n\nAlso tomorrow's.",
    )
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city's name"},
            "days": {"type": "integer", "description": "How many days", "default": 1},
            "unit": {
                "type": "string",
                "enum": ["C", "F"],
                "description": "Degrees",
                "default": "C",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    Draft202012Validator.check_schema(spec.parameters)
    assert weather("Bonn") == "Bonn 1 C"  # the function stays a function


def test_a_tool_without_parameters_takes_an_empty_object(context):
    @register_tool
    def ping() -> str:
        """Answers."""
        return "pong"

    assert only_tool().spec.parameters["type"] == "object"
    assert call({}, context) == "pong"


@pytest.mark.parametrize(
    ("required", "default", "expected"),
    [
        (None, None, ["x"]),
        (None, 5, []),
        (True, 5, ["x"]),
        (False, None, []),
        (False, 5, []),
    ],
)
def test_the_third_part_says_whether_it_is_required(context, required, default, expected):
    annotation: Any = (
        Annotated[int, "A number"] if required is None else Annotated[int, "A number", required]
    )

    def show(x: Any = default) -> str:
        """Shows it."""
        return repr(x)

    if default is None:
        show.__defaults__ = ()
    show.__annotations__["x"] = annotation
    register_tool(show)
    assert only_tool().spec.parameters.get("required", []) == expected
    if not expected:
        assert call({}, context) == repr(default)
        assert call({"x": None}, context) == repr(default)
    assert call({"x": 7}, context) == "7"


def without_docstring(x: Annotated[str, "x"]) -> None:
    assert x


def without_annotation(x):
    """Doc."""


def without_annotated(x: str) -> None:
    """Doc."""


def with_a_number_as_description(x: Annotated[str, 5]) -> None:
    """Doc."""


def with_a_word_as_required(x: Annotated[str, "x", "yes"]) -> None:
    """Doc."""


def with_a_one_as_required(x: Annotated[str, "x", 1]) -> None:
    """Doc."""


def with_arguments(*x: Annotated[str, "x"]) -> None:
    """Doc."""


def with_keywords(**x: Annotated[str, "x"]) -> None:
    """Doc."""


def with_position(x: Annotated[str, "x"], /) -> None:
    """Doc."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (without_docstring, "without_docstring has no docstring"),
        (without_annotation, r"without_annotation\(x\) has no annotation"),
        (without_annotated, r"without_annotated\(x\) is not Annotated"),
        (with_a_number_as_description, "the description 5 is not a string"),
        (with_a_word_as_required, "required is 'yes', not True or False"),
        (with_a_one_as_required, "required is 1, not True or False"),
        (with_arguments, "cannot be given by name"),
        (with_keywords, "cannot be given by name"),
        (with_position, "cannot be given by name"),
    ],
)
def test_what_is_missing_is_a_type_error_at_import(function, words):
    with pytest.raises(TypeError, match=words):
        register_tool(function)
    assert builtin_names() == []


def test_a_name_is_taken_once():
    def ping() -> str:
        """Answers."""
        return "pong"

    register_tool(ping)
    with pytest.raises(ValueError, match="already a built-in tool named ping"):
        register_tool(ping)


def test_the_context_is_given_and_not_shown(context):
    @register_tool
    def who(ctx: ToolContext, greeting: Annotated[str, "A word"] = "Hi") -> str:
        """Greets."""
        return f"{greeting} {ctx.user_id}"

    assert list(only_tool().spec.parameters["properties"]) == ["greeting"]
    assert call({"greeting": "Yo"}, context) == f"Yo {context.user_id}"


def test_names_that_pydantic_keeps_for_itself_are_fine(context):
    @register_tool
    def odd(
        schema: Annotated[str, "a"], model_config: Annotated[str, "b"], copy: Annotated[str, "c"]
    ) -> str:
        """Joins them."""
        return schema + model_config + copy

    assert call({"schema": "1", "model_config": "2", "copy": "3"}, context) == "123"


def test_values_are_converted_where_that_is_safe(context):
    @register_tool
    def show(x: Annotated[int, "x"], y: Annotated[list[float], "y"]) -> str:
        """Shows them."""
        return repr((x, y))

    assert call({"x": "5", "y": [1]}, context) == "(5, [1.0])"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "x: Field required"),
        ({"x": "five"}, "x: Input should be a valid integer"),
        ({"x": None}, "x: Input should be a valid integer"),
        ({"x": 1, "z": 2}, "z: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_explained(context, arguments, words):
    @register_tool
    def show(x: Annotated[int, "x"]) -> str:
        """Shows it."""
        return repr(x)

    with pytest.raises(ArgumentsError, match=words):
        call(arguments, context)


def test_plain_functions_run_in_a_thread_and_async_ones_on_the_loop(context):
    @register_tool
    def blocking() -> str:
        """Says its thread."""
        return threading.current_thread().name

    assert call({}, context) != threading.current_thread().name

    @register_tool
    async def waiting() -> str:
        """Says its thread."""
        return threading.current_thread().name

    waiting_tool = offer_builtin_tools(Circumstances())[1]
    assert asyncio.run(waiting_tool.call({}, context)).text == threading.current_thread().name


def test_options_are_kept():
    @register_tool(idempotent=True, timeout_seconds=2)
    def ping() -> str:
        """Answers."""
        return "pong"

    tool = only_tool()
    assert (tool.is_idempotent, tool.timeout_seconds, tool.source) == (True, 2, "")


def test_tools_are_offered_by_circumstance_and_by_name():
    @register_tool(when=lambda now: now.has_library)
    def search() -> str:
        """Searches."""
        return ""

    @register_tool
    def always() -> str:
        """Answers."""
        return ""

    def names(*args: Any, **kwargs: Any) -> list[str]:
        return [tool.name for tool in offer_builtin_tools(*args, **kwargs)]

    assert names(Circumstances()) == ["always"]
    assert names(Circumstances(has_library=True)) == ["always", "search"]
    assert names(Circumstances(has_library=True), disabled=["always", "unknown"]) == ["search"]
    assert builtin_names() == ["always", "search"]
