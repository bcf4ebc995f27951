"""Show on an assistant's page how its answers fare: how turns ended, how quickly, what people said.

Two queries, over the last 30 days.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Aggregate, Count, DurationField, F, Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from assistants.models import Assistant
from chats.inspection.timeline import write_ms
from chats.models import Feedback, FeedbackValue, Turn
from engine.events import ENDED_STATUSES

DAYS: Final = 30


class Median(Aggregate):
    """The middle value, of those that are known."""

    template = "percentile_cont(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"


def draw_quality(assistant: Assistant) -> SafeString:
    """Return the panel of the assistant's page."""
    since = timezone.now() - timedelta(days=DAYS)
    of = {"organization_id": assistant.organization_id, "assistant": assistant}
    context = {
        "days": DAYS,
        "turns": _count_turns(Turn.objects.filter(created_at__gte=since, **of)),
        "feedback": _count_feedback(assistant, since),
        "turns_page": f"{reverse('admin:chats_turn_changelist')}?assistant__id__exact={assistant.pk}",
        "feedback_page": f"{reverse('admin:chats_feedback_changelist')}"
        f"?assistant__id__exact={assistant.pk}",
    }
    return render_to_string("admin/chats/quality.html", context)


def _count_turns(turns: Any) -> dict[str, Any]:
    counts = turns.aggregate(
        all=Count("pk"),
        **{status.value: Count("pk", filter=Q(status=status)) for status in ENDED_STATUSES},
        first=Median(F("first_token_at") - F("created_at"), output_field=DurationField()),
        whole=Median(F("ended_at") - F("created_at"), output_field=DurationField()),
    )
    for name in ("first", "whole"):
        took: timedelta | None = counts[name]
        counts[name] = write_ms(round(took / timedelta(milliseconds=1))) if took else ""
    return dict(counts)


def _count_feedback(assistant: Assistant, since: datetime) -> dict[str, int]:
    given = Feedback.objects.filter(
        organization_id=assistant.organization_id, assistant=assistant, created_at__gte=since
    )
    return given.aggregate(
        up=Count("pk", filter=Q(value=FeedbackValue.UP)),
        down=Count("pk", filter=Q(value=FeedbackValue.DOWN)),
    )
