"""Create, update, refresh and delete tools.

A tool's service is asked before anything is written, outside of any transaction: a tool exists only
if its service described itself. Asking needs a place (`tools.connections.places`), so it can raise
RateLimited and Unavailable. The key is stored encrypted, and only for the origin it was given for.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from accounts.audit.recording import record_switch
from accounts.audit_actions import AuditAction
from accounts.models import IdempotencyRecord
from accounts.principal import Actor, Principal
from accounts.tenancy.idempotency import settle
from accounts.tenant_rows import Right
from amber.lib.database.rows import delete_row
from amber.lib.database.tenant import for_whole_organization
from amber.lib.egress import installation_policy
from amber.lib.errors import Conflict, Forbidden, Invalid, Missing
from amber.lib.ids import new_id
from amber.lib.names import plain_name
from amber.lib.secrets import encrypt_column
from tools.calling.recorded import EVERY_FUNCTION, OWNER_OPTIONS
from tools.connections.connected import function_names
from tools.connections.inspection import discover
from tools.connections.places import place_for
from tools.connections.refreshing import (
    check_key_is_not_reused,
    check_key_stays,
    discovery_columns,
    question_of,
    refresh,
)
from tools.connections.sources import source_of
from tools.connections.tokens import NOT_CONNECTED, uses_oauth
from tools.models import PastedDocument, Tool, ToolKind
from tools.source import DiscoveryResult
from tools.wire import tool_wire

MAX_ASK_FIRST: Final = 256
NO_NAME: Final = "Tool"
_SHARING: Final = (AuditAction.TOOL_SHARED, AuditAction.TOOL_UNSHARED)

_CHANGED: Final = "Somebody else changed this tool in the same moment. Look at it and try again."

_CONNECTION: Final = frozenset({"discovery_url", "api_key_sealed", "options"})
_COLUMNS: Final = (
    *("name", "description", "discovery_url", "api_key_sealed", "options", "shared"),
    *("data", "warnings", "last_error", "refreshed_at", "tried_at", "oauth_sealed"),
)


def create_tool(
    principal: Principal, *, given: Mapping[str, Any], claim: IdempotencyRecord | None = None
) -> Tool:
    """Ask the service what it offers and store it as a tool of the acting user.

    `given` holds `kind` and any of `name`, `shared`, `discovery_url`, `api_key`, `options` and
    `document`. `claim` is the request's idempotency record, settled in the same transaction.

    Raises Forbidden for guests and for keys bound to an assistant; Invalid, DiscoveryError,
    UnsafeAddress for a service that cannot be used: then there is no row.
    """
    if principal.user is None or principal.assistant_id is not None:
        raise Forbidden
    tool = Tool(
        pk=new_id(),
        organization_id=principal.organization_id,
        user=principal.user,
        kind=given["kind"],
        name=given.get("name", ""),
        discovery_url=given.get("discovery_url", ""),
        shared=given.get("shared", False),
    )
    document = given.get("document", "")
    _check_address(tool, document)
    tool.options = _validate_options(tool, given.get("options", {}))
    encrypt_column(tool, "api_key", given.get("api_key", ""))
    if uses_oauth(tool):
        _await_connection(tool)
    else:
        with place_for(tool.organization_id):
            _apply_discovery(tool, discover(question_of(tool, document=document)))
    _check_named(tool)
    _insert(tool, document, claim, by=principal.actor)
    return tool


def update_tool(tool: Tool, *, changes: Mapping[str, Any], by: Actor) -> Tool:
    """Change a tool; `changes` are as `given` in `create_tool`, without `kind`.

    The service is asked again if the changes lead elsewhere. A stored key is kept only while it
    goes to the origin it was given for; an empty `api_key` removes it. Raises Invalid,
    DiscoveryError, UnsafeAddress, Missing for a tool that was deleted meanwhile, and Conflict for one
    that was led elsewhere meanwhile; then nothing has changed.
    """
    wanted, document = copy(tool), changes.get("document", "")
    for name in {"name", "shared", "discovery_url"} & changes.keys():
        setattr(wanted, name, changes[name])
    if document and "discovery_url" not in changes:
        wanted.discovery_url = ""
    _check_address(wanted, document, is_pasted=bool(tool.data) and not tool.discovery_url)
    if "options" in changes:
        wanted.options = _validate_options(wanted, changes["options"])
    if "api_key" in changes:
        encrypt_column(wanted, "api_key", changes["api_key"])
    keeps_key = "api_key" not in changes
    if keeps_key and uses_oauth(wanted) != uses_oauth(tool):
        check_key_is_not_reused(tool)
    if uses_oauth(wanted) and _leads_elsewhere(tool, wanted):
        if keeps_key:
            check_key_stays(tool, question_of(wanted), tool.data)
        wanted.oauth_sealed = ""
        _await_connection(wanted)
    elif document or _leads_elsewhere(tool, wanted):
        wanted.oauth_sealed = ""
        _ask_again(
            tool,
            wanted,
            document=document or _kept_document(wanted),
            keeps_key=keeps_key,
        )
    if "options" in changes:
        _check_named(wanted)
    changed = [name for name in _COLUMNS if getattr(wanted, name) != getattr(tool, name)]
    _update(wanted, changed, document, by=by, before=tool)
    return wanted


def refresh_tool(tool: Tool) -> Tool:
    """Ask the service now; a failure keeps what was known and sets `last_error`.

    Raises Invalid for a pasted document, as there is nothing to ask.
    """
    if not tool.discovery_url:
        text = "This tool was made from a pasted document. Paste it again to change it."
        raise Invalid(text, fields={"document": [text]})
    with place_for(tool.organization_id):
        refresh([tool])
    return tool


@transaction.atomic(durable=True)
def delete_tool(tool: Tool, *, by: Actor) -> None:
    """Delete the tool with its call log; assistants no longer use it."""
    with for_whole_organization():  # also private ones of others
        delete_row(tool)
    record_switch(by, tool, _SHARING, before=tool.shared, after=False)


@transaction.atomic(durable=True)
def _insert(tool: Tool, document: str, claim: IdempotencyRecord | None, *, by: Actor) -> None:
    tool.save(force_insert=True)
    _keep_document(tool, document)
    settle(claim, status=201, answer=tool_wire(tool, Right.OWN))
    record_switch(by, tool, _SHARING, before=False, after=tool.shared)


@transaction.atomic(durable=True)
def _update(tool: Tool, columns: Sequence[str], document: str, *, by: Actor, before: Tool) -> None:
    """Write the columns. Raises Missing for a tool that was deleted meanwhile, and Conflict for one
    that was led elsewhere: the key of one request would go to the address of the other."""
    tool.updated_at = timezone.now()
    values = {name: getattr(tool, name) for name in (*columns, "updated_at")}
    rows = Tool.objects.filter(pk=tool.pk)
    if not _CONNECTION.isdisjoint(columns):
        rows = rows.filter(**{name: getattr(before, name) for name in _CONNECTION})
    with for_whole_organization():  # an admin may close it to themselves, too
        if not rows.update(**values):
            raise Conflict(_CHANGED) if Tool.objects.filter(pk=tool.pk).exists() else Missing
    _keep_document(tool, document)
    record_switch(by, tool, _SHARING, before=before.shared, after=tool.shared)


def _keep_document(tool: Tool, document: str) -> None:
    """Store the document that was pasted; a tool with an address has none."""
    if document:
        PastedDocument.objects.update_or_create(
            tool=tool, defaults={"organization_id": tool.organization_id, "text": document}
        )
    elif tool.discovery_url:
        PastedDocument.objects.filter(tool=tool).delete()


def _kept_document(tool: Tool) -> str:
    """Return the document that the tool was made of; empty for a tool with an address."""
    if tool.discovery_url:
        return ""
    return PastedDocument.objects.filter(tool=tool).values_list("text", flat=True).first() or ""


def _check_address(tool: Tool, document: str, *, is_pasted: bool = False) -> None:
    """Raise Invalid unless there is an address, or a document for an OpenAPI tool."""
    if document and tool.kind != ToolKind.OPENAPI:
        raise Invalid(fields={"document": ["Only OpenAPI tools can be made from a document."]})
    if document and tool.discovery_url:
        raise Invalid(fields={"document": ["Enter an address or a document, not both."]})
    if not (tool.discovery_url or document or is_pasted):
        raise Invalid(fields={"discovery_url": ["This field is required."]})


def _validate_options(tool: Tool, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as they are stored. Raises Invalid."""
    own = {name: value for name, value in options.items() if name not in OWNER_OPTIONS}
    checked = dict(source_of(tool.kind).check_options(own))
    chosen = {name: _names(name, options[name]) for name in OWNER_OPTIONS if name in options}
    return checked | chosen


