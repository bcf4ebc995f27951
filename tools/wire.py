"""Make the wire form of tools and of their calls, which never contains a key."""

from typing import Annotated, Any, TypedDict

from accounts.tenant_rows import ACCESS, Right
from amber.lib.wire_fields import Id, Time, write_id, write_time
from tools.models import CallOutcome, Tool, ToolCallRecord, ToolKind


class FunctionWire(TypedDict):
    name: Annotated[str, "The name as the service gives it."]
    description: str
    parameters: Annotated[dict[str, Any], "JSON Schema 2020-12 of the arguments."]
    idempotent: Annotated[bool, "Calling it twice does no harm."]
    read_only: Annotated[bool, "It changes nothing, its service says."]
    requires_approval: Annotated[bool, "The service asks for a person's approval before each call."]
    timeout_seconds: float | None


class ToolSummaryWire(TypedDict):
    """A tool in a list (`tools.wire.summary_wire`)."""

    id: Id
    kind: Annotated[str, ToolKind]
    name: str
    description: Annotated[str, "The service's own description."]
    discovery_url: Annotated[str, "Empty for a pasted document."]
    has_api_key: bool
    is_connected: Annotated[bool | None, "Whether it is connected by OAuth; null for others."]
    options: dict[str, Any]
    shared: bool
    access: Annotated[str, Right, ACCESS]
    user_id: Id | None
    function_names: list[str]
    warnings: Annotated[list[str], "What discovery left out, renamed or shortened."]
    last_error: Annotated[str, "Why the last refresh failed; empty if it succeeded."]
    refreshed_at: Time | None
    created_at: Time
    updated_at: Time


class ToolWire(ToolSummaryWire):
    """A tool in a list (`tools.wire.summary_wire`)."""

    homepage_url: str
    functions: list[FunctionWire]


class CallRecordWire(TypedDict):
    """An entry of the call log."""

    id: Id
    function: str
    call_id: str
    outcome: Annotated[str, CallOutcome]
    detail: Annotated[str, "Why the call failed."]
    http_status: Annotated[int | None, "The status of an answer that reports a failure."]
    latency_ms: int
    is_test: bool
    user_id: Id | None
    assistant_id: Id | None
    turn_id: Id | None
    created_at: Time


def tool_wire(tool: Tool, access: Right) -> ToolWire:
    """Return the whole tool for somebody with this access, with its functions and their schemas."""
    return {
        **summary_wire(tool, [each["name"] for each in tool.data.get("functions", ())], access),
        "homepage_url": tool.data.get("homepage_url", ""),
        "functions": [_function_wire(each) for each in tool.data.get("functions", ())],
    }


def summary_wire(tool: Tool, function_names: list[str], access: Right) -> ToolSummaryWire:
    """Return a tool as lists show it, with the names of its functions."""
    return {
        "id": str(tool.pk),
        "kind": tool.kind,
        "name": tool.name,
        "description": tool.description,
        "discovery_url": tool.discovery_url,
        "has_api_key": bool(tool.api_key_sealed),
        "is_connected": _is_connected(tool),
        "options": tool.options,
        "shared": tool.shared,
        "access": access,
        "user_id": write_id(tool.user_id),
        "function_names": function_names,
        "warnings": tool.warnings,
        "last_error": tool.last_error,
        "refreshed_at": write_time(tool.refreshed_at),
        "created_at": write_time(tool.created_at),
        "updated_at": write_time(tool.updated_at),
    }


def call_wire(record: ToolCallRecord) -> CallRecordWire:
    return {
        "id": str(record.pk),
        "function": record.function,
        "call_id": record.call_id,
        "outcome": record.outcome,
        "detail": record.detail,
        "http_status": record.http_status,
        "latency_ms": record.latency_ms,
        "is_test": record.is_test,
        "user_id": write_id(record.user_id),
        "assistant_id": write_id(record.assistant_id),
        "turn_id": write_id(record.turn_id),
        "created_at": write_time(record.created_at),
    }


def _is_connected(tool: Tool) -> bool | None:
    auth = tool.options.get("auth")
    uses_oauth = isinstance(auth, dict) and auth.get("type") == "oauth"
    return bool(tool.oauth_sealed) if uses_oauth else None


def _function_wire(function: dict[str, Any]) -> FunctionWire:
    return {
        "name": function["name"],
        "description": function["description"],
        "parameters": function["parameters"],
        "idempotent": function.get("idempotent", False),
        "read_only": function.get("read_only", False),
        "requires_approval": function.get("requires_approval", False),
        "timeout_seconds": function.get("timeout_seconds"),
    }
