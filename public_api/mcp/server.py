"""Serve the tools by the official SDK: one server of the process, which holds no session.

    await handle(principal, scope, receive, send)

Each request is served on its own, so any web process may get the next one. Who asks is in the
request's scope. What a tool refuses is a result marked as an error, which the model reads; what
fails unexpectedly is logged and told without its words.

The SDK takes 33 MB and 0.3 s to import, so this module is imported with the first request.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import mcp_types
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from redis.exceptions import RedisError

from accounts.principal import Principal
from amber.lib.errors import AmberError
from amber.lib.rest.api import as_amber_error
from public_api.mcp.assistant_tools import ASSISTANT_TOOLS
from public_api.mcp.library_tools import LIBRARY_TOOLS
from public_api.mcp.tool import McpTool, ToolAnswer
from tools.calling.arguments import check_arguments
from tools.protocol import ArgumentsError

logger = structlog.get_logger(__name__)

PRINCIPAL_IN_SCOPE: Final = "amber.principal"
TOOLS: Final[Mapping[str, McpTool]] = {
    tool.name: tool for tool in (*LIBRARY_TOOLS, *ASSISTANT_TOOLS)
}
INSTRUCTIONS: Final = (
    "Amber's libraries are documents that can be searched; its assistants answer questions with "
    "documents and tools of their own. Search a library when you need the sources themselves, ask "
    "an assistant when its answer will do."
)

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]


async def handle(principal: Principal, scope: Any, receive: Any, send: Any) -> None:
    """Serve one request, as an ASGI application does."""
    manager = StreamableHTTPSessionManager(_server, stateless=True)
    async with manager.run():
        await manager.handle_request({**scope, PRINCIPAL_IN_SCOPE: principal}, receive, send)


async def _list_tools(
    context: Context, params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    return mcp_types.ListToolsResult(tools=[_describe(tool) for tool in TOOLS.values()])


def _describe(tool: McpTool) -> mcp_types.Tool:
    return mcp_types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.parameters),
        output_schema=dict(tool.returns),
        annotations=mcp_types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=False,
            open_world_hint=not tool.reads_only,
        ),
    )


async def _call_tool(
    context: Context, params: mcp_types.CallToolRequestParams
) -> mcp_types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(mcp_types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}.")
    arguments = params.arguments or {}
    assert context.request is not None
    principal = context.request.scope[PRINCIPAL_IN_SCOPE]
    try:
        await asyncio.to_thread(check_arguments, arguments, tool.parameters)
        answer: ToolAnswer = await _alone(
            tool.run(principal, arguments, partial(_report, context, [0]))
        )
    except ArgumentsError as error:
        return _refusal(str(error))
    except (AmberError, OperationalError, InterfaceError, RedisError) as error:
        return _refusal(_in_words(as_amber_error(error)))
    except Exception:
        logger.exception("mcp_tool_failed", tool=tool.name)
        return _refusal(AmberError().message)
    return _result(answer)


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    """Return the work's result. It is cancelled once, with the caller, and waited for.

    The SDK's scopes cancel each further `await`, so that nothing could be tidied up in them.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task})
    return task.result()


async def _report(context: Context, count: list[int], words: str) -> None:
    count[0] += 1
    await context.session.report_progress(count[0], message=words)


def _in_words(error: AmberError) -> str:
    """Return an error in words: its message, and what is wrong with which argument."""
    said = [f"{name}: {text}" for name, texts in (error.fields or {}).items() for text in texts]
    waits = error.retry_after_seconds
    again = [] if waits is None else [f"Try again in {waits} seconds."]
    return " ".join([error.message, *(each for each in said if each not in error.message), *again])


def _result(answer: ToolAnswer) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=answer.text)],
        structured_content=answer.values,
    )


def _refusal(words: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=words)], is_error=True
    )


_server: Final[Server[Any]] = Server(
    "amber",
    title="Amber",
    version=settings.AMBER_VERSION,
    instructions=INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
)
