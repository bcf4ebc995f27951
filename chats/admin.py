"""Show operators chats and turns: titles, owners, states, sizes and counts, never what was said.

The page behind an assistant's "Try it" is here, too: it runs a stateless turn in the assistant's
organization.
"""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _l

from accounts.principal import Principal
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import (
    write_name,
    write_names,
    write_number,
    write_person,
    write_seconds,
    write_state,
)
from assistants.admin import quality_panels
from assistants.models import Assistant
from chats import services
from chats.events import open_streams
from chats.inspection.quality import draw_quality
from chats.inspection.trial_turns import find_trial, operator_principal, start_trial
from chats.inspection.turn_pictures import picture_context
from chats.models import Chat, ChatOwner, Feedback, Turn
from chats.streaming.stream_view import event_stream, last_event_id

quality_panels.append(draw_quality)

_ORIGINS: Final[dict[str, Any]] = {
    ChatOwner.USER: _l("A person"),
    ChatOwner.API: _l("An API key"),
    ChatOwner.GUEST: _l("A guest"),
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
    list_filter = (BY_ORGANIZATION, "owner")
    list_select_related = ("organization", "user", "assistant")
    search_fields = ("name", "=id", "=user__email", "=organization__slug")
    narrowed_ordering = ("-updated_at", "-id")
    unread = ("prompt",)
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

    @admin.display(description=_l("title"), ordering="name")
    def title(self, chat: Chat) -> str:
        return str(chat)

    @admin.display(description=_l("begun by"), ordering="owner")
    def origin(self, chat: Chat) -> Any:
        return _ORIGINS[ChatOwner(chat.owner)]

    @admin.display(description=_l("messages"))
    def message_count(self, chat: Chat) -> int:
        return int(chat.messages.aggregate(n=Count("pk"))["n"])

    @admin.display(description=_l("characters"))
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
    list_filter = (BY_ORGANIZATION, "value", "reason")
    list_select_related = ("organization", "assistant", "user", "chat__user")
    search_fields = ("=id", "=message__id", "=user__email", "=organization__slug")
    unread = ("comment",)  # it is for the organization's admins
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
        rows: QuerySet[Feedback] = super().get_queryset(request)
        return rows.annotate(comment_chars=Length("comment"))

    @admin.display(description=_l("user"))
    def giver(self, feedback: Feedback) -> Any:
        return write_person(feedback.user, feedback.chat.guest_id, feedback.organization)

    @admin.display(description=_l("characters of the comment"))
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
    list_filter = (BY_ORGANIZATION, "status")
    list_select_related = ("organization", "assistant", "user", "chat")
    search_fields = ("=id", "=chat__id", "=user__email", "=organization__slug")
    unread = ("input", "output", "partial_text", "partial_reasoning", "waiting_calls")
    shows_seconds = True
    actions = ("cancel_turns",)
    change_form_before_template = "admin/chats/turn_pictures.html"
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "organization",
                    "chat",
                    "user",
                    "assistant",
                    "status",
                    "error_words",
                    "finish_reason",
                    "step",
                    "created_at",
                    "ended_at",
                )
            },
        ),
        (
            _l("How the platform ran it"),
            {
                "classes": ("collapse",),
                "fields": (
                    "attempt",
                    "worker",
                    "lease_until",
                    "fence",
                    "seq",
                    "started_at",
                    "first_token_at",
                    "cancel_requested_at",
                ),
            },
        ),
    )

    styles = ("chats/turn_pictures.css",)

    @admin.display(description=_l("state"), ordering="status")
    def state(self, turn: Turn) -> Any:
        error = str((turn.error or {}).get("code", "")).replace("_", " ")
        return write_names(write_state(turn.status), error)

    @admin.display(description=_l("error"))
    def error_words(self, turn: Turn) -> str:
        """Say what went wrong as its user was told, with the code that documents name."""
        error = turn.error or {}
        said = (str(error[name]) for name in ("message", "code") if error.get(name))
        return " · ".join(said)

    @admin.display(description=_l("chat, and who asked"))
    def chat_and_owner(self, turn: Turn) -> Any:
        chat = write_name(turn.chat) if turn.chat else _("None: a call of the API")
        return write_names(chat, turn.user or _("A guest"))

    @admin.display(description=_l("assistant"))
    def assistant_and_organization(self, turn: Turn) -> Any:
        return write_names(write_name(turn.assistant), turn.organization)

    @admin.display(description=_l("took"))
    def duration(self, turn: Turn) -> Any:
        """Say how long the turn ran, and after what time its first token was there."""
        first = _seconds_between(turn.created_at, turn.first_token_at)
        note = _("first after %s") % write_seconds(first) if first is not None else ""
        return write_names(write_seconds(_seconds_between(turn.started_at, turn.ended_at)), note)

    @admin.display(description=_l("tokens"))
    def tokens(self, turn: Turn) -> Any:
        """Say how many tokens were read and written, over all steps."""
        read = write_number(turn.usage.get("prompt_tokens", 0))
        written = write_number(turn.usage.get("completion_tokens", 0))
        return write_names(_("%s in") % read, _("%s out") % written)

    @admin.action(description=_l("Cancel the selected turns"))
    def cancel_turns(self, request: HttpRequest, turns: QuerySet[Turn]) -> None:
        for turn in turns:
            services.cancel_turn(turn)
        messages.success(
            request, _("The turns are being cancelled. Text that was already shown is kept.")
        )

    def render_change_form(
        self, request: HttpRequest, *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Draw the turn's pictures above its columns; `args` begin with the page's context."""
        if obj is not None:
            args[0].update(picture_context(obj))
        return super().render_change_form(request, *args, obj=obj, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        pages = (
            ("", self.try_assistant, "chats_try_assistant"),
            ("<uuid:turn_id>/", self.show_trial, "chats_try_turn"),
            ("<uuid:turn_id>/events/", self.follow_trial, "chats_try_events"),
            ("<uuid:turn_id>/stop/", self.stop_trial, "chats_try_stop"),
        )
        own = [
            path(f"try/<uuid:assistant_id>/{place}", self.admin_site.admin_view(view), name=name)
            for place, view, name in pages
        ]
        return [*own, *super().get_urls()]

    def try_assistant(self, request: HttpRequest, assistant_id: UUID) -> HttpResponseBase:
        """Show the page of the conversation; with POST, ask a question and stream its turn."""
        assistant = _find_assistant(request, assistant_id)
        if request.method == "POST":
            principal = operator_principal(request, assistant)
            open_streams.refuse_beyond(open_streams.watchers_asking(principal))
            turn = start_trial(principal, assistant, request.POST.dict())
            return event_stream(turn, viewed_by=principal)
        page = {
            **self.admin_site.each_context(request),
            "assistant": assistant,
            "title": _("Try %(assistant)s") % {"assistant": assistant.name},
        }
        return TemplateResponse(request, "admin/chats/try_assistant.html", page)

    def show_trial(
        self, request: HttpRequest, assistant_id: UUID, turn_id: UUID
    ) -> HttpResponseBase:
        """Show the pictures of a question's turn, as a part of the page."""
        turn = _own_trial(request, assistant_id, turn_id)[1]
        return TemplateResponse(request, "admin/chats/turn_pictures.html", picture_context(turn))

    def follow_trial(
        self, request: HttpRequest, assistant_id: UUID, turn_id: UUID
    ) -> HttpResponseBase:
        """Stream a question's turn on, after the connection was lost."""
        principal, turn = _own_trial(request, assistant_id, turn_id)
        return event_stream(
            turn, after=last_event_id(request), viewed_by=principal, is_resumed=True
        )

    def stop_trial(
        self, request: HttpRequest, assistant_id: UUID, turn_id: UUID
    ) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        services.cancel_turn(_own_trial(request, assistant_id, turn_id)[1])
        return HttpResponse(status=204)


def _seconds_between(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else (until - since).total_seconds()


def _find_assistant(request: HttpRequest, assistant_id: UUID) -> Assistant:
    """Return the assistant to try. Raises PermissionDenied for who may not change assistants: to ask one
    costs its organization tokens, and may call its tools."""
    if not request.user.has_perm("assistants.change_assistant"):
        raise PermissionDenied
    rows = Assistant.objects.select_related("organization")
    assistant: Assistant = get_object_or_404(rows, pk=assistant_id)
    return assistant


def _own_trial(request: HttpRequest, assistant_id: UUID, turn_id: UUID) -> tuple[Principal, Turn]:
    assistant = _find_assistant(request, assistant_id)
    principal = operator_principal(request, assistant)
    return principal, find_trial(principal, assistant, turn_id)
