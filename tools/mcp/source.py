"""Call the tools of a server that speaks the Model Context Protocol over streamable HTTP.

Each discovery and each call is a short session of its own, so a server may restart in between, and
no connection outlives its purpose. The key is sent as `options["auth"]` says
(`tools.outgoing.auth`).

Unknown options are refused. A call that may have been made is not repeated, unless the server says
that the function is read-only or idempotent.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final

from amber.lib.errors import Invalid
from engine.tools import ToolSpec
from tools.mcp.listing import discover_functions
from tools.mcp.results import output_of
from tools.mcp.terms import LineOptions, McpServer, ServerListing, SessionFault
from tools.outgoing.answers import mask_secrets
from tools.outgoing.auth import (
    HEADER_KINDS,
    CredentialError,
    auth_headers,
    secrets_in,
    validate_auth,
)
from tools.outgoing.requests import (
    MAX_TRIES,
    PAUSE_SECONDS,
    RETRIED_REASONS,
    RETRIED_STATUS,
    ServiceError,
    refused_address,
    unusable_key,
)
from tools.protocol import Exchange, OfferedTool, ToolContext, ToolError, ToolOutput
from tools.source import Connection, DiscoveryError, DiscoveryResult

DISCOVERY_SECONDS: Final = 30.0
CALL_SECONDS: Final = 600.0
"""Never reached, as the toolbox sets an earlier deadline (`tools.calling.toolbox`)."""

MAX_ASK_FIRST: Final = 500
MAX_OAUTH_CHARS: Final = 1_000
_UNAUTHORIZED: Final = 401
KNOWN_OPTIONS: Final = frozenset({"auth", "ask_first"})


class MCPSource:
    """The `Source` of MCP tools."""

    def check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options to store. Raises Invalid naming the option that is wrong."""
        for unknown in sorted(options.keys() - KNOWN_OPTIONS):
            raise Invalid(fields={f"options.{unknown}"[:200]: ["There is no such option."]})
        checked: dict[str, Any] = {}
        if "auth" in options:
            checked["auth"] = _validate_auth(options["auth"])
        if "ask_first" in options:
            checked["ask_first"] = _validate_names(options["ask_first"])
        return checked

    async def discover(self, connection: Connection) -> DiscoveryResult:
        """List the server's tools. Raises DiscoveryError, UnsafeAddress, FetchError."""
        await _load_sdk()
        try:
            given = await _with_token(connection)
            try:
                listing = await _listing(given)
            except SessionFault as fault:
                if fault.status != _UNAUTHORIZED or given.renew is None:
                    raise
                listing = await _listing(await _with_token(connection, stale=given.api_key))
        except CredentialError as error:
            raise DiscoveryError(str(error), fields={"api_key": [str(error)]}) from None
        except SessionFault as fault:
            raise _discovery_error(fault) from None
        found = discover_functions(listing, connection.url)
        if not found.data["functions"]:
            raise DiscoveryError(fields={"tools": found.warnings})
        return found

    def functions(self, connection: Connection, data: Mapping[str, Any]) -> Sequence[OfferedTool]:
        ask_first = frozenset(connection.options.get("ask_first", ()))
        return [
            MCPFunction(
                connection=connection,
                source=connection.name,
                protocol_version=data.get("protocol_version", ""),
                spec=ToolSpec(each["name"], each["description"], each["parameters"]),
                is_idempotent=each.get("idempotent", False),
                is_read_only=each.get("read_only", False),
                asks_first=each["name"] in ask_first,
            )
            for each in data.get("functions", ())
        ]

    def key_url(self, connection: Connection, data: Mapping[str, Any]) -> str:
        return connection.url


