"""Define chats, their tree of messages, the turns that answer them, and blocks of old messages."""

from typing import Final, Self
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Cast, Coalesce, Now
from django.utils.functional import cached_property
from pgvector.django import HalfVectorField

from accounts.models import ApiKey, User, made_with
from accounts.principal import Principal
from accounts.tenant_rows import OwnedQuerySet, TenantQuerySet, TenantRow
from amber.lib.database.lease import Leased, LeasedQuerySet
from amber.lib.database.referenced_rows import ReferenceKey
from amber.lib.database.rows import ExpiringQuerySet, is_before_expiry, minute_of, second_of
from amber.lib.search.tsvector import TokenVectorField
from amber.lib.search.vector_arrays import VectorArrayField
from assistants.models import Assistant, AssistantGrant, ScenePrompt
from engine.events import LIVE_STATUSES, TurnStatus
from engine.messages import MessageRole
from engine.provider.finish_reasons import MAX_REASON_CHARS
from libraries.models import File


class ChatOwner(models.TextChoices):
    USER = "user"
    API = "api"
    GUEST = "guest"


class ChatQuerySet(OwnedQuerySet, ExpiringQuerySet):  # type: ignore[override]  # as_manager
    """A key bound to an assistant sees only the chats with that assistant which it began itself.

    A chat that has expired is absent at once, although its rows are deleted in batches.
    """

    def _seen_by(self, principal: Principal) -> Q:
        seen = super()._seen_by(principal) & is_before_expiry()
        if principal.assistant_id:
            seen &= Q(assistant_id=principal.assistant_id) & made_with(principal)
        return seen

    def annotate_grants(self) -> Self:
        """Read `has_granted_assistant` of each chat with its row.

        Guests have no groups. Admins have the grants of all groups in person alone: not in chats
        that were made with a key.
        """
        grants = AssistantGrant.objects.filter(assistant=OuterRef("assistant"))
        in_group = grants.held_by(OuterRef(OuterRef("user_id")))
        in_person = grants.held_by(OuterRef(OuterRef("user_id")), in_person=True)
        return self.annotate(
            has_granted_assistant=Q(guest_id__isnull=True)
            & (Q(Exists(in_group)) | Q(Exists(in_person), owner=ChatOwner.USER))
        )

    def annotate_live_turns(self) -> Self:
        """Read `live_turn_id` of each chat with its row."""
        live = Turn.objects.filter(chat=OuterRef("pk"), status__in=LIVE_STATUSES)
        return self.annotate(live_turn_id=Subquery(live.values("pk")[:1]))


