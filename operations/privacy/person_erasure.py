"""Delete what people asked to have erased with `me/erase/`, in batches, until nothing is left.

What is to go was hidden when they asked (`operations.privacy.erasure_services`). Each round goes
through everything again, so that a worker that dies loses nothing; an erasure is done (`ended_at`)
only when nothing is left. Ledger rows keep their numbers, without the person.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from accounts.models import ApiKey, Membership, Organization, Role, User
from amber.lib.database.batches import delete_batch
from amber.lib.workers.time_slice import TimeSlice
from assistants.models import Assistant
from chats.models import Chat, ChatMessage, Turn
from libraries.files.storage import delete_files
from libraries.ingestion.leftovers import erase_leftovers
from libraries.models import Document, Embedding, File, Library, Repository
from memory.models import Memory
from operations.models import Erasure
from operations.privacy.chat_deletion import remove_chat
from providers.models import UsageRecord
from tools.models import Tool, ToolCallRecord

logger = structlog.get_logger(__name__)

ERASURE_SECONDS: Final = 30.0
CHATS_AT_ONCE: Final = 20
ROWS_AT_ONCE: Final = 500


class PersonRows:
    """Finds the rows that an erasure is about: a person's in one organization, or everywhere.

    With the account go its personal organizations, and all that is in them.
    """

    def __init__(self, erasure: Erasure) -> None:
        self.erasure = erasure
        self.personal: list[Organization] = []
        if erasure.account:
            owned = Membership.objects.filter(user=erasure.user, role=Role.OWNER)
            personal = owned.filter(organization__personal=True).values("organization")
            self.personal = list(Organization.objects.filter(pk__in=personal))

    def of(self, model: type[Model]) -> Any:
        """Return the person's rows of this model, as a query set.

        Those of guests who came by a key of the person's are among them only if the account goes.
        """
        rows: QuerySet[Any] = model._default_manager.all()
        if self.erasure.account:
            return rows.filter(Q(user=self.erasure.user_id) | Q(organization__in=self.personal))
        mine = rows.filter(user=self.erasure.user_id, organization_id=self.erasure.organization_id)
        has_guests = any(field.name == "guest_id" for field in model._meta.fields)
        return mine.filter(guest_id__isnull=True) if has_guests else mine

    def gone(self, model: type[Chat] | type[File]) -> Any:
        """Return those that are out of sight; with an account all, also what came as it was closed."""
        rows = self.of(model)
        return rows if self.erasure.account else rows.past_expiry()

    def rows_to_delete(self, model: type[Model]) -> QuerySet[Any]:
        """Return the rows that were the person's alone, and have had no owner since they asked."""
        ids = self.erasure.doomed.get(model._meta.model_name, [])
        return model._default_manager.filter(pk__in=ids)


def erase_people() -> None:
    """Continue the open erasures, the oldest first; of those that have just ended delete what came late."""
    for erasure in Erasure.objects.filter(ended_at__isnull=True).order_by("created_at"):
        erase(erasure)
    # A tool that was called before may still have been embedding the fact that it keeps.
    lately = timezone.now() - timedelta(seconds=settings.AMBER_TURN_SECONDS)
    for erasure in Erasure.objects.filter(ended_at__gte=lately, account=False):
        _delete_late_memories(PersonRows(erasure))


def erase(erasure: Erasure, *, slice_seconds: float = ERASURE_SECONDS) -> bool:
    """Delete what an erasure is about. Return False when something is left for the next round: time
    ran out, or another worker holds some of it."""
    time_slice = TimeSlice(slice_seconds)
    person_rows = PersonRows(erasure)
    for step in _STEPS:
        while step(person_rows):
            if time_slice.is_over():
                return False
    return _finish(person_rows)


# -- Steps: each does a batch and returns how many rows it took ------------------------------------


def _delete_late_memories(person_rows: PersonRows) -> int:
    """Delete memories that a turn wrote while it was being stopped."""
    later = person_rows.of(Memory).filter(created_at__gte=person_rows.erasure.created_at)
    said = later.exclude(evidence=[]).values_list("pk", "evidence")
    going = [pk for pk, evidence in said if not _is_still_said(evidence)]
    return int(Memory.objects.filter(pk__in=going).delete()[0])


def _is_still_said(ids: Sequence[UUID]) -> bool:
    unexpired = Chat.objects.before_expiry().filter(messages__in=ids)
    return unexpired.exists()


