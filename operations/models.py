"""Define the rows that operating the platform needs: erasures, live workers, periodic jobs, backups.

The tables keep the names they had while `chats` held these models.
"""

from django.db import models
from django.db.models import Q

from accounts.models import User
from accounts.principal import Principal
from accounts.tenant_rows import TenantQuerySet, TenantRow
from amber.lib.database.rows import Row, minute_of


class ErasureQuerySet(TenantQuerySet):
    """A person sees their own erasures; keys and guests see none."""

    def _seen_by(self, principal: Principal) -> Q:
        if principal.user_id is None or principal.key is not None:
            return Q(pk__in=[])
        return Q(user_id=principal.user_id)


class Erasure(TenantRow):
    """A person's request to delete what they left in an organization; done when `ended_at` is set.

    What is to go is out of sight from the first moment; `operations.privacy.person_erasure`
    deletes it. `account` means everywhere, and at last the account itself, with this row. `doomed`
    holds, by kind, the ids of rows to be deleted that nobody owns any more.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    account = models.BooleanField(default=False)
    doomed = models.JSONField(default=dict, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ErasureQuerySet.as_manager()

    class Meta:
        db_table = "chats_erasure"
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(ended_at__isnull=True), name="erasure_open"
            ),
        ]

    def __str__(self) -> str:
        return f"Erasure of {minute_of(self.created_at)}"


class WorkerHeartbeat(Row):
    """A worker process that consumes a queue; /readyz reads these rows."""

    worker = models.CharField(max_length=120, unique=True)
    queue = models.CharField(max_length=40)
    beat_at = models.DateTimeField()
    held_count = models.PositiveIntegerField(default=0, db_default=0)
    """How often one of its threads held the interpreter for too long
    (`amber.lib.workers.interpreter_watch`)."""
    secret_key_id = models.CharField(max_length=8, default="", db_default="")
    """Which key of AMBER_SECRET_KEYS it encrypts with (`amber.lib.secrets.newest_key_id`)."""

    class Meta:
        db_table = "chats_workerheartbeat"

    def __str__(self) -> str:
        return f"{self.worker} on {self.queue}"


class BackupRecord(Row):
    """A backup that was made at `created_at`, by Amber or, with `elsewhere`, by other means."""

    elsewhere = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="backup_time")]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"


class PeriodicJob(Row):
    """The time a periodic job was last enqueued; `operations.maintenance.periodic_jobs` lists
    them."""

    name = models.CharField(max_length=80, unique=True)
    enqueued_at = models.DateTimeField(null=True, blank=True, db_column="rung_at")

    class Meta:
        db_table = "chats_chore"

    def __str__(self) -> str:
        return self.name
