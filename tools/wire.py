"""Make the wire form of tools and of their calls, which never contains a key."""

from datetime import datetime
from typing import Any

from tools.models import Tool, ToolCallRecord


def tool_wire(tool: Tool) -> dict[str, Any]:
    """Return the whole tool, with its functions and their schemas."""
    return {
        **summary_wire(tool, [each["name"] for each in tool.data.get("functions", ())]),
        "homepage_url": tool.data.get("homepage_url", ""),
        "functions": [_function_wire(each) for each in tool.data.get("functions", ())],
    }


def summary_wire(tool: Tool, function_names: list[str]) -> dict[str, Any]:
    """Return a tool as lists show it, with the names of its functions."""
    return {
        "id": str(tool.pk),
        "kind": tool.kind,
        "name": tool.name,
        "description": tool.description,
        "discovery_url": tool.discovery_url,
        "has_api_key": bool(tool.api_key_sealed),
        "options": tool.options,
        "shared": tool.shared,
        "user_id": str(tool.user_id) if tool.user_id else None,
        "function_names": function_names,
        "warnings": tool.warnings,
        "last_error": tool.last_error,
        "refreshed_at": _time(tool.refreshed_at),
        "created_at": _time(tool.created_at),
        "updated_at": _time(tool.updated_at),
    }


def call_wire(record: ToolCallRecord) -> dict[str, Any]:
    return {
        "id": str(record.pk),
        "function": record.function,
        "call_id": record.call_id,
        "outcome": record.outcome,
        "detail": record.detail,
        "http_status": record.http_status,
        "latency_ms": record.latency_ms,
        "is_test": record.is_test,
        "user_id": str(record.user_id) if record.user_id else None,
        "assistant_id": str(record.assistant_id) if record.assistant_id else None,
        "turn_id": str(record.turn_id) if record.turn_id else None,
        "created_at": _time(record.created_at),
    }


def _function_wire(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "parameters": function["parameters"],
        "idempotent": function.get("idempotent", False),
        "requires_approval": function.get("requires_approval", False),
        "timeout_seconds": function.get("timeout_seconds"),
    }


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
