"""Give operators a page of API keys: it shows no hash, and revokes by one service call for each.

Keys are never made here: a key acts for the person who makes it.
"""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts import key_services
from accounts.audit.actors import operator_of
from accounts.models import ApiKey
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import write_state
from amber.lib.operator_pages.columns import Reference


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Revokes keys and never deletes them: the ledger and rotated keys point at them."""

    list_display = (
        "name",
        "state",
        "prefix",
        "belongs_to",
        "last_used_at",
        "expires_at",
    )
    list_select_related = ("organization", "user")
    list_filter = (BY_ORGANIZATION, ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "prefix", "=id", "user__email")
    references: ClassVar[dict[str, Reference]] = {
        "assistant_id": "assistants.Assistant",
        "lineage_id": "accounts.ApiKey",
    }
    fields = (
        "name",
        "prefix",
        "state",
        "user",
        "organization",
        "assistant_id",
        "scopes",
        "origins",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "rotated_from",
        "lineage_id",
        "oauth_client",
    )
    actions = ("revoke",)

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> Any:
        if key.revoked_at:
            return write_state("revoked")
        is_over = key.expires_at is not None and key.expires_at <= timezone.now()
        return write_state("expired" if is_over else "active")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apikey")

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            key_services.revoke_api_key(key, by=operator_of(request))
        messages.success(request, gettext("Revoked."))
