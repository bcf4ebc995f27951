"""Give operators a page of the mails that Amber sends, never of what is in them."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.mail.delivery import send_again
from accounts.mail.outbox import enqueue_mails
from accounts.models import OutgoingMail
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import write_names, write_state


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin):
    """Shows which mails are on their way, were sent, or failed and why; never what is in them."""

    list_display = ("created_at", "state", "address", "kind", "organization", "attempt", "due_at")
    list_filter = (BY_ORGANIZATION, "status", "kind")
    list_select_related = ("organization",)
    search_fields = ("address", "=id", "=organization__slug")
    shows_seconds = True
    fields = (
        "address",
        "kind",
        "organization",
        "status",
        "error",
        "attempt",
        "created_at",
        "due_at",
        "handed_at",
        "ended_at",
        "language",
    )
    actions = ("send_again",)

    @admin.display(description=_("state"), ordering="status")
    def state(self, mail: OutgoingMail) -> Any:
        return write_names(write_state(mail.status), mail.error)

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_outgoingmail")

    @admin.action(description=_("Resend failed emails"), permissions=["send_again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> None:
        count = sum(send_again(mail) for mail in queryset)
        enqueue_mails()
        said = ngettext("{count} mail is sent again.", "{count} mails are sent again.", count)
        messages.success(request, said.format(count=count))
