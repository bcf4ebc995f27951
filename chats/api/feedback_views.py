"""Serve what people think of answers: each their own, and all of it to the organization's admins."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.sign_in.authentication import HasPrincipal, InPerson, admin_of, principal_of
from accounts.tenancy.access import get_visible
from amber.lib.database.tenant import for_whole_organization
from amber.lib.rest.day_filters import DayFields, DayFilters
from amber.lib.rest.wire import validate_body, validate_query
from amber.lib.rest.wire_serializers import serializer_of
from chats import feedback_services as services
from chats.messages.wire import (
    FeedbackTotalWire,
    FeedbackWire,
    GivenFeedbackWire,
    feedback_wire,
    given_feedback_wire,
)
from chats.models import REASONS, ChatMessage, Feedback, FeedbackReason, FeedbackValue

MAX_COMMENT_CHARS = 2_000

FeedbackSerializer = serializer_of(FeedbackWire)
GivenFeedbackSerializer = serializer_of(GivenFeedbackWire)
FeedbackTotalSerializer = serializer_of(FeedbackTotalWire)


_REASONS = "Fitting the value: " + "; ".join(
    f"with `{value}` {', '.join(f'`{reason}`' for reason in reasons)}"
    for value, reasons in REASONS.items()
)


class FeedbackInput(serializers.Serializer[Feedback]):
    value = serializers.ChoiceField(FeedbackValue.choices)
    reason = serializers.ChoiceField(
        FeedbackReason.choices, required=False, allow_null=True, help_text=_REASONS
    )
    comment = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=MAX_COMMENT_CHARS
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs["reason"] = attrs.get("reason") or ""
        fitting = REASONS[attrs["value"]]
        if attrs["reason"] and attrs["reason"] not in fitting:
            said = f"With `{attrs['value']}` must be one of {', '.join(fitting)}."
            raise serializers.ValidationError({"reason": [said]})
        return attrs


class _TotalsFilters(DayFields):
    """Filters by assistant and day."""

    assistant_id = serializers.UUIDField(required=False)


class _FeedbackFilters(_TotalsFilters):
    value = serializers.ChoiceField(FeedbackValue.choices, required=False)
    reason = serializers.ChoiceField(FeedbackReason.choices, required=False)
    user_id = serializers.UUIDField(required=False, help_text="Who gave it.")


class FeedbackTotalsSerializer(serializers.Serializer[Any]):
    results = FeedbackTotalSerializer(many=True)


class MessageFeedbackView(APIView):
    bound_keys_may = ("PUT", "DELETE")

    @extend_schema(request=FeedbackInput, responses=FeedbackSerializer)
    def put(self, request: Request, message_id: UUID) -> Response:
        """Say what you think of this answer; it replaces what you said before.

        The organization's admins read it, with your name, and not the answer.
        """
        principal = principal_of(request)
        message = get_visible(ChatMessage, principal, message_id)
        given = validate_body(FeedbackInput, request)
        return Response(feedback_wire(services.give_feedback(message, principal, **given)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, message_id: UUID) -> Response:
        """Take back what you said about this answer."""
        principal = principal_of(request)
        services.withdraw_feedback(get_visible(ChatMessage, principal, message_id), principal)
        return Response(status=204)


class FeedbackView(GenericAPIView[Feedback]):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(parameters=[_FeedbackFilters], responses=GivenFeedbackSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List what people think of answers, newest first. Owners and admins only."""
        rows = Feedback.objects.visible_to(admin_of(request)).select_related("assistant")
        wanted = DayFilters.of(validate_query(_FeedbackFilters, request)).apply_to(rows)
        with for_whole_organization():
            page = self.paginate_queryset(wanted)
            return self.get_paginated_response([given_feedback_wire(each) for each in page or ()])


class FeedbackTotalsView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(parameters=[_TotalsFilters], responses=FeedbackTotalsSerializer)
    def get(self, request: Request) -> Response:
        """Count the thumbs by day and assistant, newest day first. Owners and admins only.

        Without dates: the last 30 days; at most 366.
        """
        rows = Feedback.objects.visible_to(admin_of(request))
        filters = DayFilters.of(validate_query(_TotalsFilters, request)).with_both_dates()
        with for_whole_organization():
            return Response({"results": services.count_by_day(filters.apply_to(rows))})
