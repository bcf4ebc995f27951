"""Store tools that tenants add, the documents they were made of, and the log of their calls.

Built-in tools have no row.
"""

from typing import Final

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper

from accounts.models import Grant, User
from accounts.principal import Principal
from accounts.tenant_rows import SharedQuerySet, TenantQuerySet, TenantRow


class ToolKind(models.TextChoices):
    DISCOVERY = "discovery"
    OPENAPI = "openapi"
    MCP = "mcp"


class ToolQuerySet(SharedQuerySet):
    """Refuses changes by a key that is bound to one assistant."""

    def _written_by(self, principal: Principal) -> Q:
        return Q(pk__in=[]) if principal.assistant_id else super()._written_by(principal)


class Tool(TenantRow):
    """A service with functions to call. `data` is what discovery last returned.

    `last_error` says why the last refresh failed; `warnings` are discovery's, for whoever added the
    tool. `tried_at` is the last attempt to refresh, `refreshed_at` the last success.
    `discovery_url` is empty for an OpenAPI document that was pasted. `options` depend on the kind,
    except `ask_first`: names of functions that a person must approve before each call, and `trusted`:
    names of those that need no guard against what strangers wrote. `oauth_sealed` holds the tokens of
    a tool that is connected by OAuth (`tools.connections.tokens`).
    """

    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=10, choices=ToolKind.choices, default=ToolKind.DISCOVERY)
    discovery_url = models.TextField(blank=True, default="")
    api_key_sealed = models.TextField(blank=True, default="", editable=False)
    oauth_sealed = models.TextField(blank=True, default="", editable=False)
    data = models.JSONField(default=dict, blank=True)
    options = models.JSONField(default=dict, blank=True)
    shared = models.BooleanField(default=False)
    last_error = models.TextField(blank=True, default="")
    warnings = models.JSONField(default=list, blank=True)
    refreshed_at = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)

    objects = ToolQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "id"], name="tool_of_organization"),
        ]
        indexes = [models.Index(fields=["organization", "-created_at"], name="tool_org_time")]

    def __str__(self) -> str:
        return self.name


class ToolGrant(Grant):
    row_name = "tool"

    # The constraint's index begins with this column.
    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="grants", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tool", "group"], name="one_tool_grant")]


class CallOutcome(models.TextChoices):
    """How a call ended. Nothing was sent if its arguments did not fit (`refused`), or if a person
    `declined` it."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    TIMEOUT = "timeout"
    DECLINED = "declined"


FAILED_OUTCOMES: Final = (CallOutcome.REFUSED, CallOutcome.FAILED, CallOutcome.TIMEOUT)
"""What somebody should look at; a person who declines a call means to."""


class OfToolQuerySet(TenantQuerySet):
    """Shows rows to those who may change their tool: they concern its owner, not its users."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(tool__in=Tool.objects.writable_by(principal))


class PastedDocument(TenantRow):
    """The document that an OpenAPI tool was made of, kept to be read again with other options.

    It is not in the tool's own row, which every turn reads.
    """

    tool = models.OneToOneField(Tool, on_delete=models.CASCADE, related_name="pasted")
    text = models.TextField()

    objects = OfToolQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.tool)


class ToolCallRecord(TenantRow):
    """One call of a tool: how it went and how long it took, but not what was said.

    `detail` tells the tool's owner why it failed. `turn_id` and `assistant_id` are plain ids, since
    this app may not import those models; both are None for a test call (`is_test`).
    """

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="calls")
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    assistant_id = models.UUIDField(null=True, blank=True)
    turn_id = models.UUIDField(null=True, blank=True)
    function = models.CharField(max_length=200)
    call_id = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=CallOutcome.choices)
    detail = models.CharField(max_length=1_000, blank=True, default="")
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    latency_ms = models.PositiveIntegerField()
    is_test = models.BooleanField(default=False)

    objects = OfToolQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["tool", "-created_at"], name="toolcall_tool_time"),
            models.Index(fields=["created_at"], name="toolcall_time"),
            models.Index(
                fields=["created_at"],
                condition=Q(outcome__in=["refused", "failed", "timeout"]),
                name="toolcall_failed",
            ),
            # What operators look for, as the admin compares it.
            models.Index(fields=["turn_id"], name="toolcall_turn"),
            models.Index(Upper("call_id"), name="toolcall_call"),
        ]

    def __str__(self) -> str:
        return f"{self.function}: {self.outcome}"
