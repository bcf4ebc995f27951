"""Give operators a page of the audit log, and record in it what they open and change on any page."""

from functools import cache
from typing import Any, ClassVar, Final

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.audit.actors import operator_of
from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.models import AuditEvent, Organization
from accounts.principal import ActorKind
from amber.lib.database.rows import Row
from amber.lib.operator_pages import OperatorAct, ReadOnlyAdmin, watch_operators
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import write_name, write_names, write_text
from amber.lib.operator_pages.columns import Reference, reference_of

_ACTORS: Final[dict[str, Any]] = {ActorKind.OPERATOR: _("Operator"), ActorKind.NOBODY: _("Nobody")}


@cache
def _models_by_kind() -> dict[str, str]:
    """Map the kinds of the audit log's targets (`accounts.audit.recording`) to models."""
    found = apps.get_models()
    return {
        model._meta.verbose_name_raw.lower().replace(" ", "_"): model._meta.label
        for model in sorted(found, key=lambda model: issubclass(model, Row))
    }


def model_of_target(event: AuditEvent) -> str:
    """Return the model of what an event was about; empty where its label names it."""
    return "" if event.target_label else _models_by_kind().get(event.target_kind, "")


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Shows the audit logs of all organizations; nobody changes them, here or elsewhere."""

    list_display = (
        "created_at",
        "action",
        "actor",
        "target",
        "organization",
        "address",
        "number",
    )
    list_filter = (BY_ORGANIZATION, "actor_kind", "action")
    list_select_related = ("organization",)
    search_fields = ("=id", "=organization__slug", "=actor_user_id", "=target_id")
    shows_seconds = True
    references: ClassVar[dict[str, Reference]] = {
        "actor_user_id": "accounts.User",
        "actor_key_id": "accounts.ApiKey",
        "target_id": model_of_target,
    }
    fields = (
        "number",
        "organization",
        "created_at",
        "action",
        "actor",
        "address",
        "target",
        "detail",
        "previous_hash",
        "hash",
    )

    @admin.display(description=_("who"))
    def actor(self, event: AuditEvent) -> Any:
        """Name the person, and the key by which they did it."""
        user = reference_of(event, "actor_user_id", self.references)
        note = _ACTORS.get(event.actor_kind, "")
        if user is None:
            return gettext("Erased person") if event.actor_user_id else note
        key = event.actor_key_id and reference_of(event, "actor_key_id", self.references)
        return write_names(write_name(user), key or note)

    @admin.display(description=_("to what"))
    def target(self, event: AuditEvent) -> Any:
        """Name it as it was called then, or as it is called now."""
        model = _models_by_kind().get(event.target_kind)
        name = str(apps.get_model(model)._meta.verbose_name) if model else event.target_kind
        kind = capfirst(gettext(name))
        if event.target_label:
            return write_names(write_text(event.target_label), kind)
        found = reference_of(event, "target_id", self.references)
        return write_names(write_name(found), kind) if found else kind


_ACTIONS: Final[dict[OperatorAct, AuditAction]] = {
    "read": AuditAction.OPERATOR_READ,
    "added": AuditAction.OPERATOR_ADDED,
    "changed": AuditAction.OPERATOR_CHANGED,
    "deleted": AuditAction.OPERATOR_DELETED,
}


def _record_operator(request: HttpRequest, act: OperatorAct, row: Model, fields: list[str]) -> None:
    """Tell the log of the row's organization; what belongs to none has no log."""
    is_tenant = isinstance(row, Organization)
    organization_id = row.pk if is_tenant else getattr(row, "organization_id", None)
    if organization_id is not None:
        by, detail = operator_of(request), {"fields": fields} if fields else None
        record(by, _ACTIONS[act], row, organization_id=organization_id, detail=detail)


watch_operators(_record_operator)
