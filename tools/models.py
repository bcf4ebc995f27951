"""Tool: a source of functions a tenant described. Built-in tools have no row."""

from django.db import models

from accounts.models import SharedQuerySet, TenantRow, User


class ToolKind(models.TextChoices):
    DISCOVERY = "discovery"
    OPENAPI = "openapi"
    MCP = "mcp"


class Tool(TenantRow):
    """`data` is what discovery last returned; `last_error` why the last refresh failed."""

    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=10, choices=ToolKind.choices, default=ToolKind.DISCOVERY)
    discovery_url = models.TextField()
    api_key_sealed = models.TextField(blank=True, default="", editable=False)
    data = models.JSONField(default=dict, blank=True)
    options = models.JSONField(default=dict, blank=True)
    shared = models.BooleanField(default=False)
    last_error = models.TextField(blank=True, default="")
    refreshed_at = models.DateTimeField(null=True, blank=True)

    objects = SharedQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["organization", "-created_at"], name="tool_org_time")]

    def __str__(self) -> str:
        return self.name