def _names(option: str, given: Any) -> list[str]:
    """Return the names without repetitions. Raises Invalid."""
    if (
        not isinstance(given, list)
        or len(given) > MAX_ASK_FIRST
        or not all(isinstance(name, str) for name in given)
    ):
        text = f'Must be at most {MAX_ASK_FIRST} function names, or ["{EVERY_FUNCTION}"] for all.'
        raise Invalid(fields={f"options.{option}": [text]})
    return list(dict.fromkeys(given))


def _check_named(tool: Tool) -> None:
    """Raise Invalid for names that no function has, lest a typing error asks for nothing."""
    known = {*function_names(tool), EVERY_FUNCTION}
    for option in OWNER_OPTIONS:
        unknown = [name for name in tool.options.get(option, ()) if name not in known]
        if unknown:
            text = f"There is no function named {', '.join(unknown)}."[:1_000]
            raise Invalid(text, fields={f"options.{option}": [text]})


def _leads_elsewhere(tool: Tool, wanted: Tool) -> bool:
    """Whether another service, key or choice is meant than the one last asked."""

    def connection_options(each: Tool) -> tuple[Any, ...]:
        own = {name: value for name, value in each.options.items() if name not in OWNER_OPTIONS}
        key = each.api_key_sealed if each.discovery_url else ""
        return each.discovery_url, key, own

    return connection_options(tool) != connection_options(wanted)


