"""Count documents by where they are in ingestion, and tell how fast it goes.

    rows = Document.objects.filter(library=library)
    overview = overview_of(rows, library.repositories.all(), ended=count_ended(rows))

Documents that wait or run are read by an index of those alone, the others by the time they ended:
it costs as much as there is to do, and as ended lately, and never as much as there is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Avg, Count, FloatField, IntegerField, Min, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils import timezone

from libraries.models import Document, DocumentStage, DocumentStatus, Repository

RECENT: Final = timedelta(minutes=10)
"""The time over which speed is measured: long enough for large documents, short enough for now."""

DOING: Final[dict[str, str]] = {
    DocumentStage.STORED: "parsing",
    DocumentStage.PARSED: "chunking",
    DocumentStage.CHUNKED: "embedding",
    DocumentStage.EMBEDDED: "indexing",
    # Of a ready document the library's next model is at work.
    DocumentStage.READY: "embedding",
}
"""By the last stage that a running document has finished, what is being done to it."""

STEPS: Final = (
    *("fetching", "queued", "parsing", "chunking", "embedding", "indexing"),
    *("ready", "failed", "cancelled"),
)
TIMED: Final = tuple(stage for stage in DocumentStage.values if stage != DocumentStage.STORED)
LIVE: Final = (DocumentStatus.QUEUED, DocumentStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class IngestionOverview:
    """`steps` are the documents by step, of STEPS; of `fetching` the Git imports under way.

    `put_off` of the queued wait for their provider. Speeds are those of the last RECENT, as are
    `mean_ms`, by the stage that was finished. `oldest_waiting_at` is None when nothing waits.
    """

    steps: dict[str, int] = field(default_factory=dict)
    put_off: int = 0
    documents_per_minute: float = 0
    chunks_per_minute: float = 0
    mean_ms: dict[str, int] = field(default_factory=dict)
    oldest_waiting_at: datetime | None = None


def overview_of(
    documents: QuerySet[Document], imports: QuerySet[Repository], *, ended: dict[str, int]
) -> IngestionOverview:
    """Count these documents. `ended` are those that ended, by status (`count_ended`).

    Three queries.
    """
    now = timezone.now()
    steps = dict.fromkeys(STEPS, 0) | ended
    steps["fetching"] = imports.filter(status__in=LIVE).count()
    put_off, oldest = 0, None
    for row in _count_live(documents, now):
        is_queued = row["status"] == DocumentStatus.QUEUED
        steps["queued" if is_queued else DOING[row["stage"]]] += row["n"]
        if is_queued:
            put_off += row["put_off"]
            oldest = min(oldest or row["since"], row["since"])
    return IngestionOverview(steps, put_off, *_measure(documents, now), oldest)


def count_ended(documents: QuerySet[Document], *, most: int | None = None) -> dict[str, int]:
    """Return how many ended, by status. One query; with `most` one each, that stops there."""
    statuses = [status for status in DocumentStatus.values if status not in LIVE]
    if most is None:
        rows = documents.filter(status__in=statuses).order_by().values_list("status")
        return dict(rows.annotate(n=Count("pk")))
    return {
        status: documents.filter(status=status, ended_at__isnull=False).order_by()[:most].count()
        for status in statuses
    }


def _count_live(documents: QuerySet[Document], now: datetime) -> Iterable[Any]:
    return (
        documents.filter(status__in=LIVE)
        .order_by()
        .values("status", "stage")
        .annotate(
            n=Count("pk"),
            since=Min("created_at"),
            put_off=Count("pk", filter=Q(not_before__gt=now)),
        )
    )


def _measure(documents: QuerySet[Document], now: datetime) -> tuple[float, float, dict[str, int]]:
    """Return documents and chunks a minute, and the mean of each stage's milliseconds. One query."""
    ready = documents.filter(status=DocumentStatus.READY, ended_at__gte=now - RECENT).order_by()
    found = ready.aggregate(
        n=Count("pk"),
        chunks=Sum(Cast(KT("progress__chunks"), IntegerField())),
        **{stage: Avg(Cast(KT(f"timings__{stage}"), FloatField())) for stage in TIMED},
    )
    minutes = RECENT.total_seconds() / 60
    means = {stage: round(found[stage]) for stage in TIMED if found[stage] is not None}
    return found["n"] / minutes, (found["chunks"] or 0) / minutes, means
