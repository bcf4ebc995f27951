"""Deletes organizations whose owner closed them, in batches, until nothing is left.

What is to go was put out of sight with the last member (`operations.privacy.erasure_services`). Each round goes
through everything again, so that a worker that dies loses nothing; the organization's own row goes
last. Rows of files are not left to its cascade, which would leave their bytes.
"""

import time
from collections.abc import Callable
from typing import Final

import structlog
from django.db import transaction

from accounts.models import Organization
from amber.lib.database.batches import delete_batch
from chats.models import Chat, Turn
from libraries.files.storage import delete_files
from libraries.ingestion.leftovers import erase_leftovers
from libraries.models import Embedding, File, Library
from memory.models import Memory
from operations.privacy.chat_deletion import remove_chat
from operations.privacy.person_erasure import CHATS_AT_ONCE, ROWS_AT_ONCE, SLICE_SECONDS
from providers.models import UsageRecord
from tools.models import ToolCallRecord

logger = structlog.get_logger(__name__)


def erase_organizations() -> None:
    """Those that were closed first, first."""
    for organization in Organization.objects.filter(deleted_at__isnull=False).order_by(
        "deleted_at"
    ):
        erase_organization(organization)


def erase_organization(organization: Organization, *, slice_seconds: float = SLICE_SECONDS) -> bool:
    """True when it is gone. False when time ran out, or others are busy with some of it: what is left
    is for the next round."""
    until = time.monotonic() + slice_seconds
    for step in _STEPS:
        while step(organization):
            if time.monotonic() > until:
                return False
    return _finish(organization)


# -- Steps: each does a batch and says how much it did -----------------------------------------------


def _some_chats(organization: Organization) -> int:
    chats = Chat.objects.filter(organization=organization)
    ids = list(chats.values_list("pk", flat=True)[:CHATS_AT_ONCE])
    return sum(remove_chat(chat_id) for chat_id in ids)


def _some_rows(organization: Organization) -> int:
    """What is too much to go with the organization at once."""
    for model in (Turn, Memory, UsageRecord, ToolCallRecord, Embedding):
        rows = model._default_manager.filter(organization=organization)
        if count := delete_batch(rows, at_most=ROWS_AT_ONCE):
            return count
    return 0


def _some_files(organization: Organization) -> int:
    return delete_files(File.objects.filter(organization=organization))


def _all_libraries(organization: Organization) -> int:
    """They were marked; libraries are erased as any deleted one is."""
    if Library.objects.filter(organization=organization).exists():
        erase_leftovers()
    return 0


_STEPS: Final[tuple[Callable[[Organization], int], ...]] = (
    _some_chats,
    _some_rows,
    _all_libraries,
    _some_files,
)


@transaction.atomic
def _finish(organization: Organization) -> bool:
    """The lock keeps new rows out: what is not there now will not come."""
    rows = Organization.objects.select_for_update().filter(pk=organization.pk)
    if rows.first() is None:
        return True
    for model in (Chat, Library, File):
        if model._default_manager.filter(organization=organization).exists():
            return False
    organization.delete()
    logger.info("organization_erased", organization_id=str(organization.pk))
    return True
