"""Define memories: durable facts about people, with the messages they rest on."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField

from accounts.models import Membership, Organization, User
from accounts.principal import Principal
from accounts.tenant_rows import OwnedQuerySet, TenantRow
from amber.lib.database.rows import minute_of
from amber.lib.search.tsvector import TokenVectorField


class MemoryQuerySet(OwnedQuerySet):
    """Memories, seen by their owners; a key of one assistant sees only those kept for it alone."""

    def _seen_by(self, principal: Principal) -> Q:
        seen = super()._seen_by(principal)
        if principal.assistant_id and principal.guest_id is None:
            seen &= Q(assistant_id=principal.assistant_id)
        return seen


class Memory(TenantRow):
    """A fact about one user, or one guest of an organization.

    A superseded one keeps its row: `valid_until` ends it, `superseded_by` says by what. `evidence`
    holds ids of messages and `assistant_id` an assistant's; both are plain ids, since those tables
    belong to packages above this one.
    """

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    guest_id = models.CharField(max_length=200, null=True, blank=True)
    assistant_id = models.UUIDField(null=True, blank=True)
    content = models.TextField()
    content_md5 = models.CharField(max_length=32)
    vector = HalfVectorField(null=True)
    embedding_model_id = models.UUIDField(null=True)
    search = TokenVectorField(null=True)
    words_version = models.PositiveSmallIntegerField(default=0, db_default=0)
    evidence = ArrayField(models.UUIDField(), default=list, blank=True)
    confidence = models.FloatField(default=1.0)
    valid_from = models.DateTimeField()
    valid_until = models.DateTimeField(null=True, blank=True)
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user", "guest_id", "assistant_id", "content_md5"],
                condition=Q(valid_until__isnull=True),
                nulls_distinct=False,
                name="one_valid_memory",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(guest_id__isnull=False),
                name="memory_of_somebody",
            ),
            models.CheckConstraint(
                condition=Q(confidence__gte=0, confidence__lte=1), name="confidence_is_share"
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "user"], name="memory_user"),
            models.Index(
                fields=["organization", "guest_id"],
                condition=Q(guest_id__isnull=False),
                name="memory_guest",
            ),
            GinIndex(fields=["search"], name="memory_search", fastupdate=False),
            models.Index(fields=["words_version"], name="memory_words_version"),
            models.Index(
                fields=["embedding_model_id"],
                condition=Q(valid_until__isnull=True),
                name="memory_embedded_by",
            ),
        ]

    def __str__(self) -> str:
        return f"Memory of {minute_of(self.valid_from)}"


class PersonMemories(Membership):
    """A member, for the page on which operators count what is remembered of them."""

    class Meta:
        proxy = True
        verbose_name = verbose_name_plural = "memories of people"


class OrganizationMemories(Organization):
    """An organization, for the page on which operators count what is remembered in it."""

    class Meta:
        proxy = True
        verbose_name = verbose_name_plural = "memories of organizations"