def _ask_again(tool: Tool, wanted: Tool, *, document: str, keeps_key: bool) -> None:
    """Ask the service that is `wanted` now. Raises Invalid, DiscoveryError, UnsafeAddress."""
    if not (wanted.discovery_url or document):
        text = "This tool was made from a pasted document. Paste it again to use other options."
        raise Invalid(text, fields={"document": [text]})
    question = question_of(wanted, document=document)
    # Checked twice: before the key is sent with the question, and for where the answer sends it.
    if keeps_key:
        check_key_stays(tool, question, tool.data)
    with place_for(tool.organization_id):
        found = discover(question)
    if keeps_key:
        check_key_stays(tool, question, found.data)
    _apply_discovery(wanted, found)


def _await_connection(tool: Tool) -> None:
    """Set a tool that its owner must connect before its server says what it offers, without saving.

    Raises UnsafeAddress.
    """
    url = installation_policy().check_url(tool.discovery_url)
    tool.name = tool.name or url.host or NO_NAME
    tool.data, tool.warnings, tool.refreshed_at = {"functions": []}, [], None
    tool.last_error, tool.tried_at = NOT_CONNECTED, timezone.now()


def _apply_discovery(tool: Tool, found: DiscoveryResult) -> None:
    """Set what was found, without saving."""
    tool.name = tool.name or plain_name(found.name)[:200] or NO_NAME
    for name, value in discovery_columns(found).items():
        setattr(tool, name, value)
