"""Schedule and run periodic jobs, from one table of names, intervals and functions.

There is no beat process: the sweep of any chat worker enqueues a job that is due (`claim_due_jobs`,
compare-and-set on its row). A worker of the `ingest` queue runs it, and only then imports the
function's module. Each job works in batches and may be run twice.
"""

from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from amber.lib.database.lease import is_older
from amber.lib.database.tenant import across_tenants
from amber.lib.workers.guard import guard_row
from operations.models import PeriodicJob

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Schedule:
    every_seconds: int
    run: str
    """The function's dotted name, so that a process that only schedules jobs does not import
    them."""


PERIODIC_JOBS: dict[str, Schedule] = {
    "digest_turns": Schedule(5, "chats.digest.digest.digest_turns"),
    "embed_waiting_blocks": Schedule(60, "chats.digest.blocks.embed_waiting"),
    "reindex_waiting_blocks": Schedule(60, "chats.digest.blocks.reindex_waiting"),
    "add_person_words": Schedule(60, "chats.digest.message_words.add_person_words"),
    "reindex_waiting_memories": Schedule(60, "memory.facts.words.reindex_waiting"),
    "embed_waiting_memories": Schedule(60, "memory.recall.embedding.embed_waiting"),
    "expire_old_chats": Schedule(3_600, "operations.privacy.retention.expire_old_chats"),
    "remove_expired_chats": Schedule(60, "operations.privacy.retention.remove_expired_chats"),
    "erase_people": Schedule(60, "operations.privacy.person_erasure.erase_people"),
    "erase_organizations": Schedule(
        60, "operations.privacy.organization_erasure.erase_organizations"
    ),
    "erase_stateless": Schedule(60, "chats.turns.stateless.erase_stateless"),
    "forget_idempotency_keys": Schedule(
        600, "accounts.tenancy.idempotency.forget_idempotency_keys"
    ),
    "forget_unused_applications": Schedule(3_600, "accounts.sign_in.applications.forget_unused"),
    "delete_expired_files": Schedule(600, "libraries.files.storage.delete_expired_files"),
    "erase_orphans": Schedule(600, "libraries.files.storage.erase_orphans"),
    "forget_dead_workers": Schedule(600, "operations.maintenance.heartbeats.forget_dead_workers"),
    "tend_indexes": Schedule(60, "libraries.embedding.vector_index.tend_indexes"),
    "survey_libraries": Schedule(60, "libraries.retrieval.survey.survey_libraries"),
    "rewrite_words": Schedule(60, "libraries.chunking.word_forms.rewrite_words"),
    "erase_leftovers": Schedule(3_600, "libraries.ingestion.leftovers.erase_leftovers"),
    "forget_tool_calls": Schedule(3_600, "tools.calling.call_log.forget_tool_calls"),
    "refresh_tools": Schedule(600, "tools.connections.refreshing.refresh_due"),
    "release_leftovers": Schedule(60, "chats.turns.admission.release_leftovers"),
    "deliver_webhooks": Schedule(10, "public_api.webhooks.delivery.deliver_due"),
    "warn_of_refusals": Schedule(60, "providers.budgets.notices.warn_of_refusals"),
    "deliver_mails": Schedule(30, "accounts.mail.delivery.deliver_due"),
    "forget_mails": Schedule(3_600, "accounts.mail.delivery.forget_mails"),
    "forget_webhook_deliveries": Schedule(3_600, "public_api.webhooks.delivery.forget_deliveries"),
    "keep_past_days": Schedule(3_600, "providers.usage.day_sums.keep_past_days"),
    "tend_partitions": Schedule(3_600, "operations.partitions.upkeep.tend_partitions"),
    "forget_usage": Schedule(3_600, "operations.partitions.retention.forget_usage"),
    "forget_counters": Schedule(3_600, "providers.budgets.counters.forget_counters"),
}


def run(name: str) -> None:
    """Run one job. Raises what the job raises.

    A name that this process does not know was enqueued by a newer release, whose workers will run
    it when it is due again.
    """
    if name not in PERIODIC_JOBS:
        logger.warning("unknown_periodic_job", job=name)
        return
    with across_tenants():
        import_string(PERIODIC_JOBS[name].run)()


def claim_due_jobs() -> list[str]:
    """Return the jobs whose interval has passed, and mark them as enqueued: one caller gets each.

    One query, and one for each job that is due: every chat worker asks every few seconds.
    """
    since = dict(PeriodicJob.objects.values_list("name", Now() - F("enqueued_at")))
    due = [
        name
        for name, job in PERIODIC_JOBS.items()
        # abs: a clock that was set back must not keep a job from running.
        if (waited := since.get(name)) is None or abs(waited.total_seconds()) > job.every_seconds
    ]
    new = [PeriodicJob(name=name) for name in due if name not in since]
    PeriodicJob.objects.bulk_create(new, ignore_conflicts=True)
    taken = []
    for name in due:
        with guard_row("enqueue_due_jobs", job=name):
            if _claim_job(name, PERIODIC_JOBS[name].every_seconds):
                taken.append(name)
    return taken


def _claim_job(name: str, every_seconds: int) -> bool:
    due = Q(enqueued_at__isnull=True) | is_older("enqueued_at", timedelta(seconds=every_seconds))
    return bool(PeriodicJob.objects.filter(due, name=name).update(enqueued_at=Now()))