class Chat(TenantRow):
    """A conversation of one user (or guest). `prompt` replaces the assistant's prompt here.

    `active_leaf` ends the branch that is shown. `pinned` and `archived` are where lists show it: they
    are no activity, and leave `updated_at` as it is. `api_key` is the key it was begun with. An imported
    chat is known again by `import_source`, the hash of where it came from and who took it in, and
    `import_hash`, that of what was said in it.
    """

    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    api_key = models.ForeignKey(
        ApiKey, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    owner = models.CharField(max_length=5, choices=ChatOwner.choices, default=ChatOwner.USER)
    guest_id = models.CharField(max_length=200, null=True, blank=True)
    name = models.CharField(max_length=255, blank=True, default="")
    assistant = ReferenceKey(
        Assistant, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    prompt = models.TextField(null=True, blank=True)
    pinned_scene = models.ForeignKey(
        ScenePrompt, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    active_leaf = models.ForeignKey(
        "ChatMessage", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    pinned = models.BooleanField(default=False, db_default=False)
    archived = models.BooleanField(default=False, db_default=False)
    expired_at = models.DateTimeField(null=True, blank=True)
    import_source = models.CharField(max_length=64, null=True, blank=True, editable=False)
    import_hash = models.CharField(max_length=64, null=True, blank=True, editable=False)

    objects = ChatQuerySet.as_manager()
    seen_by_person = True

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "import_source", "import_hash"],
                condition=Q(import_source__isnull=False),
                name="one_chat_per_import",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(guest_id__isnull=False),
                name="chat_of_somebody",
            ),
        ]
        indexes = [
            models.Index(
                fields=["organization", "user", "owner", "-created_at"], name="chat_user_time"
            ),
            models.Index(
                fields=["organization", "user", "owner", "-updated_at"], name="chat_user_activity"
            ),
            models.Index(
                fields=["organization", "guest_id", "-created_at"],
                condition=Q(guest_id__isnull=False),
                name="chat_guest_time",
            ),
            models.Index(fields=["expired_at"], name="chat_expiry"),
            models.Index(fields=["organization", "updated_at"], name="chat_org_activity"),
        ]

    def __str__(self) -> str:
        return self.name or f"Chat of {minute_of(self.created_at)}"

    @property
    def can_be_asked(self) -> bool:
        """Whether a question that names no assistant can be answered by the chat's own.

        Costs a query if the assistant was not selected, and one if only a grant can be the reason
        and the chat was read without `annotate_grants`.
        """
        assistant: Assistant | None = self.assistant
        if assistant is None:
            return False
        if self.user_id is None:
            return assistant.public
        is_open = assistant.shared or assistant.user_id == self.user_id
        return is_open or self.has_granted_assistant

    @cached_property
    def has_granted_assistant(self) -> bool:
        """Whether the assistant is granted to a group that counts for the chat's user."""
        rows = Chat.objects.filter(pk=self.pk).annotate_grants()
        return bool(rows.values_list("has_granted_assistant", flat=True).first())

    @cached_property
    def live_turn_id(self) -> UUID | None:
        """The turn that is queued, running or waiting in the chat. One query, unless the chat was
        read with `annotate_live_turns`."""
        live = Turn.objects.live().filter(chat=self.pk)
        return live.values_list("pk", flat=True).first()


ROLE_CHOICES: Final = [(role.value, role.name.replace("_", " ").title()) for role in MessageRole]


class OfChatQuerySet(TenantQuerySet):
    """Rows are seen by everybody who sees their chat."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(chat__in=Chat.objects.visible_to(principal))


class ChatMessageQuerySet(OfChatQuerySet):
    """Guests do not see what is hidden."""

    def _seen_by(self, principal: Principal) -> Q:
        seen = super()._seen_by(principal)
        return seen if principal.guest_id is None else seen & Q(hidden=False)


MAX_MODEL_CHARS: Final = 200


class ChatMessage(TenantRow):
    """One message, written once and whole. `parent` gives the order; `position` is the depth.

    `tool_call` {id, name, arguments, reply_id} is set on roles tool_call and tool.
    `provider_fields` are what the model sent besides, to be sent back to it
    (`engine.provider_fields`): of a reply with several calls the first call's row has those of the
    whole reply. They are shown to nobody. `reasoning` is what the model thought before it said this,
    for people, unless the assistant hides it. `turn` is the turn that wrote the message, or, for a
    question, the first turn that answered it. `opening` is the last of the system messages that
    open this path (None: it opens with something else), so that they are found without walking to
    the root. `model` names the model that wrote an imported answer. `words_version` is 0 where an older
    release wrote `search`, without the person's word (`chats.messages.search`).
    """

    # Every index costs a write with each message. Other indexes begin with `chat` and `turn`, and those of `file`
    # and `opening` are partial: most messages have neither.
    chat = models.ForeignKey(
        Chat, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    opening = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    position = models.PositiveIntegerField(default=0)
    role = models.CharField(max_length=12, choices=ROLE_CHOICES)
    content = models.TextField(blank=True, default="")
    reasoning = models.TextField(blank=True, default="", db_default="")
    assistant = ReferenceKey(
        Assistant, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    tool_call = models.JSONField(null=True, blank=True)
    provider_fields = models.JSONField(null=True, blank=True, editable=False)
    file = models.ForeignKey(
        File, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    hidden = models.BooleanField(default=False)
    citations = models.JSONField(default=list, blank=True)
    model = models.CharField(max_length=MAX_MODEL_CHARS, blank=True, default="", db_default="")
    turn = models.ForeignKey(
        "Turn",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="messages",
        db_index=False,
    )
    step = models.PositiveIntegerField(null=True, blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    total_tokens = models.PositiveIntegerField(default=0)
    search = TokenVectorField(null=True)
    words_version = models.PositiveSmallIntegerField(default=0, db_default=0, editable=False)

    participant = ""
    """The name of the person who said it, if a stateless turn's client gives one; never stored."""

    objects = ChatMessageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(role__in=["tool_call", "tool"]) | Q(tool_call__isnull=False),
                name="tool_rows_name_their_call",
            ),
        ]
        indexes = [
            models.Index(fields=["chat", "position"], name="message_chat_position"),
            models.Index(fields=["turn", "step"], name="message_turn_step"),
            models.Index(fields=["file"], condition=Q(file__isnull=False), name="message_file"),
            models.Index(
                fields=["opening"], condition=Q(opening__isnull=False), name="message_opening"
            ),
            GinIndex(fields=["search"], name="message_search", fastupdate=False),
            models.Index(fields=["id"], condition=Q(words_version=0), name="message_words_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()}, {second_of(self.created_at)}"


class FeedbackValue(models.TextChoices):
    UP = "up"
    DOWN = "down"


class FeedbackReason(models.TextChoices):
    CORRECT = "correct", "It is correct"
    CLEAR = "clear", "It is easy to understand"
    COMPLETE = "complete", "It covers everything"
    WRONG = "wrong", "It is wrong"
    INCOMPLETE = "incomplete", "Something is missing"
    OFF_TOPIC = "off_topic", "It does not answer the question"
    SOURCES = "sources", "Its sources are missing, or do not say so"
    STYLE = "style", "It is badly written, or in the wrong language"
    HARMFUL = "harmful", "It is harmful or offensive"
    OTHER = "other", "Something else"


REASONS: Final = {
    FeedbackValue.UP: (
        FeedbackReason.CORRECT,
        FeedbackReason.CLEAR,
        FeedbackReason.COMPLETE,
        FeedbackReason.OTHER,
    ),
    FeedbackValue.DOWN: (
        FeedbackReason.WRONG,
        FeedbackReason.INCOMPLETE,
        FeedbackReason.OFF_TOPIC,
        FeedbackReason.SOURCES,
        FeedbackReason.STYLE,
        FeedbackReason.HARMFUL,
        FeedbackReason.OTHER,
    ),
}
"""The reasons that fit each value."""


class FeedbackQuerySet(OfChatQuerySet):
    """Feedback is seen by whoever gave it, and by the organization's admins, who see nothing else
    of the chat. Only who gave it changes it."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q() if principal.is_admin else super()._seen_by(principal)

    def _written_by(self, principal: Principal) -> Q:
        return super()._seen_by(principal)


class Feedback(TenantRow):
    """What somebody thinks of an answer. It goes with the answer, and so with the person.

    `assistant` is the one that answered, so that feedback is counted without reading messages.
    """

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="+")
    message = models.ForeignKey(ChatMessage, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    assistant = ReferenceKey(
        Assistant, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    value = models.CharField(max_length=4, choices=FeedbackValue.choices)
    reason = models.CharField(max_length=10, choices=FeedbackReason.choices, blank=True, default="")
    comment = models.TextField(blank=True, default="")

    objects = FeedbackQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["message", "user"], name="one_feedback_per_user"),
            models.UniqueConstraint(
                fields=["message"], condition=Q(user__isnull=True), name="one_feedback_per_guest"
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "-id"], name="feedback_org_time"),
        ]

    def __str__(self) -> str:
        return f"Thumb {self.value}, {minute_of(self.created_at)}"


STATUS_CHOICES: Final = tuple((status.value, status.value.title()) for status in TurnStatus)


def _turn_in_sight() -> Q:
    return Q(chat__isnull=True) | is_before_expiry("chat__")


class TurnQuerySet(OwnedQuerySet, LeasedQuerySet):  # type: ignore[override]  # as_manager
    """Turns of a chat are seen as long as the chat is.

    A key bound to an assistant sees that assistant's turns in its chats, and those it started
    itself.
    """

    def _seen_by(self, principal: Principal) -> Q:
        seen = super()._seen_by(principal) & _turn_in_sight()
        if principal.assistant_id:
            seen &= Q(assistant_id=principal.assistant_id)
        if principal.is_bound_key:
            in_its_chat = Q(chat__in=Chat.objects.visible_to(principal))
            seen &= in_its_chat | Q(chat__isnull=True) & made_with(principal)
        return seen

    def in_sight(self) -> Self:
        """Return the turns whose chat, if they are in one, is not being deleted."""
        return self.filter(_turn_in_sight())

    def live(self) -> Self:
        return self.filter(status__in=LIVE_STATUSES)

    def annotate_question_siblings(self) -> Self:
        """Read `question_sibling_ids` of each turn with its row, oldest first."""
        by_age = ChatMessage.objects.order_by("created_at", "pk").values("pk")
        roots = by_age.filter(chat=OuterRef("chat"), parent__isnull=True)
        children = by_age.filter(parent=OuterRef("question__parent"))
        is_root = When(question__parent__isnull=True, then=ArraySubquery(roots))
        return self.annotate(question_sibling_ids=Case(is_root, default=ArraySubquery(children)))

    def annotate_unwanted(self) -> Self:
        """Add `is_unwanted` to each turn: it should be cancelled.

        Somebody asked for that, or nobody is left to read the answer: no chat keeps it, and its key
        or its user is no longer valid.
        """
        is_lost = Q(
            Q(api_key__revoked_at__isnull=False)
            | Q(api_key__expires_at__lte=Now())
            | Q(user__is_active=False),
            chat__isnull=True,
        )
        return self.annotate(is_unwanted=Q(cancel_requested_at__isnull=False) | is_lost)


class Turn(TenantRow, Leased):
    """One question and all that answers it: in a chat, or stateless over `input`.

    `input` is {"messages": [{"role", "content", "name"?, "tool_call"?, "file_id"?,
    "provider_fields"?}]}, oldest first; `output` what a stateless turn wrote, in the form of
    REST, and beside it the `provider_fields` by message id. `options` is what the caller asked for
    beyond that (`chats.context.call_options`). `seq` is the number of the last event that the
    stored state includes. `step` counts stored replies of the model. `tip` is where the next
    message is appended. `partial_text` is the text of the step under way, as far as it was shown;
    it becomes a message when the turn ends, and `partial_reasoning` goes with it. `is_budgeted` says
    that budgets apply, which reserve something for the turn while it lives (`chats.turns.admission`).
    `trace_parent` names the span that asked; the worker's spans hang below it (`chats.turns.attempt_spans`).
    """

    # Other indexes begin with these two. Each state that a turn goes through writes all indexes.
    organization = models.ForeignKey(
        "accounts.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    chat = models.ForeignKey(
        Chat,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="turns",
        db_index=False,
    )
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    api_key = models.ForeignKey(
        ApiKey, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    guest_id = models.CharField(max_length=200, null=True, blank=True)
    assistant = ReferenceKey(
        Assistant, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    question = models.ForeignKey(
        ChatMessage, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    tip = models.ForeignKey(
        ChatMessage, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    input = models.JSONField(null=True, blank=True)
    options = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=STATUS_CHOICES, default=TurnStatus.QUEUED)
    seq = models.PositiveBigIntegerField(default=0)
    step = models.PositiveIntegerField(default=0)
    partial_text = models.TextField(blank=True, default="")
    partial_reasoning = models.TextField(blank=True, default="", db_default="")
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    finish_reason = models.CharField(max_length=MAX_REASON_CHARS, blank=True, default="")
    manifest = models.JSONField(null=True, blank=True)
    waiting_calls = models.JSONField(default=list, blank=True)
    output = models.JSONField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    digest_at = models.DateTimeField(null=True, blank=True)
    is_budgeted = models.BooleanField(default=False, db_default=False)
    trace_parent = models.CharField(
        max_length=55, blank=True, default="", db_default="", editable=False
    )

    question_sibling_ids: list[UUID]
    """Of `annotate_question_siblings`."""
    tip_children: list[UUID] | None = None
    """What follows the tip already, oldest first, for whoever has the chat's lock; None: not read."""

    objects = TurnQuerySet.as_manager()
    TENANT_FIELDS = ("organization_id", "user_id", "guest_id")
    """What `amber.lib.database.tenant.Tenant` is made of, in its order."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["chat"],
                condition=Q(status__in=["queued", "running", "waiting"]),
                name="one_live_turn_per_chat",
            ),
            models.CheckConstraint(
                condition=Q(chat__isnull=True) | Q(input__isnull=True),
                name="turn_of_chat_or_input",
            ),
        ]
        indexes = [
            models.Index(fields=["chat", "-created_at"], name="turn_chat_time"),
            models.Index(fields=["organization", "-created_at"], name="turn_org_time"),
            models.Index(fields=["api_key"], condition=Q(api_key__isnull=False), name="turn_key"),
            models.Index(
                fields=["status", "lease_until"],
                condition=Q(status__in=["queued", "running"]),
                name="turn_live",
            ),
            # Claims (chats.turns.claims): whose turns wait, and how many of an organization's run.
            models.Index(
                F("organization"),
                Coalesce(F("guest_id"), Cast("user_id", models.TextField()), Value("")),
                F("created_at"),
                condition=Q(status="queued"),
                name="turn_waiting",
            ),
            models.Index(
                fields=["organization"], condition=Q(status="running"), name="turn_running"
            ),
            models.Index(
                fields=["created_at"], condition=Q(status="queued"), name="turn_queue_age"
            ),
            models.Index(
                fields=["digest_at"], condition=Q(digest_at__isnull=False), name="turn_digest"
            ),
            models.Index(fields=["ended_at"], condition=Q(status="failed"), name="turn_failed"),
        ]

    def __str__(self) -> str:
        return f"Turn of {second_of(self.created_at)}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE_STATUSES

    @property
    def group_user_id(self) -> UUID | None:
        """The user whose groups count for the turn; None for guests, who are in none."""
        return self.user_id if self.guest_id is None else None

    @property
    def is_in_person(self) -> bool:
        """Whether its user asks without a key, and so administers if they are an admin."""
        return self.api_key_id is None


class MessageBlock(TenantRow):
    """A sealed run of old messages. `hash` covers the previous one's, so branches share blocks.

    `tokens_before` counts what the path's earlier blocks hold. `embedding_model_id` is null until
    the block has a vector. `pieces` are the stretches of its text that are ranked and shown, six
    numbers each (`engine.context.pieces.MessagePiece`); `piece_vectors` are their vectors in that
    order, which the built-in embedder makes none of. A word's positions in `search` are the pieces
    that have it, from 1. `index_version` says which release indexed it (`chats.digest.blocks`).
    """

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="blocks")
    previous = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    hash = models.CharField(max_length=64)
    full_content = models.TextField()
    messages = ArrayField(models.UUIDField())
    first_message = models.ForeignKey(ChatMessage, on_delete=models.CASCADE, related_name="+")
    last_message = models.ForeignKey(ChatMessage, on_delete=models.CASCADE, related_name="+")
    first_position = models.PositiveIntegerField()
    last_position = models.PositiveIntegerField()
    from_at = models.DateTimeField()
    until_at = models.DateTimeField()
    tokens = models.PositiveIntegerField()
    tokens_before = models.PositiveBigIntegerField()
    on_active_path = models.BooleanField(default=True)
    vector = HalfVectorField(null=True)
    embedding_model_id = models.UUIDField(null=True)
    search = TokenVectorField(null=True)
    pieces = ArrayField(models.BigIntegerField(), null=True)
    piece_vectors = VectorArrayField(HalfVectorField(), null=True)
    index_version = models.PositiveSmallIntegerField(default=0, db_default=0)

    objects = OfChatQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "hash"], name="one_block_per_hash"),
        ]
        indexes = [
            models.Index(
                fields=["chat", "last_position"],
                condition=Q(on_active_path=True),
                name="block_active_path",
            ),
            models.Index(fields=["embedding_model_id"], name="block_embedded_by"),
            models.Index(fields=["index_version"], name="block_index_version"),
            GinIndex(fields=["search"], name="block_search", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"Messages {self.first_position} to {self.last_position}"
