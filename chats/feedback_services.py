"""Keep what people think of answers, and count it for the organization's admins."""

from datetime import UTC
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate

from accounts.principal import Principal
from amber.lib.errors import Invalid, Missing
from chats.events.changes import tell_of_chat
from chats.messages import transcript
from chats.messages.wire import FeedbackTotalWire
from chats.models import ChatMessage, Feedback, FeedbackValue
from engine.messages import MessageRole


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
