"""Count what failed in the last day: turns, documents, imports, calls of tools, webhooks, mails. One query.

Each part reads its rows by an index of what failed, at most MOST of them. Links lead to the lists
with the same rows in them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Count, F, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import MailKind, MailStatus, OutgoingMail
from chats.models import Turn
from engine.events import TurnStatus
from libraries.models import Document, DocumentStage, DocumentStatus, Repository
from public_api.models import DeliveryStatus, WebhookDelivery
from tools.models import FAILED_OUTCOMES, CallOutcome, ToolCallRecord

DAY: Final = timedelta(days=1)
MOST: Final = 5_000
"""Rows that are read of each kind; after an outage there may be many more."""

Rows = QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Failures:
    """How many rows of a kind failed for one reason; `is_bounded`: there may be more."""

    kind: str
    reason: str
    count: int
    link: str
    is_bounded: bool = False


@dataclass(frozen=True, slots=True)
class _FailureKind:
    """How one kind of row fails: which rows since a moment, and why each did.

    `chosen` says which failed, in a query and in the address of a list; `lookup` is the reason's name there,
    `reasons` what people call it. `among` are reasons that an address need not say: it names one of them.
    """

    title: Promise
    model: Any
    at: str
    reason: Any
    lookup: str
    chosen: Mapping[str, str]
    reasons: Mapping[str, Promise]
    among: Mapping[str, Any] = field(default_factory=dict)


_TURNS: Final = _FailureKind(
    gettext_lazy("Turns"),
    Turn,
    "ended_at",
    KT("error__code"),
    "error__code",
    {"status__exact": TurnStatus.FAILED},
    {},
)
_DOCUMENTS: Final = _FailureKind(
    gettext_lazy("Documents"),
    Document,
    "ended_at",
    F("stage"),
    "stage__exact",
    {"status__exact": DocumentStatus.FAILED},
    {
        DocumentStage.STORED: gettext_lazy("could not be read"),
        DocumentStage.PARSED: gettext_lazy("could not be cut into chunks"),
        DocumentStage.CHUNKED: gettext_lazy("could not be embedded"),
        DocumentStage.EMBEDDED: gettext_lazy("could not be indexed"),
        DocumentStage.READY: gettext_lazy("could not be embedded anew"),
    },
)
_IMPORTS: Final = _FailureKind(
    gettext_lazy("Git imports"),
    Repository,
    "ended_at",
    F("status"),
    "",
    {"status__exact": DocumentStatus.FAILED},
    {DocumentStatus.FAILED: gettext_lazy("could not be imported")},
)
_TOOLS: Final = _FailureKind(
    gettext_lazy("Calls of tools"),
    ToolCallRecord,
    "created_at",
    F("outcome"),
    "outcome__exact",
    {},
    {
        CallOutcome.REFUSED: gettext_lazy("had arguments that do not fit"),
        CallOutcome.FAILED: gettext_lazy("were answered with an error"),
        CallOutcome.TIMEOUT: gettext_lazy("took too long"),
    },
    among={"outcome__in": FAILED_OUTCOMES},
)
_WEBHOOKS: Final = _FailureKind(
    gettext_lazy("Webhook deliveries"),
    WebhookDelivery,
    "created_at",
    Coalesce(Cast("http_status", TextField()), Value("")),
    "http_status",
    {"status__exact": DeliveryStatus.FAILED},
    {"": gettext_lazy("got no answer")},
)
_MAILS: Final = _FailureKind(
    gettext_lazy("Mails"),
    OutgoingMail,
    "ended_at",
    F("kind"),
    "kind__exact",
    {"status__exact": MailStatus.FAILED},
    {kind.value: gettext_lazy(kind.label) for kind in MailKind},
)
KINDS: Final[Mapping[str, _FailureKind]] = {
    "turn": _TURNS,
    "document": _DOCUMENTS,
    "import": _IMPORTS,
    "tool": _TOOLS,
    "webhook": _WEBHOOKS,
    "mail": _MAILS,
}


def recent_failures(may_see: Callable[[Any], bool]) -> list[Failures]:
    """Return what failed in the last day, most of a kind first; of models that `may_see` allows."""
    since = timezone.now() - DAY
    parts = [_count(name, kind, since) for name, kind in KINDS.items() if may_see(kind.model)]
    if not parts:
        return []
    first, *others = parts
    found = list(first.union(*others, all=True) if others else first)
    order = list(KINDS)
    found.sort(key=lambda row: (order.index(row["failed"]), -row["n"]))
    return [_failures(row, since, found) for row in found]


def _count(name: str, kind: _FailureKind, since: datetime) -> Rows:
    which = {**kind.chosen, **kind.among, f"{kind.at}__gte": since}
    newest = kind.model.objects.filter(**which).order_by().values("pk")[:MOST]
    rows = kind.model.objects.filter(pk__in=newest).order_by()
    said = rows.annotate(
        failed=Value(name, output_field=TextField()), reason=Cast(kind.reason, TextField())
    )
    counted: Rows = said.values("failed", "reason").annotate(n=Count("pk"))
    return counted


def _failures(
    row: Mapping[str, Any], since: datetime, rows: Sequence[Mapping[str, Any]]
) -> Failures:
    kind, reason = KINDS[row["failed"]], row["reason"] or ""
    together = sum(each["n"] for each in rows if each["failed"] == row["failed"])
    return Failures(
        kind=str(kind.title),
        reason=str(kind.reasons.get(reason) or reason or _("unknown")),
        count=row["n"],
        link=_link(kind, reason, since),
        is_bounded=together >= MOST,
    )


def _link(kind: _FailureKind, reason: str, since: datetime) -> str:
    about = kind.model._meta
    chosen: dict[str, str] = {**kind.chosen, f"{kind.at}__gte": since.isoformat(timespec="seconds")}
    if kind.lookup and reason:
        chosen[kind.lookup] = reason
    elif kind.lookup:
        chosen[f"{kind.lookup}__isnull"] = "1"
    return (
        f"{reverse(f'admin:{about.app_label}_{about.model_name}_changelist')}?{urlencode(chosen)}"
    )
