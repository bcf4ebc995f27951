"""Call tools that an OpenAPI 3.0, 3.1 or 3.2 document describes: each operation is a function.

    options = {"document": "…", "server": "https://…", "operations": ["listPets"],
               "auth": {"type": "header", "name": "X-Api-Key"}, "ask_first": ["deletePet"],
               "search": false}

All options may be absent. With "document" the text was pasted and nothing is fetched for it. The
key goes to one origin only, which its owner chose: that of `server`, or else of the document's
address, or else of the pasted document's server. A document that names another server cannot draw
the key there; adding such a tool fails and says what to set. The document itself is first asked for
without the key.

Unknown options are refused. Only GET and HEAD are repeated.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from amber.lib.egress import Response, UnsafeAddress, fetch, installation_policy
from amber.lib.errors import Invalid
from engine.tools import ToolSpec
from tools.calling.arguments import check_arguments
from tools.openapi.answer import output_of
from tools.openapi.functions import SAFE_METHODS, Description, FunctionsRequest
from tools.openapi.operation_search import SearchedFunction, listed_functions
from tools.openapi.options import validate_options
from tools.openapi.plan import Plan
from tools.openapi.reader import read_in_child
from tools.openapi.request import build_request
from tools.openapi.server import origin_of
from tools.outgoing.auth import (
    ALL_KINDS,
    CredentialError,
    SentKey,
    send_key,
    validate_auth,
)
from tools.outgoing.requests import ServiceRequest, refused_address, send, unusable_key
from tools.protocol import OfferedTool, ToolContext, ToolOutput
from tools.source import Connection, DiscoveryError, DiscoveryResult

ACCEPTED_DOCUMENTS: Final = "application/json, application/yaml, text/yaml, */*;q=0.5"
ACCEPTED_ANSWERS: Final = "application/json, text/*;q=0.9, */*;q=0.8"
MAX_SHOWN_SERVER_CHARS: Final = 200


class OpenAPISource:
    """The `Source` of OpenAPI tools."""

    def check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options to store. Raises Invalid naming each option that is wrong."""
        return validate_options(options)

    async def discover(self, connection: Connection) -> DiscoveryResult:
        """Fetch and read the document. Raises DiscoveryError, UnsafeAddress, FetchError."""
        content, document_url = await _document(connection)
        options = connection.options
        request = FunctionsRequest(
            document_url=document_url,
            server=options.get("server", ""),
            operations=options.get("operations", ()),
            auth=options.get("auth"),
            is_searched=options.get("search", False),
        )
        description = await asyncio.to_thread(read_in_child, content, request)
        if description.problems:
            raise DiscoveryError(
                fields={place: [text] for place, text in description.problems.items()}
            )
        auth, warnings = _auth_of(description, has_key=bool(connection.api_key))
        data = {"auth": auth, "functions": description.functions}
        if request.is_searched:
            data["operations"] = description.functions
            data["functions"] = listed_functions(description.functions)
        warnings += _check_servers(connection, data)
        return DiscoveryResult(description.title, description.about, data, warnings)

    def functions(self, connection: Connection, data: Mapping[str, Any]) -> Sequence[OfferedTool]:
        asked = frozenset(connection.options.get("ask_first", ()))
        make = partial(_callable, connection, data, asked)
        listed = data.get("functions", ())
        if "operations" not in data:
            return [make(each) for each in listed]
        return [
            SearchedFunction(
                spec=ToolSpec(each["name"], each["description"], each["parameters"]),
                source=connection.name,
                operations=data["operations"],
                make=make,
                is_idempotent=each["idempotent"],
                is_read_only=each["idempotent"],
                asks_first=each["name"] in asked or each.get("requires_approval", False),
            )
            for each in listed
        ]

    def key_url(self, connection: Connection, data: Mapping[str, Any]) -> str:
        return _key_url(connection, data)


@dataclass(frozen=True, slots=True)
class _Credentials:
    """The tool's key, and the one origin it is for.

    `auths` is how one function sends it; None means as the tool's owner or its document says.
    """

    connection: Connection = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    auths: Sequence[Mapping[str, str]] | None = None

    def key_for(self, url: str) -> SentKey:
        """Return what carries the key; nothing for another origin. Raises CredentialError."""
        if origin_of(url) != _key_origin(self.connection, self.data):
            return SentKey()
        default = self.connection.options.get("auth") or self.data.get("auth")
        auths = [default or {"type": "bearer"}] if self.auths is None else self.auths
        return send_key(auths, self.connection.api_key)


@dataclass(frozen=True, slots=True)
class OpenAPIFunction(OfferedTool):
    """An operation."""

    connection: Connection = field(repr=False)
    plan: Plan
    credentials: _Credentials

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        given = _without_idle_nulls(arguments, self.spec.parameters)
        await asyncio.to_thread(check_arguments, given, self.spec.parameters)
        built = build_request(self.plan, given)
        try:
            key = self.credentials.key_for(built.url)
        except CredentialError as error:
            raise unusable_key(error) from None
        except ValueError:  # an address that is none
            raise refused_address() from None
        headers = {"Accept": ACCEPTED_ANSWERS, **built.headers, **key.headers}
        if "Cookie" in built.headers and "Cookie" in key.headers:
            headers["Cookie"] = f"{key.headers['Cookie']}; {built.headers['Cookie']}"
        if not self.is_idempotent and context.call_id:
            headers["Idempotency-Key"] = context.call_key
        request = ServiceRequest(
            method=built.method,
            url=key.add_to(built.url),
            headers=headers,
            body=built.body,
            secrets=key.secrets(self.connection.api_key),
        )
        answer = await send(request, context=context, idempotent=self.is_idempotent)
        return output_of(answer, function=self.spec.name, secrets=request.secrets)


