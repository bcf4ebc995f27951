"""Gather the operators' page of ingestion: steps with counts, speed, who waits. Eight queries.

Whoever calls it has checked the operator's rights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Count, Min
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from amber.lib.operator_pages.cells import write_number
from libraries.ingestion.overview import STEPS, IngestionOverview, count_ended, overview_of
from libraries.models import Document, DocumentStage, DocumentStatus, Repository

MOST_COUNTED: Final = 100_000
"""Ended documents of one status that are counted: an index alone is read for it, 10 ms."""
MOST_WAITING: Final = 20
"""Organizations that are named, those with the longest queue first."""

_TITLES: Final[Mapping[str, Promise]] = {
    "fetching": gettext_lazy("Git imports"),
    "queued": gettext_lazy("Queued"),
    "parsing": gettext_lazy("Being parsed"),
    "chunking": gettext_lazy("Being cut up"),
    "embedding": gettext_lazy("Being embedded"),
    "indexing": gettext_lazy("Being indexed"),
    "ready": gettext_lazy("Ready"),
    "failed": gettext_lazy("Failed"),
    "cancelled": gettext_lazy("Cancelled"),
}
_STAGE_TITLES: Final[Mapping[str, Promise]] = {
    DocumentStage.PARSED: gettext_lazy("Parsing"),
    DocumentStage.CHUNKED: gettext_lazy("Cutting up"),
    DocumentStage.EMBEDDED: gettext_lazy("Embedding"),
    DocumentStage.READY: gettext_lazy("Indexing"),
}
_STATES: Final[Mapping[str, str]] = {"ready": "ok", "failed": "failed"}
_AT_REST: Final = ("queued", "cancelled")
_FILTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "parsing": {"status__exact": "running", "stage__exact": DocumentStage.STORED},
    "chunking": {"status__exact": "running", "stage__exact": DocumentStage.PARSED},
    "embedding": {"status__exact": "running"},
    "indexing": {"status__exact": "running", "stage__exact": DocumentStage.EMBEDDED},
}


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    count: str
    state: str
    link: str


def ingestion_page() -> dict[str, Any]:
    """Return what the template shows, besides what every page of the admin has."""
    ended = count_ended(Document.objects.all(), most=MOST_COUNTED)
    overview = overview_of(Document.objects.all(), Repository.objects.all(), ended=ended)
    oldest = overview.oldest_waiting_at
    return {
        "title": _("Ingestion"),
        "steps": [_step(name, overview) for name in STEPS],
        "overview": overview,
        "documents_per_minute": write_number(overview.documents_per_minute, 1),
        "chunks_per_minute": write_number(overview.chunks_per_minute, 0),
        "oldest": timesince(oldest) if oldest else "",
        "stages": [
            (_STAGE_TITLES[name], write_number(ms)) for name, ms in overview.mean_ms.items()
        ],
        "waiting": _who_waits(),
    }


def _step(name: str, overview: IngestionOverview) -> Step:
    count = overview.steps[name]
    model = "repository" if name == "fetching" else "document"
    chosen = _FILTERS.get(name, {"status__exact": "running" if name == "fetching" else name})
    state = _STATES.get(name, "neutral" if name in _AT_REST else "busy")
    return Step(
        title=str(_TITLES[name]),
        count=write_number(count) + ("+" if count == MOST_COUNTED else ""),
        state=state if count else "neutral",
        link=f"{reverse(f'admin:libraries_{model}_changelist')}?{urlencode(chosen)}",
    )


def _who_waits() -> Sequence[Mapping[str, Any]]:
    """Return the organizations with the longest queues: an index of queued documents is read."""
    rows = Document.objects.filter(status=DocumentStatus.QUEUED).order_by()
    counted = rows.values("organization__name", "organization__slug").annotate(
        n=Count("pk"), since=Min("created_at")
    )
    now = timezone.now()
    return [
        {
            "name": row["organization__name"],
            "slug": row["organization__slug"],
            "count": write_number(row["n"]),
            "since": timesince(row["since"], now),
        }
        for row in counted.order_by("-n")[:MOST_WAITING]
    ]
