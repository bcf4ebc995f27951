"""Store assistants, their tools and their scene prompts."""

from collections.abc import Sequence

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Grant, User
from accounts.principal import Principal
from accounts.tenant_rows import SharedQuerySet, TenantQuerySet, TenantRow
from libraries.models import Library
from providers.models import AUTO_ALIAS
from tools.models import Tool
from tools.protocol import UntrustedCalls

MAX_QUESTIONS = 6
"""More suggestions would hide the field in which people write their own question."""

_TEMPERATURE = [MinValueValidator(0.0), MaxValueValidator(2.0)]
_TOP_P = [MinValueValidator(0.0), MaxValueValidator(1.0)]


class AssistantQuerySet(SharedQuerySet):
    """Shows a key or guest that is bound to one assistant that one; a guest only while public."""

    def _seen_by(self, principal: Principal) -> Q:
        if principal.guest_id is not None:
            return Q(pk=principal.assistant_id, public=True)
        seen = super()._seen_by(principal)
        return seen & Q(pk=principal.assistant_id) if principal.assistant_id else seen

    def _written_by(self, principal: Principal) -> Q:
        return Q(pk__in=[]) if principal.assistant_id else super()._written_by(principal)


class Assistant(TenantRow):
    """What people configure and talk to. `model` is an alias (`auto`: the default model).

    `total_token_usage` sums the tokens of all its turns. Of a public assistant, `public_origins`
    are the sites it may be used from (none: any), `guest_files` says whether guests may send
    files, and only guest tokens that carry the current `guest_epoch` are valid. `untrusted_calls` says
    what becomes of calls that could do harm once a turn has read what strangers wrote.
    An empty chat shows `greeting` and offers `suggested_questions`.
    `hide_reasoning`: nobody is shown what the model thinks before it answers.
    """

    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80)
    description = models.TextField(blank=True, default="")
    greeting = models.TextField(blank=True, default="", db_default="")
    suggested_questions: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=300), default=list, db_default=[], blank=True
    )
    prompt = models.TextField(blank=True, default="")
    model = models.CharField(max_length=120, default=AUTO_ALIAS, blank=True)
    temperature = models.FloatField(null=True, blank=True, validators=_TEMPERATURE)
    top_p = models.FloatField(null=True, blank=True, validators=_TOP_P)
    library = models.ForeignKey(
        Library, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    tools = models.ManyToManyField(
        Tool, through="AssistantTool", blank=True, related_name="assistants"
    )
    shared = models.BooleanField(default=False)
    public = models.BooleanField(default=False)
    disable_default_prompt = models.BooleanField(default=False)
    disable_web_browsing = models.BooleanField(default=False)
    disable_memory = models.BooleanField(default=False)
    enable_memory_for_assistant_api = models.BooleanField(default=False)
    disabled_builtin_tools: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=64), default=list, blank=True
    )
    untrusted_calls = models.CharField(
        max_length=10,
        choices=UntrustedCalls.choices,
        default=UntrustedCalls.ASK,
        db_default=UntrustedCalls.ASK,
    )
    public_origins: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=300), default=list, blank=True
    )
    guest_files = models.BooleanField(default=False, db_default=False)
    hide_reasoning = models.BooleanField(default=False, db_default=False)
    guest_epoch = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    total_token_usage = models.PositiveBigIntegerField(default=0, editable=False)

    objects = AssistantQuerySet.as_manager()
    seen_by_person = True

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="one_assistant_slug"),
            models.UniqueConstraint(
                fields=["organization", "id"], name="assistant_of_organization"
            ),
        ]
        indexes = [models.Index(fields=["organization", "-created_at"], name="assistant_org_time")]

    def __str__(self) -> str:
        return self.name


class AssistantGrant(Grant):
    row_name = "assistant"

    # The constraint's index begins with this column.
    assistant = models.ForeignKey(
        Assistant, on_delete=models.CASCADE, related_name="grants", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assistant", "group"], name="one_assistant_grant"),
        ]


class OfAssistantQuerySet(TenantQuerySet):
    """Shows rows to those who see their assistant, for change to those who may change it."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(assistant__in=Assistant.objects.visible_to(principal))

    def _written_by(self, principal: Principal) -> Q:
        return Q(assistant__in=Assistant.objects.writable_by(principal))


class AssistantTool(TenantRow):
    """A tool bound to an assistant. `functions` empty means all of the tool's functions."""

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="bindings")
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="bindings")
    functions: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=200), default=list, blank=True
    )

    objects = OfAssistantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assistant", "tool"], name="one_binding"),
        ]

    def __str__(self) -> str:
        return f"{self.assistant_id}: {self.tool_id}"


class ScenePrompt(TenantRow):
    """A prompt with sampling of its own, used when a question is of this kind."""

    assistant = models.ForeignKey(Assistant, on_delete=models.CASCADE, related_name="scene_prompts")
    label = models.CharField(max_length=200)
    prompt = models.TextField(blank=True, default="")
    examples: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.TextField(), default=list, blank=True
    )
    temperature = models.FloatField(null=True, blank=True, validators=_TEMPERATURE)
    top_p = models.FloatField(null=True, blank=True, validators=_TOP_P)

    objects = OfAssistantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assistant", "label"], name="one_scene_label"),
        ]

    def __str__(self) -> str:
        return self.label
