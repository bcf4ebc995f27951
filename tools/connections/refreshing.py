"""Ask stored tools' services again what they offer, and replace what is stored.

A failure keeps what was known and says why in `last_error`. If a person changed the tool meanwhile,
nothing is written. The refresh fails if the service now wants the key sent elsewhere.
"""

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from amber.lib.errors import AmberError, Unavailable
from tools.calling.recorded import OWNER_OPTIONS
from tools.connections.connected import connection_of
from tools.connections.inspection import InspectionRequest, discover_all, key_origin
from tools.models import Tool
from tools.source import DiscoveryError, DiscoveryResult

logger = structlog.get_logger(__name__)

BATCH: Final = 4
"""Services asked at once: each may take 30 MB while its answer is read."""

BUDGET_SECONDS: Final = 30.0
"""For one run of the periodic job, which shares its worker with documents; the rest waits."""

MAX_ERROR_CHARS: Final = 4_000


def question_of(tool: Tool, *, document: str = "") -> InspectionRequest:
    """Return what to ask the tool's service; `document` is a pasted one. Raises Unavailable."""
    connection = connection_of(tool)
    options = {n: deepcopy(v) for n, v in connection.options.items() if n not in OWNER_OPTIONS}
    if document:
        options["document"] = document
    return InspectionRequest(tool.kind, replace(connection, options=options))


def check_key_stays(tool: Tool, question: InspectionRequest, data: Any) -> None:
    """Raise DiscoveryError if `question` and `data` would send the tool's stored key elsewhere."""
    if not tool.api_key_sealed:
        return
    if key_origin(question, data) != key_origin(question_of(tool), tool.data):
        text = "The key was given for another address. Enter it again."
        raise DiscoveryError(text, fields={"api_key": [text]})


def check_key_is_not_reused(tool: Tool) -> None:
    """Raise DiscoveryError if the tool has a stored key, since it would serve for something else: a
    service's key is no client's secret, which goes to an authorization server."""
    if tool.api_key_sealed:
        text = "The key was given for another way to sign in. Enter it again."
        raise DiscoveryError(text, fields={"api_key": [text]})


def refresh(tools: Sequence[Tool]) -> None:
    """Ask all services at once and write the outcomes, to the rows and to `tools`."""
    asked: list[tuple[Tool, InspectionRequest]] = []
    for tool in tools:
        try:
            asked.append((tool, question_of(tool)))
        except Unavailable as error:
            _write(tool, _failure(error))
    found = discover_all([question for _, question in asked])
    for (tool, question), each in zip(asked, found, strict=True):
        _write(tool, _outcome(tool, question, each))


def refresh_due() -> None:
    """Refresh tools not tried for AMBER_TOOL_REFRESH_HOURS, the longest first, but no pasted ones.

    They count as tried before they are asked: one that crashes the worker would otherwise be first
    again, and no other tool would ever be refreshed.
    """
    ends_at = time.monotonic() + BUDGET_SECONDS
    while time.monotonic() < ends_at:
        due = list(_find_due()[:BATCH])
        if due:
            Tool.objects.filter(pk__in=[tool.pk for tool in due]).update(tried_at=timezone.now())
            refresh(due)
        if len(due) < BATCH:
            return


def discovery_columns(found: DiscoveryResult) -> dict[str, Any]:
    """Return the columns that a successful discovery fills."""
    now = timezone.now()
    return {
        "description": found.description,
        "data": dict(found.data),
        "warnings": list(found.warnings),
        "last_error": "",
        "refreshed_at": now,
        "tried_at": now,
    }


def write_error(error: AmberError) -> str:
    """Return the message and all that is wrong by field as one text."""
    said = [error.message]
    for name, texts in (error.fields or {}).items():
        said += [f"{name}: {text}" for text in texts if text not in error.message]
    return "\n".join(said)[:MAX_ERROR_CHARS]


def _find_due() -> Any:
    least = timezone.now() - timedelta(hours=settings.AMBER_TOOL_REFRESH_HOURS)
    return (
        Tool.objects.filter(Q(tried_at__isnull=True) | Q(tried_at__lt=least))
        .exclude(discovery_url="")
        .order_by(F("tried_at").asc(nulls_first=True), "id")
    )


def _outcome(
    tool: Tool, question: InspectionRequest, found: DiscoveryResult | AmberError
) -> dict[str, Any]:
    if isinstance(found, AmberError):
        return _failure(found)
    try:
        check_key_stays(tool, question, found.data)
    except DiscoveryError as error:
        return _failure(error)
    return discovery_columns(found)


def _failure(error: AmberError) -> dict[str, Any]:
    return {"last_error": write_error(error), "tried_at": timezone.now()}


def _write(tool: Tool, values: dict[str, Any]) -> None:
    """Write the values, unless the tool was deleted or leads elsewhere by now."""
    # The filter compares what was asked with what is stored: a person may have changed it since.
    with transaction.atomic():
        as_asked = Tool.objects.filter(
            pk=tool.pk,
            discovery_url=tool.discovery_url,
            api_key_sealed=tool.api_key_sealed,
            options=tool.options,
        )
        written = as_asked.update(**values, updated_at=timezone.now())
    if not written:
        logger.info("tool_changed_while_refreshed", tool_id=str(tool.pk))
        return
    for name, value in values.items():
        setattr(tool, name, value)
