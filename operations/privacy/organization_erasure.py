"""Delete organizations whose owner closed them, in batches, until nothing is left.

What is to go was hidden when the organization was closed (`operations.privacy.erasure_services`).
Each round goes through everything again, so that a worker that dies loses nothing; the
organization's own row goes last. Files are not left to its cascade, which would leave their bytes.
"""

from collections.abc import Callable
from typing import Final

import structlog
from django.db import transaction

from accounts.models import Organization
from amber.lib.database.batches import delete_batch
from amber.lib.workers.time_slice import TimeSlice
from chats.models import Chat, Turn
from libraries.files.storage import delete_files
from libraries.ingestion.leftovers import erase_leftovers
from libraries.models import Embedding, File, Library
from memory.models import Memory
from operations.privacy.chat_deletion import remove_chat
from operations.privacy.person_erasure import CHATS_AT_ONCE, ERASURE_SECONDS, ROWS_AT_ONCE
from providers.models import UsageRecord
from tools.models import ToolCallRecord

logger = structlog.get_logger(__name__)


def erase_organizations() -> None:
    """Erase the closed organizations, the longest closed first."""
    for organization in Organization.objects.filter(deleted_at__isnull=False).order_by(
        "deleted_at"
    ):
        erase_organization(organization)


def erase_organization(organization: Organization) -> bool:
    """Delete an organization and all it has.

    Return False when something is left for the next round: time ran out, or another worker holds
    some of it.
    """
    time_slice = TimeSlice(ERASURE_SECONDS)
    for step in _STEPS:
        while step(organization):
            if time_slice.is_over():
                return False
    return _finish(organization)


# -- Steps: each does a batch and returns how many rows it took ------------------------------------


def _delete_chats(organization: Organization) -> int:
    chats = Chat.objects.filter(organization=organization)
    ids = list(chats.values_list("pk", flat=True)[:CHATS_AT_ONCE])
    return sum(remove_chat(chat_id) for chat_id in ids)


def _delete_rows(organization: Organization) -> int:
    """Delete rows that are too many for one cascade with the organization."""
    for model in (Turn, Memory, UsageRecord, ToolCallRecord, Embedding):
        rows = model._default_manager.filter(organization=organization)
        if count := delete_batch(rows, at_most=ROWS_AT_ONCE):
            return count
    return 0


def _delete_files(organization: Organization) -> int:
    return delete_files(File.objects.filter(organization=organization))


def _erase_libraries(organization: Organization) -> int:
    """Erase its libraries, which were marked as deleted, as any deleted library is."""
    if Library.objects.filter(organization=organization).exists():
        erase_leftovers()
    return 0


_STEPS: Final[tuple[Callable[[Organization], int], ...]] = (
    _delete_chats,
    _delete_rows,
    _erase_libraries,
    _delete_files,
)


@transaction.atomic
def _finish(organization: Organization) -> bool:
    """Delete the organization's row if nothing is left. The lock keeps new rows out meanwhile."""
    rows = Organization.objects.select_for_update().filter(pk=organization.pk)
    if rows.first() is None:
        return True
    for model in (Chat, Library, File):
        if model._default_manager.filter(organization=organization).exists():
            return False
    organization.delete()
    logger.info("organization_erased", organization_id=str(organization.pk))
    return True
