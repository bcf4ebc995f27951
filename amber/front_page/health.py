"""Tell how web, workers, servers and the providers are. Five queries, one of Redis, one of a bucket.

Providers are not called: their last calls in the ledger say how they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Count, Max, Min, OuterRef
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from amber.front_page.states import HealthCheck, State
from amber.lib import redis as amber_redis
from amber.lib.database.lease import QUEUED, RUNNING
from amber.lib.ids import least_id_at
from amber.web.health import REQUIRED_QUEUES, files_answer
from chats.models import Turn
from operations.maintenance.heartbeats import count_workers
from providers.models import EmbeddingModel, LanguageModel, Provider, UsageRecord

DAY: Final = timedelta(days=1)
LOOKED_AT_CALLS: Final = 2_000
"""The newest calls, of at most a day, that say how providers are: a bound on what is read."""
LONG_WAIT: Final = timedelta(seconds=30)
"""A turn that waits for longer waits for workers that are too few or too busy."""
_NEITHER: Final = frozenset({"cancelled", "released", "lost"})
"""Outcomes that say nothing about the provider."""

_POSTGRES_SQL: Final = """
SELECT current_setting('server_version'), pg_database_size(current_database()),
    (SELECT numbackends FROM pg_stat_database WHERE datname = current_database()),
    current_setting('max_connections')::int
