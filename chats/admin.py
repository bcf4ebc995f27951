"""Show operators chats and turns: titles, owners, states, sizes and counts, never what was said.

The page behind an assistant's "Try it" is here, too: it runs a stateless turn in the assistant's
organization.
"""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.authentication import browser_session
from amber.lib.operator_pages import ReadOnlyAdmin, readable_json
from amber.lib.operator_pages.cells import (
    write_name,
    write_names,
    write_number,
    write_person,
    write_seconds,
    write_state,
)
from amber.lib.operator_pages.filters import by_name
from assistants.models import Assistant
from chats import services
from chats.api.manifest_serializers import in_order
from chats.api.serializers import TryInput
from chats.context.manifest import without_texts
from chats.models import Chat, ChatOwner, Feedback, Turn
from chats.streaming.stream_view import event_stream

_ORIGINS: Final = {
    ChatOwner.USER: _("A person"),
    ChatOwner.API: _("An API key"),
    ChatOwner.GUEST: _("A guest"),
}


@admin.register(Chat)
class ChatAdmin(ReadOnlyAdmin):
    list_display = (
        "title",
        "belongs_to",
        "assistant",
        "origin",
        "created_at",
        "updated_at",
        "expired_at",
    )
    list_filter = (by_name(), "owner")
    list_select_related = ("organization", "user", "assistant")
    search_fields = ("name", "=id", "=user__email", "=organization__slug")
    fields = (
        "title",
        "organization",
        "user",
        "guest_id",
        "owner",
        "assistant",
        "message_count",
        "message_chars",
        "created_at",
        "updated_at",
        "expired_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chat]:
        return super().get_queryset(request).defer("prompt")  # type: ignore[no-any-return]

    @admin.display(description=_("title"), ordering="name")
    def title(self, chat: Chat) -> str:
        return str(chat)

    @admin.display(description=_("begun by"), ordering="owner")
    def origin(self, chat: Chat) -> Any:
        return _ORIGINS[chat.owner]

    @admin.display(description=_("messages"))
    def message_count(self, chat: Chat) -> int:
        return int(chat.messages.aggregate(n=Count("pk"))["n"])

    @admin.display(description=_("characters"))
    def message_chars(self, chat: Chat) -> int:
        return int(chat.messages.aggregate(n=Sum(Length("content")))["n"] or 0)


@admin.register(Feedback)
class FeedbackAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "value",
        "reason",
        "assistant",
        "chat",
        "giver",
    )
    list_filter = (by_name(), "value", "reason")
    list_select_related = ("organization", "assistant", "user", "chat__user")
    search_fields = ("=id", "=message__id", "=user__email", "=organization__slug")
    fields = (
        "organization",
        "user",
        "assistant",
        "chat",
        "message",
        "value",
        "reason",
        "comment_chars",
        "created_at",
        "updated_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Feedback]:
        """Leave the comments out: they are for the organization's admins."""
        rows = super().get_queryset(request).defer("comment")
        return rows.annotate(comment_chars=Length("comment"))  # type: ignore[no-any-return]

    @admin.display(description=_("user"))
    def giver(self, feedback: Feedback) -> Any:
        return write_person(feedback.user, feedback.chat.guest_id, feedback.organization)

    @admin.display(description=_("characters of the comment"))
    def comment_chars(self, feedback: Any) -> int:
        return int(feedback.comment_chars)


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "state",
        "chat_and_owner",
        "assistant_and_organization",
        "duration",
        "tokens",
    )
    list_filter = (by_name(), "status")
    list_select_related = ("organization", "assistant", "user", "chat")
    search_fields = ("=id", "=chat__id", "=user__email", "=organization__slug")
    shows_seconds = True
    actions = ("cancel_turns",)
    fields = (
        "organization",
        "chat",
        "user",
        "assistant",
        "status",
        "error",
        "finish_reason",
        "attempt",
        "worker",
        "lease_until",
        "fence",
        "seq",
        "step",
        "usage",
        "context",
        "created_at",
        "started_at",
        "first_token_at",
        "ended_at",
        "cancel_requested_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        texts = ("input", "output", "partial_text", "partial_reasoning", "waiting_calls")
        return super().get_queryset(request).defer(*texts)  # type: ignore[no-any-return]

    @admin.display(description=_("state"), ordering="status")
    def state(self, turn: Turn) -> Any:
        error = str((turn.error or {}).get("code", "")).replace("_", " ")
        return write_names(write_state(turn.status), error)

    @admin.display(description=_("chat, and who asked"))
    def chat_and_owner(self, turn: Turn) -> Any:
        chat = write_name(turn.chat) if turn.chat else _("None: a call of the API")
        return write_names(chat, turn.user or _("A guest"))

    @admin.display(description=_("assistant"))
    def assistant_and_organization(self, turn: Turn) -> Any:
        return write_names(write_name(turn.assistant), turn.organization)

    @admin.display(description=_("context"))
    def context(self, turn: Turn) -> str:
        """Return ids and counts of what went into the request; only the user may read the texts."""
        return readable_json(in_order(without_texts(turn.manifest))) if turn.manifest else ""

    @admin.display(description=_("took"))
    def duration(self, turn: Turn) -> Any:
        """Say how long the turn ran, and after what time its first token was there."""
        first = _seconds_between(turn.created_at, turn.first_token_at)
        note = gettext("first after %s") % write_seconds(first) if first is not None else ""
        return write_names(write_seconds(_seconds_between(turn.started_at, turn.ended_at)), note)

    @admin.display(description=_("tokens"))
    def tokens(self, turn: Turn) -> Any:
        """Say how many tokens were read and written, over all steps."""
        read = write_number(turn.usage.get("prompt_tokens", 0))
        written = write_number(turn.usage.get("completion_tokens", 0))
        return write_names(gettext("%s in") % read, gettext("%s out") % written)

    @admin.action(description=_("Cancel the selected turns"))
    def cancel_turns(self, request: HttpRequest, turns: QuerySet[Turn]) -> None:
        for turn in turns:
            services.cancel_turn(turn)
        messages.success(
            request, gettext("The turns are being cancelled. Text that was already shown is kept.")
        )

    def get_urls(self) -> list[URLPattern]:
        try_page = path(
            "try/<uuid:assistant_id>/",
            self.admin_site.admin_view(self.try_assistant),
            name="chats_try_assistant",
        )
        return [try_page, *super().get_urls()]

    def try_assistant(self, request: HttpRequest, assistant_id: UUID) -> HttpResponseBase:
        """Show the page, or stream one answer (POST), to operators who may see assistants."""
        if not request.user.has_perm("assistants.view_assistant"):
            return HttpResponse(status=403)
        assistant = get_object_or_404(Assistant.objects.all(), pk=assistant_id)
        if request.method == "POST":
            return _answer(request, assistant)
        page = {**self.admin_site.each_context(request), "assistant": assistant}
        return TemplateResponse(
            request, "admin/chats/try_assistant.html", {**page, "title": f"Try {assistant.name}"}
        )


def _seconds_between(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else (until - since).total_seconds()


def _answer(request: HttpRequest, assistant: Assistant) -> HttpResponseBase:
    given = TryInput(data={"content": request.POST.get("content", "")})
    if not given.is_valid():
        return JsonResponse(given.errors, status=400)
    assert isinstance(request.user, User)
    principal = Principal(
        assistant.organization_id,
        request.user,
        role=Role.ADMIN,
        session=browser_session(request),
    )
    question = {"role": "human", "content": given.validated_data["content"]}
    turn = services.start_stateless_turn(principal, assistant=assistant, messages=[question])
    return event_stream(turn, viewed_by=principal)
