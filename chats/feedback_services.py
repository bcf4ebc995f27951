"""Keep what people think of answers, and count it for the organization's admins."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from accounts.principal import Principal
from amber.lib.errors import Invalid, Missing
from chats.events.changes import tell_of_chat
from chats.messages import transcript
from chats.messages.wire import FeedbackTotalWire
from chats.models import ChatMessage, Feedback, FeedbackValue
from engine.messages import MessageRole

DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 366


@transaction.atomic(durable=True)
def give_feedback(
    message: ChatMessage, principal: Principal, *, value: str, reason: str = "", comment: str = ""
) -> Feedback:
    """Keep this as what the principal thinks of the answer, instead of what they said before.

    Raises Invalid for what is no answer, and Missing.
    """
    if message.role != MessageRole.ASSISTANT:
        raise Invalid("Feedback can only be given on an answer.")
    chat = transcript.lock_chat(message.chat_id)
    if not ChatMessage.objects.filter(pk=message.pk).exists():
        raise Missing
    feedback, _ = Feedback.objects.update_or_create(
        message=message,
        user=_giver(principal),
        defaults={"value": value, "reason": reason, "comment": comment},
        create_defaults={
            "organization_id": message.organization_id,
            "chat_id": message.chat_id,
            "assistant_id": message.assistant_id,
            "value": value,
            "reason": reason,
            "comment": comment,
        },
    )
    tell_of_chat(chat)
    return feedback


@transaction.atomic(durable=True)
def withdraw_feedback(message: ChatMessage, principal: Principal) -> None:
    """Delete what the principal said about the answer. Idempotent."""
    Feedback.objects.filter(message=message, user=_giver(principal)).delete()
    tell_of_chat(message.chat)


def _giver(principal: Principal) -> Any:
    """Return the user who judges; None for a guest, though a key's guest names the key's user."""
    return None if principal.guest_id is not None else principal.user


@dataclass(frozen=True, slots=True)
class FeedbackFilters:
    """The feedback to list or count; `since` and `until` are days in UTC, both included."""

    since: date | None = None
    until: date | None = None
    equal: Mapping[str, Any] | None = None

    def with_both_dates(self) -> "FeedbackFilters":
        """Return filters with both dates: the last DEFAULT_DAYS if none are given.

        Raises Invalid for more than MAX_DAYS.
        """
        until = self.until or timezone.now().date()
        since = self.since or until - timedelta(days=DEFAULT_DAYS - 1)
        if (until - since).days >= MAX_DAYS:
            raise Invalid(fields={"from": [f"A report covers at most {MAX_DAYS} days."]})
        return FeedbackFilters(since, until, self.equal)

    def applied_to(self, rows: "QuerySet[Feedback]") -> "QuerySet[Feedback]":
        wanted = Q(**dict(self.equal or {}))
        if self.since is not None:
            wanted &= Q(created_at__gte=_midnight(self.since))
        if self.until is not None:
            wanted &= Q(created_at__lt=_midnight(self.until + timedelta(days=1)))
        return rows.filter(wanted)


def count_by_day(rows: "QuerySet[Feedback]") -> list[FeedbackTotalWire]:
    """Return how many were given up and down, by day and assistant, the newest day first.

    One query.
    """
    counted: Any = (
        rows.order_by()
        .annotate(day=TruncDate("created_at", tzinfo=UTC))
        .values("day", "assistant_id", "assistant__name")
        .annotate(
            up=Count("pk", filter=Q(value=FeedbackValue.UP)),
            down=Count("pk", filter=Q(value=FeedbackValue.DOWN)),
        )
        .order_by("-day", "assistant__name", "assistant_id")
    )
    return [
        {
            "day": each["day"].isoformat(),
            "assistant": {"id": str(each["assistant_id"]), "name": each["assistant__name"]}
            if each["assistant_id"]
            else None,
            "up": each["up"],
            "down": each["down"],
        }
        for each in counted
    ]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