def _delete_chats(person_rows: PersonRows) -> int:
    ids = list(person_rows.gone(Chat).values_list("pk", flat=True)[:CHATS_AT_ONCE])
    return sum(remove_chat(chat_id) for chat_id in ids)


def _delete_stateless_turns(person_rows: PersonRows) -> int:
    asked_at = person_rows.erasure.created_at
    turns = person_rows.of(Turn).filter(chat__isnull=True, created_at__lte=asked_at)
    return delete_batch(turns, at_most=ROWS_AT_ONCE)


def _delete_files(person_rows: PersonRows) -> int:
    return delete_files(person_rows.gone(File))


def _delete_assistants(person_rows: PersonRows) -> int:
    assistant = person_rows.rows_to_delete(Assistant).first()
    if assistant is None:
        return 0
    for model in (ChatMessage, Chat, Turn):
        if count := _clear_reference(
            model._default_manager.filter(assistant=assistant), "assistant"
        ):
            return count
    assistant.delete()
    return 1


def _delete_tools(person_rows: PersonRows) -> int:
    tool = person_rows.rows_to_delete(Tool).first()
    if tool is None:
        return 0
    if count := delete_batch(ToolCallRecord.objects.filter(tool=tool), at_most=ROWS_AT_ONCE):
        return count
    tool.delete()
    return 1


def _erase_libraries(person_rows: PersonRows) -> int:
    """Erase the person's libraries, which were marked as deleted, as any deleted library is."""
    if person_rows.rows_to_delete(Library).exists():
        erase_leftovers()
    return 0


def _delete_keys(person_rows: PersonRows) -> int:
    keys = person_rows.of(ApiKey).filter(revoked_at__isnull=False)
    used = Turn.objects.filter(api_key__in=list(keys.values_list("pk", flat=True)))
    return _clear_reference(used, "api_key") or delete_batch(keys, at_most=ROWS_AT_ONCE)


def _clear_traces(person_rows: PersonRows) -> int:
    """Take the person off what stays for others, which keeps its numbers and its content."""
    asked_at = person_rows.erasure.created_at
    for model in (UsageRecord, ToolCallRecord, Document, Repository):
        before = person_rows.of(model).filter(
            user=person_rows.erasure.user_id, created_at__lte=asked_at
        )
        if count := _clear_reference(before, "user"):
            return count
    return 0


def _delete_rows_of_personal_organizations(person_rows: PersonRows) -> int:
    """Delete rows that are too many for one cascade with a personal organization."""
    for model in (UsageRecord, Embedding, ToolCallRecord):
        rows = model._default_manager.filter(organization__in=person_rows.personal)
        if count := delete_batch(rows, at_most=ROWS_AT_ONCE):
            return count
    return 0


_STEPS: Final[tuple[Callable[[PersonRows], int], ...]] = (
    _delete_late_memories,
    _delete_chats,
    _delete_stateless_turns,
    _delete_files,
    _delete_assistants,
    _delete_tools,
    _erase_libraries,
    _delete_keys,
    _clear_traces,
    _delete_rows_of_personal_organizations,
)


def _finish(person_rows: PersonRows) -> bool:
    """End the erasure if nothing is left. The lock keeps new rows of an account out meanwhile."""
    erasure = person_rows.erasure
    left = [person_rows.gone(model) for model in (Chat, File)]
    left += [person_rows.rows_to_delete(model) for model in (Assistant, Tool, Library)]
    with transaction.atomic():
        if erasure.account:
            User.objects.select_for_update().filter(pk=erasure.user_id).first()
        if any(rows.exists() for rows in left):
            return False
        if erasure.account:
            for organization in person_rows.personal:
                organization.delete()
            User.objects.filter(pk=erasure.user_id).delete()
        else:
            done = Erasure.objects.filter(pk=erasure.pk)
            done.update(ended_at=timezone.now(), doomed={}, updated_at=timezone.now())
    logger.info("person_erased", erasure_id=str(erasure.pk), account=erasure.account)
    return True


def _clear_reference(rows: QuerySet[Any], field: str) -> int:
    """Set `field` to NULL in a batch of these rows, and return how many it was."""
    ids = list(rows.values_list("pk", flat=True)[:ROWS_AT_ONCE])
    rows.model._default_manager.filter(pk__in=ids).update(**{field: None})
    return len(ids)
