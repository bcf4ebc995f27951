"""Show operators chats and turns: ids, states, sizes and counts, never the texts.

The page behind an assistant's "Try it" is here, too: it runs a stateless turn in the assistant's
organization.
"""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from accounts.models import Role, User
from accounts.principal import Principal
from accounts.sign_in.authentication import browser_session
from amber.lib.operator_pages import ReadOnlyAdmin, readable_json
from assistants.models import Assistant
from chats import services
from chats.api.manifest_serializers import in_order
from chats.api.serializers import TryInput
from chats.context.manifest import without_texts
from chats.models import Chat, Feedback, Turn
from chats.streaming.stream_view import event_stream


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
    fields = (
        "id",
        "organization",
        "chat_id",
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

    @admin.display(description="error")
    def error_code(self, turn: Turn) -> str:
        return str((turn.error or {}).get("code", ""))

    @admin.display
    def context(self, turn: Turn) -> str:
        """Return ids and counts of what went into the request; only the user may read the texts."""
        return readable_json(in_order(without_texts(turn.manifest))) if turn.manifest else ""

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