def _callable(
    connection: Connection,
    data: Mapping[str, Any],
    asked: frozenset[str],
    described: Mapping[str, Any],
) -> OpenAPIFunction:
    plan = Plan.from_data(described["request"])
    return OpenAPIFunction(
        connection=connection,
        source=connection.name,
        plan=plan,
        credentials=_Credentials(connection, data, described.get("auth")),
        spec=ToolSpec(described["name"], described["description"], described["parameters"]),
        is_idempotent=described["idempotent"],
        is_read_only=plan.method.lower() in SAFE_METHODS,
        asks_first=described["name"] in asked or described.get("requires_approval", False),
    )


def _operations_in(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return all that can be called, also what is offered through a search only."""
    found: Sequence[Mapping[str, Any]] = data.get("operations") or data["functions"]
    return found


def _without_idle_nulls(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the nulls that models write for what they omit; where null is a value, it stays."""
    properties = schema.get("properties", {})
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in properties or _takes_null(properties[name])
    }


def _takes_null(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is not None:
        return "null" in (kind if isinstance(kind, list) else [kind])
    return any(part.get("type") == "null" for part in schema.get("anyOf", ()))


# -- Discovery ---------------------------------------------------------------------------------


async def _document(connection: Connection) -> tuple[bytes, str]:
    """Return the document's bytes and its address, which is empty if it was pasted."""
    pasted = connection.options.get("document")
    if pasted is not None:
        return pasted.encode("utf-8", "replace"), ""
    if not connection.url:
        raise DiscoveryError(fields={"discovery_url": ["Enter an address or paste a document."]})
    answer = await _fetch_document(connection)
    if not answer.is_success:
        field_name = "api_key" if answer.status in (401, 403) else "discovery_url"
        text = f"The address answered with status {answer.status}."
        raise DiscoveryError(fields={field_name: [text]})
    return answer.body, answer.url


async def _fetch_document(connection: Connection) -> Response:
    """Fetch the document, with the key only if it is wanted and meant for this origin."""
    headers = {"Accept": ACCEPTED_DOCUMENTS}
    answer = await fetch("GET", connection.url, headers=headers)
    if answer.status not in (401, 403) or not connection.api_key:
        return answer
    try:
        key = _Credentials(connection, {}).key_for(connection.url)
    except CredentialError as error:
        raise DiscoveryError(fields={"api_key": [str(error)]}) from None
    if not key:
        return answer
    return await fetch("GET", key.add_to(connection.url), headers=headers | key.headers)


def _auth_of(
    description: Description, *, has_key: bool
) -> tuple[Mapping[str, str] | None, list[str]]:
    """Return how the key is sent, and the warnings: the document may name an unusable header."""
    warnings = list(description.warnings)
    auth = description.auth
    try:
        auth = validate_auth(auth, ALL_KINDS) if auth else None
    except Invalid:
        auth = None
        warnings.insert(0, "The document wants the key in a header that Amber does not set.")
    for function in description.functions:
        if not all(map(_is_sendable, function.get("auth") or ())):
            function["auth"] = []
            warnings.append(
                f"{function['name']} wants the key in a header that Amber does not set."
            )
    if auth and not has_key:
        warnings.insert(0, "The service may want a key, and none was given.")
    return auth, warnings


def _is_sendable(auth: Mapping[str, str]) -> bool:
    """Return whether the key may go where a document says: not into the connection's headers."""
    try:
        validate_auth({name: auth[name] for name in auth if name != "scheme"}, ALL_KINDS)
    except Invalid:
        return False
    return True


def _check_servers(connection: Connection, data: Mapping[str, Any]) -> list[str]:
    """Return warnings of functions that the key cannot be sent to as they want it.

    Raises DiscoveryError for a server that may not be called, or that the key is not for, and for a
    key that no function can be sent.
    """
    for server in dict.fromkeys(each["request"]["server"] for each in _operations_in(data)):
        try:
            installation_policy().check_url(server)
            is_for_key = origin_of(server) == _key_origin(connection, data)
        except (UnsafeAddress, ValueError):
            raise DiscoveryError(fields={"servers": [UnsafeAddress().message]}) from None
        if connection.api_key and not is_for_key:
            shown = server[:MAX_SHOWN_SERVER_CHARS]
            text = (
                f"The document names another server, {shown}."
                " If the key is meant for that server, enter it here."
            )
            raise DiscoveryError(fields={"options.server": [text]})
    refusals = dict(_unsendable(connection, data))
    if refusals and len(refusals) == len(_operations_in(data)):
        raise DiscoveryError(fields={"api_key": [next(iter(refusals.values()))]})
    return [f"{name}: {why}" for name, why in refusals.items()]


def _unsendable(connection: Connection, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the functions that cannot be sent the key as they want it, and why."""
    for function in _operations_in(data):
        credentials = _Credentials(connection, data, function.get("auth"))
        try:
            credentials.key_for(function["request"]["server"])
        except CredentialError as error:
            yield function["name"], str(error)


def _key_origin(connection: Connection, data: Mapping[str, Any]) -> tuple[str, str, int | None]:
    return origin_of(_key_url(connection, data))


def _key_url(connection: Connection, data: Mapping[str, Any]) -> str:
    """Return `server`, or else the document's address, or else the pasted document's first server.

    When a tool is called, a pasted document is no longer at hand, so its server is read from data.
    """
    options = connection.options
    if "server" in options:
        return str(options["server"])
    if connection.url and "document" not in options:
        return connection.url
    return str(_operations_in(data)[0]["request"]["server"])