"""


def check_platform() -> list[HealthCheck]:
    """HealthCheck the processes and the servers that Amber is made of. Three queries."""
    return [_web(), *_workers(), _postgres(), _redis(), _files()]


def _web() -> HealthCheck:
    told = _("This page was answered by version %(version)s.") % {"version": settings.AMBER_VERSION}
    return HealthCheck(_("Web"), "ok", told)


# -- Workers --------------------------------------------------------------------------------------


def _workers() -> list[HealthCheck]:
    alive = count_workers()
    names = {"chat": _("Chat workers"), "ingest": _("Ingestion workers")}
    waiting = _turns() if alive.get("chat") else None
    return [
        _queue(names[queue], alive.get(queue, 0), waiting if queue == "chat" else None)
        for queue in REQUIRED_QUEUES
    ]


@dataclass(frozen=True, slots=True)
class _LiveTurns:
    running: int = 0
    queued: int = 0
    waited: timedelta = timedelta()


def _turns() -> _LiveTurns:
    """Return how many turns run and wait, and for how long one has waited. One query."""
    rows = Turn.objects.filter(status__in=[QUEUED, RUNNING]).values("status")
    found = {row["status"]: row for row in rows.annotate(n=Count("pk"), since=Min("updated_at"))}
    queued = found.get(QUEUED)
    return _LiveTurns(
        running=found[RUNNING]["n"] if RUNNING in found else 0,
        queued=queued["n"] if queued else 0,
        waited=timezone.now() - queued["since"] if queued else timedelta(),
    )


def _queue(name: str, workers: int, turns: _LiveTurns | None) -> HealthCheck:
    if not workers:
        return HealthCheck(
            name, "failed", _("No workers are running: questions and documents wait.")
        )
    said = [_("%(n)s running.") % {"n": workers}]
    if turns is None:
        return HealthCheck(name, "ok", said[0])
    said.append(
        _("%(running)s turns run, %(queued)s wait.")
        % {"running": turns.running, "queued": turns.queued}
    )
    link = reverse("admin:chats_turn_changelist")
    if turns.waited > LONG_WAIT:
        said.append(
            _("The oldest has waited for %(s)s s.") % {"s": round(turns.waited.total_seconds())}
        )
        return HealthCheck(name, "warning", " ".join(said), f"{link}?status__exact={QUEUED}")
    return HealthCheck(name, "ok", " ".join(said), link)


# -- Servers --------------------------------------------------------------------------------------


def _postgres() -> HealthCheck:
    with connection.cursor() as cursor:
        cursor.execute(_POSTGRES_SQL)
        version, size_bytes, connected, most = cursor.fetchone()
    told = _("Version %(version)s, %(size)s, %(connected)s of %(most)s connections.") % {
        "version": version.split()[0],
        "size": filesizeformat(size_bytes),
        "connected": connected,
        "most": most,
    }
    return HealthCheck("Postgres", "warning" if connected > 0.9 * most else "ok", told)


def _redis() -> HealthCheck:
    try:
        about: Any = amber_redis.client().info()
    except (RedisError, OSError):
        return HealthCheck(
            "Redis", "failed", _("Not responding: no new answers can start or stream.")
        )
    try:
        amber_redis.check_writes()
    except (RedisError, OSError) as error:
        told = _("It refuses to write, so no new answers can start: %(error)s") % {"error": error}
        return HealthCheck("Redis", "failed", told)
    told = _("Version %(version)s, %(memory)s in memory, %(clients)s clients.") % {
        "version": about["redis_version"],
        "memory": filesizeformat(about["used_memory"]),
        "clients": about["connected_clients"],
    }
    return HealthCheck("Redis", "ok", told)


def _files() -> HealthCheck:
    if files_answer():
        return HealthCheck(_("Files"), "ok", _("They can be read and stored."))
    told = _(
        "File storage is not responding: people cannot upload or download, and documents wait."
    )
    return HealthCheck(_("Files"), "failed", told)


# -- Providers ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Calls:
    """The last calls of some models: how many went well and failed, and when the last of each."""

    ok: int = 0
    failed: int = 0
    ok_at: datetime | None = None
    failed_at: datetime | None = None
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, outcome: str, count: int, last_at: datetime) -> None:
        if outcome in _NEITHER:
            return
        if outcome == "ok":
            self.ok += count
            self.ok_at = max(self.ok_at or last_at, last_at)
            return
        self.failed += count
        self.failed_at = max(self.failed_at or last_at, last_at)
        self.codes[outcome] = self.codes.get(outcome, 0) + count

    @property
    def state(self) -> State:
        """Failing: the last call did, and so did most. A failure among many successes is life."""
        if not self.ok and not self.failed:
            return "neutral"
        is_last_failed = self.failed_at is not None and (
            self.ok_at is None or self.failed_at > self.ok_at
        )
        if is_last_failed and self.failed > self.ok:
            return "failed"
        return "warning" if is_last_failed or 10 * self.failed > self.ok else "ok"


def check_providers() -> list[HealthCheck]:
    """Tell of each provider how its last calls went. Two queries."""
    calls = _last_calls()
    providers = Provider.objects.order_by("name").annotate(
        aliases=ArraySubquery(_aliases(LanguageModel)),
        embedding_aliases=ArraySubquery(_aliases(EmbeddingModel)),
    )
    return [
        _provider(each, _add_up(calls, [*each.aliases, *each.embedding_aliases]))
        for each in providers
    ]


def _aliases(model: type[LanguageModel] | type[EmbeddingModel]) -> Any:
    return model.objects.filter(provider=OuterRef("pk")).values("alias")


def _last_calls() -> Sequence[Mapping[str, Any]]:
    day_ago = least_id_at(timezone.now() - DAY)
    newest = UsageRecord.objects.filter(pk__gte=day_ago).order_by("-pk").values("pk")
    rows = UsageRecord.objects.filter(pk__in=newest[:LOOKED_AT_CALLS]).order_by()
    return list(rows.values("model", "outcome").annotate(n=Count("pk"), last_at=Max("created_at")))


def _add_up(calls: Iterable[Mapping[str, Any]], aliases: Sequence[str]) -> _Calls:
    sums = _Calls()
    for row in calls:
        if row["model"] in aliases:
            sums.add(row["outcome"], row["n"], row["last_at"])
    return sums


def _provider(provider: Any, calls: _Calls) -> HealthCheck:
    link = reverse("admin:providers_provider_change", args=[provider.pk])
    if not provider.aliases and not provider.embedding_aliases:
        return HealthCheck(provider.name, "warning", _("No models yet."), link)
    return HealthCheck(provider.name, calls.state, _told_of(calls), link)


def _told_of(calls: _Calls) -> str:
    if not calls.ok and not calls.failed:
        return _("No calls in the last day.")
    said = [
        _("%(ok)s of the last %(n)s calls went well.")
        % {"ok": calls.ok, "n": calls.ok + calls.failed}
    ]
    if calls.failed_at:
        code = max(calls.codes, key=lambda name: calls.codes[name])
        ago = timesince(calls.failed_at, depth=1)
        said.append(
            _("The last failed %(ago)s ago, mostly with %(code)s.") % {"ago": ago, "code": code}
        )
    return " ".join(said)
