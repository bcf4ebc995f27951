"""Run local servers in the roles of an operator's services and of strangers' pages."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.tests.local_server import Answer, LocalServer, say
from tools.calling import registry
from tools.protocol import ToolContext, ToolOutput


def url_of(server: LocalServer, path: str = "") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def say_json(value: Any, *, status: int = 200) -> Answer:
    body = json.dumps(value).encode()
    return say(body, status=status, headers={"Content-Type": "application/json"})


def call(name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    """Call the built-in tool, whether or not it would be offered. Raises what it raises."""
    with as_tenant(Tenant(context.organization_id, context.user_id, context.guest_id)):
        return asyncio.run(registry._tools[name].call(arguments, context))
