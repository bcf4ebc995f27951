"""Write requests in OpenAI's own form.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from engine.messages import ProviderMessage
from engine.provider.dialects.dialect import Dialect
from engine.provider.model import ModelRequest
from engine.tools import ToolChoice, ToolSpec


class FunctionDefinition(TypedDict):
    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: NotRequired[bool]


class FunctionTool(TypedDict):
    type: Literal["function"]
    function: FunctionDefinition


class ToolsRequest(TypedDict):
    messages: Sequence[ProviderMessage]
    tools: NotRequired[list[FunctionTool]]
    tool_choice: NotRequired[ToolChoice]


def request_fields(request: ModelRequest) -> ToolsRequest:
    fields: ToolsRequest = {"messages": request.messages}
    if request.tools:
        fields["tools"] = [
            {"type": "function", "function": function_of(tool)} for tool in request.tools
        ]
        if request.tool_choice is not None:
            fields["tool_choice"] = request.tool_choice
    return fields


def function_of(tool: ToolSpec) -> FunctionDefinition:
    function: FunctionDefinition = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return function


DIALECT: Final = Dialect(request_fields, allows_parallel_calls=True)
