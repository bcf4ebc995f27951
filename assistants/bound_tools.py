"""Find the functions that a turn may use of the tools bound to its assistant.

A tool is used only while it is shared with the organization or belongs to the assistant's creator.
The rows are read as they are now, so a changed schema, a tool that is no longer shared, or another
choice of functions takes effect with the next turn.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog
from django.db.models import Q, QuerySet

from amber.lib.database.cached_sql import cache_sql
from amber.lib.errors import Unavailable
from assistants.models import Assistant, AssistantTool
from tools.connections.connected import functions_of
from tools.protocol import OfferedTool

logger = structlog.get_logger(__name__)

_NOBODY: Final = UUID(int=0)
"""Stands for a NULL owner, so that no private tool matches it: NULL in SQL equals nothing."""


def bound_tools(assistant: Assistant) -> Sequence[OfferedTool]:
    """Return the functions in the order of the bindings, then of each tool. One query.

    A tool whose key cannot be read is left out and logged.
    """
    rows = _usable_bindings(
        assistant_id=assistant.pk,
        organization_id=assistant.organization_id,
        owner_id=assistant.user_id or _NOBODY,
    )
    return [function for binding in rows for function in _functions(binding)]


@cache_sql
def _usable_bindings(
    *, assistant_id: UUID, organization_id: UUID, owner_id: UUID
) -> QuerySet[AssistantTool]:
    return (
        AssistantTool.objects.filter(
            Q(tool__shared=True) | Q(tool__user_id=owner_id),
            assistant=assistant_id,
            tool__organization_id=organization_id,
        )
        .select_related("tool")
        .order_by("created_at", "id")
    )


def _functions(binding: AssistantTool) -> Sequence[OfferedTool]:
    try:
        return functions_of(binding.tool, chosen=binding.functions)
    except Unavailable:
        logger.exception("bound_tool_left_out", tool_id=str(binding.tool_id))
        return ()
