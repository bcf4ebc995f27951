"""Show operators chats and turns: ids, states, sizes and counts, never the texts.

The page behind an assistant's "Try it" is here, too: it runs a stateless turn in the assistant's
organization.
"""

from typing import Any, ClassVar
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
from assistants.admin import quality_panels
from assistants.models import Assistant
from chats import services
from chats.inspection.quality import draw_quality
from chats.inspection.trial_turns import find_trial, operator_principal, start_trial
from chats.inspection.turn_pictures import picture_context
from chats.models import Chat, Feedback, Turn
from chats.streaming.stream_view import event_stream, last_event_id

quality_panels.append(draw_quality)


@admin.register(Chat)
class ChatAdmin(ReadOnlyAdmin):
    list_display = ("id", "organization", "user", "owner", "assistant", "created_at", "expired_at")
    list_filter = ("owner",)
    list_select_related = ("organization", "user", "assistant")
    search_fields = ("=id", "=user__email", "=organization__slug")
    fields = (
        "id",
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
        return super().get_queryset(request).defer("name", "prompt")  # type: ignore[no-any-return]

    @admin.display(description="messages")
    def message_count(self, chat: Chat) -> int:
        return int(chat.messages.aggregate(n=Count("pk"))["n"])

    @admin.display(description="characters")
    def message_chars(self, chat: Chat) -> int:
        return int(chat.messages.aggregate(n=Sum(Length("content")))["n"] or 0)


@admin.register(Feedback)
class FeedbackAdmin(ReadOnlyAdmin):
    list_display = ("id", "value", "reason", "organization", "assistant", "user", "created_at")
    list_filter = ("value", "reason")
    list_select_related = ("organization", "assistant", "user")
    search_fields = ("=id", "=message__id", "=user__email", "=organization__slug")
    fields = (
        "id",
        "organization",
        "user",
        "assistant",
        "chat_id",
        "message_id",
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

    @admin.display(description="characters of the comment")
    def comment_chars(self, feedback: Any) -> int:
        return int(feedback.comment_chars)


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "status",
        "error_code",
        "organization",
        "assistant",
        "attempt",
        "first_token_ms",
        "seconds",
        "prompt_tokens",
        "completion_tokens",
        "created_at",
    )
    list_filter = ("status",)
    list_select_related = ("organization", "assistant")
    search_fields = ("=id", "=chat__id", "=user__email", "=organization__slug")
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
                    "id",
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

    class Media:
        css: ClassVar[dict[str, tuple[str, ...]]] = {"all": ("chats/turn_pictures.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        texts = ("input", "output", "partial_text", "partial_reasoning", "waiting_calls")
        rows: QuerySet[Turn] = super().get_queryset(request).defer(*texts)
        return rows.select_related("organization", "chat", "user", "assistant")

    @admin.display(description="error")
    def error_code(self, turn: Turn) -> str:
        return str((turn.error or {}).get("code", ""))

    @admin.display(description=_l("error"))
    def error_words(self, turn: Turn) -> str:
        """Say what went wrong as its user was told, with the code that documents name."""
        error = turn.error or {}
        said = (str(error[name]) for name in ("message", "code") if error.get(name))
        return " · ".join(said)

    @admin.display(description="first token, ms")
    def first_token_ms(self, turn: Turn) -> int | None:
        if turn.first_token_at is None:
            return None
        return round((turn.first_token_at - turn.created_at).total_seconds() * 1_000)

    @admin.display(description="seconds")
    def seconds(self, turn: Turn) -> float | None:
        if turn.ended_at is None or turn.started_at is None:
            return None
        return round((turn.ended_at - turn.started_at).total_seconds(), 1)

    @admin.display
    def prompt_tokens(self, turn: Turn) -> int:
        return int(turn.usage.get("prompt_tokens", 0))

    @admin.display
    def completion_tokens(self, turn: Turn) -> int:
        return int(turn.usage.get("completion_tokens", 0))

    @admin.action(description="Cancel the selected turns")
    def cancel_turns(self, request: HttpRequest, turns: QuerySet[Turn]) -> None:
        for turn in turns:
            services.cancel_turn(turn)
        messages.success(
            request, "The turns are being cancelled. Text that was already shown is kept."
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
        assistant = _tried(request, assistant_id)
        if request.method == "POST":
            principal = operator_principal(request, assistant)
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
        return event_stream(turn, after=last_event_id(request), viewed_by=principal)

    def stop_trial(
        self, request: HttpRequest, assistant_id: UUID, turn_id: UUID
    ) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        services.cancel_turn(_own_trial(request, assistant_id, turn_id)[1])
        return HttpResponse(status=204)


def _tried(request: HttpRequest, assistant_id: UUID) -> Assistant:
    """Return the assistant to try. Raises PermissionDenied for who may not see assistants."""
    if not request.user.has_perm("assistants.view_assistant"):
        raise PermissionDenied
    rows = Assistant.objects.select_related("organization")
    assistant: Assistant = get_object_or_404(rows, pk=assistant_id)
    return assistant


def _own_trial(request: HttpRequest, assistant_id: UUID, turn_id: UUID) -> tuple[Principal, Turn]:
    assistant = _tried(request, assistant_id)
    principal = operator_principal(request, assistant)
    return principal, find_trial(principal, assistant, turn_id)
