"""Store webhooks and deliveries: addresses that are notified of turns of API keys."""

from datetime import timedelta
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.models import Membership, Role, User
from accounts.principal import Principal
from accounts.tenant_rows import TenantQuerySet, TenantRow
from amber.lib.database.lease import Leased, LeasedQuerySet
from amber.lib.database.rows import second_of
from chats.models import Turn
from engine.events import ENDED_STATUSES, TurnStatus

MAX_URL_CHARS: Final = 2_000
GIVE_UP_AFTER: Final = timedelta(hours=24)
GIVE_UP_FAILURES: Final = 20
"""A webhook that fails for a day, and so many times in a row, is disabled: a weekend's outage of a
quiet one is not, nor is a busy one's bad minute."""


WEBHOOK_EVENTS: Final = [
    (f"turn.{status}", status.value.title()) for status in (*ENDED_STATUSES, TurnStatus.WAITING)
]
"""As choices: how a turn ends, and that it waits for a person."""


class WebhookQuerySet(TenantQuerySet):
    """A person's own webhooks, and for admins those of the whole organization. Keys see none."""

    def _seen_by(self, principal: Principal) -> Q:
        if principal.user_id is None or principal.key is not None:
            return Q(pk__in=[])
        own = Q(user_id=principal.user_id)
        return own | Q(whole_organization=True) if principal.is_admin else own

    def hearing(self, turn: Turn, event: str) -> "WebhookQuerySet":
        """Return those that are to be notified of this."""
        return self.allowed_to_see(turn).filter(events__contains=[event])

    def allowed_to_see(self, turn: Turn) -> "WebhookQuerySet":
        """Return those that may know: of turns of their user's keys, or of all keys while their
        user is an admin. Nobody who has left the organization is told anything."""
        member = Membership.objects.filter(
            organization_id=turn.organization_id, user_id=OuterRef("user_id")
        )
        admin = member.filter(role__in=[Role.OWNER, Role.ADMIN])
        own = Q(Exists(member), user_id=turn.user_id, whole_organization=False)
        return self.filter(
            own | Q(Exists(admin), whole_organization=True),
            organization_id=turn.organization_id,
            disabled_at__isnull=True,
            user__is_active=True,
        )


class Webhook(TenantRow):
    """An address to notify of turns of API keys: its user's, or the whole organization's.

    `old_secret_sealed` signs beside the new one until `old_secret_until`. `failures` counts
    attempts that failed since the last that did not, the first of them at `failing_since`.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200, blank=True, default="")
    url = models.CharField(max_length=MAX_URL_CHARS)
    events: "models.Field[list[str], list[str]]" = ArrayField(
        models.CharField(max_length=20, choices=WEBHOOK_EVENTS)
    )
    include_output = models.BooleanField(default=False)
    whole_organization = models.BooleanField(default=False)
    secret_sealed = models.TextField()
    old_secret_sealed = models.TextField(blank=True, default="")
    old_secret_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=300, blank=True, default="")

    objects = WebhookQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(whole_organization=False) | Q(include_output=False),
                name="webhook_tells_others_texts_to_nobody",
            ),
        ]
        indexes = [models.Index(fields=["organization", "-created_at"], name="webhook_org")]

    def __str__(self) -> str:
        return self.name or self.url.partition("://")[2]

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None


class DeliveryStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDeliveryQuerySet(TenantQuerySet, LeasedQuerySet):  # type: ignore[override]  # as_manager
    """Deliveries, which are visible to whoever sees the webhook."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(webhook__in=Webhook.objects.visible_to(principal))


class WebhookDelivery(TenantRow, Leased):
    """One event on its way to one webhook; `attempt` counts how often it was sent.

    `payload` is what is sent, except texts, which are read when it is sent. `http_status`,
    `latency_ms` and `error` are of the last attempt.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    turn_id = models.UUIDField()
    event = models.CharField(max_length=20, choices=WEBHOOK_EVENTS)
    payload = models.JSONField()
    status = models.CharField(
        max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.QUEUED
    )
    due_at = models.DateTimeField()
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True, default="")

    objects = WebhookDeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(fields=["webhook", "-created_at"], name="delivery_webhook_time"),
            models.Index(fields=["due_at"], condition=Q(status="queued"), name="delivery_due"),
            models.Index(
                fields=["lease_until"], condition=Q(status="running"), name="delivery_leased"
            ),
            models.Index(fields=["created_at"], name="delivery_age"),
            models.Index(
                fields=["created_at"], condition=Q(status="failed"), name="delivery_failed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event}, {second_of(self.created_at)}"
