"""Erase the texts of stateless turns (those without a chat) when their time is up."""

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from chats.models import Turn
from engine.events import LIVE_STATUSES

_TURNS_AT_ONCE: Final = 1_000


def erase_stateless() -> None:
    """Erase what was asked and said in them after AMBER_STATELESS_KEEP_SECONDS: one batch a call."""
    kept = timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)
    old = (
        Turn.objects.filter(chat__isnull=True, ended_at__lt=Now() - kept)
        .filter(Q(input__isnull=False) | Q(output__isnull=False))
        .exclude(status__in=LIVE_STATUSES)
    )
    ids = list(old.values_list("pk", flat=True)[:_TURNS_AT_ONCE])
    Turn.objects.filter(pk__in=ids).update(
        input=None, output=None, options={}, partial_text="", partial_reasoning=""
    )