@dataclass(frozen=True, slots=True)
class MCPFunction(OfferedTool):
    """A tool of a server."""

    connection: Connection = field(repr=False)
    protocol_version: str

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        try:
            connection = await _with_token(self.connection)
            try:
                return await self._call(connection, arguments, context)
            except ServiceError as error:
                # A 401 says that the call was not made.
                if error.status != _UNAUTHORIZED or connection.renew is None:
                    raise
                connection = await _with_token(self.connection, stale=connection.api_key)
                return await self._call(connection, arguments, context)
        except CredentialError as error:
            raise unusable_key(error) from None

    async def _call(
        self, connection: Connection, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolOutput:
        """Call the tool with this key. Raises ToolError, CredentialError."""
        line = _line(
            connection,
            call_headers={"Idempotency-Key": context.call_key} if context.call_id else {},
            exchanges=context.exchanges,
        )
        result = await self._result(arguments, line)
        output = output_of(result, self.spec.name)
        text = mask_secrets(output.text, line.secrets)
        if result.get("isError"):
            raise ToolError(text or "The tool reports an error and does not say which.")
        return replace(output, text=text)

    async def _result(self, arguments: Mapping[str, Any], line: LineOptions) -> Mapping[str, Any]:
        """Call the tool, again if that is safe. Raises ServiceError."""
        await _load_sdk()
        from tools.mcp.session import call_tool

        server = McpServer(self.connection.url, line, self.protocol_version)
        tries = MAX_TRIES if self.is_idempotent else 1
        for number in range(1, tries + 1):
            try:
                return await call_tool(server, self.spec.name, arguments, seconds=CALL_SECONDS)
            except SessionFault as fault:
                if number == tries or not _is_passing(fault):
                    raise _service_error(fault, line.secrets) from None
            await asyncio.sleep(PAUSE_SECONDS * 2 ** (number - 1) * (1 + random.random()))
        raise AssertionError("the last try returns or raises")


async def _listing(connection: Connection) -> ServerListing:
    """List the server's tools. Raises CredentialError, SessionFault."""
    from tools.mcp.session import list_tools

    return await list_tools(McpServer(connection.url, _line(connection)), seconds=DISCOVERY_SECONDS)


async def _load_sdk() -> None:
    """Import the SDK in a thread: it takes 0.3 s the first time, and other turns go on."""
    await asyncio.to_thread(import_module, "tools.mcp.session")


def _line(
    connection: Connection,
    *,
    call_headers: Mapping[str, str] | None = None,
    exchanges: list[Exchange] | None = None,
) -> LineOptions:
    """Return the options of a session's line. Raises CredentialError."""
    credentials = auth_headers(connection.options.get("auth", {}), connection.api_key)
    return LineOptions(
        credentials=credentials,
        call_headers=call_headers or {},
        secrets=secrets_in(credentials, connection.api_key),
        exchanges=exchanges,
    )


def _is_passing(fault: SessionFault) -> bool:
    if fault.status in RETRIED_STATUS:
        return True
    return getattr(fault.cause, "reason", "") in RETRIED_REASONS


def _discovery_error(fault: SessionFault) -> Invalid:
    if fault.cause is not None:
        return fault.cause
    if fault.status in (401, 403):
        text = f"The server refused the key: it answered with status {fault.status}."
        return DiscoveryError(text, fields={"api_key": [text]})
    if fault.fields:
        return DiscoveryError("The MCP server does not keep to the protocol.", fields=fault.fields)
    status = f" (status {fault.status})" if fault.status else ""
    text = f"This is not an MCP server that Amber can use{status}. {fault.text}"
    return DiscoveryError(text, fields={"discovery_url": [text]})


def _service_error(fault: SessionFault, secrets: Sequence[str]) -> ServiceError:
    """Return the error for the model, with more for the owner under `detail`."""
    if fault.cause is not None and fault.cause.code == "unsafe_address":
        return refused_address()
    said = mask_secrets(fault.text, secrets)
    if fault.status in (401, 403):
        text = f"The tool's service refused Amber's key (status {fault.status})."
        return ServiceError(text, detail=f"{text} {said}", status=fault.status)
    status = f" with status {fault.status}" if fault.status else ""
    unknown = " It is not known whether the call was carried out." if _is_unknown(fault) else ""
    text = f"The tool's service failed{status}. {said}{unknown}"
    where = "; ".join(f"{place}: {texts[0]}" for place, texts in fault.fields.items())
    return ServiceError(text, detail=f"{text} {where}".strip(), status=fault.status)


def _is_unknown(fault: SessionFault) -> bool:
    """Whether the call was sent and no answer to it came."""
    is_answered = fault.code is not None or fault.status is not None or fault.fields
    return (
        fault.has_called and not is_answered and getattr(fault.cause, "reason", "") != "too_large"
    )


def _validate_auth(auth: Any) -> dict[str, str]:
    """Return the option as it is stored. Raises Invalid."""
    if not isinstance(auth, Mapping) or auth.get("type") != "oauth":
        return validate_auth(auth, (*HEADER_KINDS, "oauth"))
    for name, value in auth.items():
        if name not in ("type", "client_id", "scope"):
            raise Invalid(fields={f"options.auth.{name}"[:200]: ["There is no such option."]})
        if not isinstance(value, str) or len(value) > MAX_OAUTH_CHARS or not value.isprintable():
            raise Invalid(fields={f"options.auth.{name}": ["Must be plain text."]})
    return dict(auth)


async def _with_token(connection: Connection, stale: str = "") -> Connection:
    """Return the connection with a token, if it needs one. Raises CredentialError."""
    if connection.renew is None:
        return connection
    return replace(connection, api_key=await connection.renew(stale))


def _validate_names(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid(fields={"options.ask_first": ["Must be a list of function names."]})
    if len(names) > MAX_ASK_FIRST:
        raise Invalid(fields={"options.ask_first": [f"Must have at most {MAX_ASK_FIRST} names."]})
    return list(dict.fromkeys(names))
