"""Find the functions that a turn may use of the tools bound to its assistant.

A tool is used only while it is shared with the organization, belongs to the assistant's creator, or
is granted to a group of whoever asks. The rows are read as they are now, so a changed schema, a
tool that is no longer shared, or another choice of functions takes effect with the next turn.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.tenant_rows import NOBODY
from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Unavailable
from assistants.models import Assistant, AssistantTool
from tools.connections.connected import functions_of
from tools.models import ToolGrant
from tools.protocol import OfferedTool

logger = structlog.get_logger(__name__)


def bound_tools(
    assistant: Assistant, *, user_id: UUID | None = None, in_person: bool = False
) -> Sequence[OfferedTool]:
    """Return the functions in the order of the bindings, then of each tool. One query.

    `user_id` is whose groups count: that of a person, or of a key's user, and None for guests.
    `in_person`: without a key. A tool whose key cannot be read is left out and logged.
    """
    with for_whole_organization():  # also tools that only the assistant's creator sees
        rows = _usable_bindings(
            in_person,
            assistant_id=assistant.pk,
            organization_id=assistant.organization_id,
            owner_id=assistant.user_id or NOBODY,
            user_id=user_id or NOBODY,
        )
    return [function for binding in rows for function in _functions(binding)]


@cache_sql
def _usable_bindings(
    in_person: bool,
    /,
    *,
    assistant_id: UUID,
    organization_id: UUID,
    owner_id: UUID,
    user_id: UUID,
) -> QuerySet[AssistantTool]:
    grants = ToolGrant.objects.filter(tool=OuterRef("tool"))
    return (
        AssistantTool.objects.filter(
            Q(tool__shared=True)
            | Q(tool__user_id=owner_id)
            | Q(Exists(grants.held_by(user_id, in_person=in_person))),
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
