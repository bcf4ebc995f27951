"""Call a service that speaks Amber's own protocol (docs/tools.md, "Discovery tools").

    GET discovery_url
        -> a manifest (`tools.discovery.manifest`)
    POST callback_url {"function", "arguments", "call_id", "context"}
        -> an answer (`tools.outgoing.answers`)

The key goes as `Authorization: Bearer` to the origin of the discovery address and to no other. Both
addresses go through the guarded client each time, redirects included: one that moves to a place
that may not be called is refused there and then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from amber.lib.egress import FetchError, FetchLimits, Response, fetch, installation_policy
from amber.lib.egress.policy import UnsafeAddress, origin_of
from amber.lib.errors import Invalid
from amber.lib.json_text import numbers
from engine.tools import ToolSpec
from tools.discovery.manifest import MAX_TIMEOUT_SECONDS, Manifest, read_manifest
from tools.outgoing.answers import output_of, refusal_of
from tools.outgoing.auth import CredentialError, auth_headers, secrets_in
from tools.outgoing.requests import ServiceRequest, refused_address, send, unusable_key
from tools.protocol import OfferedTool, ToolContext, ToolOutput
from tools.source import Connection, DiscoveryError, DiscoveryResult

MAX_MANIFEST_BYTES: Final = 1_000_000
"""1 MB of the worst JSON becomes 25 MB of objects."""

MAX_ANSWER_BYTES: Final = 6_000_000
"""A file of 4 MB in base64, and some text."""


class DiscoverySource:
    """The `Source` of discovery tools."""

    def check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return no options. Raises Invalid if there are any."""
        for name in sorted(options):
            raise Invalid(fields={f"options.{name}"[:200]: ["There is no such option."]})
        return {}

    async def discover(self, connection: Connection) -> DiscoveryResult:
        """Fetch the manifest. Raises DiscoveryError, UnsafeAddress, FetchError."""
        try:
            credentials = auth_headers({}, connection.api_key)
        except CredentialError as error:
            raise DiscoveryError(fields={"api_key": [str(error)]}) from None
        answer = await fetch(
            "GET",
            connection.url,
            headers={"Accept": "application/json", **credentials},
            limits=FetchLimits(max_bytes=MAX_MANIFEST_BYTES),
        )
        manifest = read_manifest(_json_of(answer))
        _check_callback(manifest)
        return DiscoveryResult(
            name=manifest.name,
            description=manifest.description,
            data={
                "callback_url": manifest.callback_url,
                "homepage_url": manifest.homepage_url,
                "functions": list(manifest.functions),
            },
            warnings=manifest.warnings,
        )

    def functions(self, connection: Connection, data: Mapping[str, Any]) -> Sequence[OfferedTool]:
        return [
            DiscoveryFunction(
                connection=connection,
                source=connection.name,
                callback_url=data["callback_url"],
                spec=ToolSpec(
                    each["name"], each["description"], {"type": "object", **each["parameters"]}
                ),
                is_idempotent=each.get("idempotent", False),
                is_read_only=each.get("read_only", False),
                asks_first=each.get("requires_approval", False),
                timeout_seconds=each.get("timeout_seconds"),
            )
            for each in data.get("functions", ())
        ]

    def key_url(self, connection: Connection, data: Mapping[str, Any]) -> str:
        return connection.url


@dataclass(frozen=True, slots=True)
class DiscoveryFunction(OfferedTool):
    """A function of a manifest."""

    connection: Connection = field(repr=False)
    callback_url: str

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Send the call to the callback. Raises ServiceError."""
        credentials = self._credentials()
        request = ServiceRequest(
            method="POST",
            url=self.callback_url,
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json, text/plain",
                "Idempotency-Key": context.call_key,
                **credentials,
            },
            body=numbers.write(_body(self.spec.name, arguments, context)),
            secrets=secrets_in(credentials, self.connection.api_key),
        )
        limits = FetchLimits(total_seconds=MAX_TIMEOUT_SECONDS, max_bytes=MAX_ANSWER_BYTES)
        answer = await send(request, context=context, idempotent=self.is_idempotent, limits=limits)
        if not answer.is_success:
            raise refusal_of(answer, request.secrets)
        return output_of(answer, request.secrets)

    def _credentials(self) -> Mapping[str, str]:
        """Return the headers with the key; none for a callback of another origin."""
        try:
            if origin_of(self.callback_url) != origin_of(self.connection.url):
                return {}
            return auth_headers({}, self.connection.api_key)
        except UnsafeAddress:
            raise refused_address() from None
        except CredentialError as error:
            raise unusable_key(error) from None


def _body(function: str, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    who = ("organization_id", "chat_id", "user_id", "assistant_id", "turn_id")
    return {
        "function": function,
        "arguments": arguments,
        "call_id": context.call_key,
        "context": {name: getattr(context, name) for name in who},
    }


def _json_of(answer: Response) -> Any:
    """Return the manifest's JSON. Raises DiscoveryError."""
    if answer.status in (401, 403):
        text = f"The service refused the key: it answered with status {answer.status}."
        raise DiscoveryError(text, fields={"api_key": [text]})
    if not answer.is_success:
        text = f"The address answered with status {answer.status}, not with a manifest."
        raise DiscoveryError(text, fields={"discovery_url": [text]})
    try:
        return answer.json()
    except FetchError:
        text = "The answer is not JSON, or it is JSON that is nested too deeply."
        raise DiscoveryError(text, fields={"discovery_url": [text]}) from None


def _check_callback(manifest: Manifest) -> None:
    """Check the callback as far as that needs no DNS query. Raises DiscoveryError."""
    try:
        installation_policy().check_url(manifest.callback_url)
    except UnsafeAddress as error:
        raise DiscoveryError(fields={"callback_url": [error.message]}) from None
