"""Serve `webhooks/` and their log over REST, to people in a session, as with API keys."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import HasPrincipal, InPerson, principal_of
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.errors import Missing
from amber.lib.rest.bounded_fields import BoundedListField, PlainNameField
from amber.lib.rest.wire import validate_body
from amber.lib.rest.wire_serializers import serializer_of
from public_api.models import MAX_URL_CHARS, WEBHOOK_EVENTS, Webhook, WebhookDelivery
from public_api.webhooks import services
from public_api.webhooks.wire import (
    DeliveryWire,
    IssuedWebhookWire,
    WebhookWire,
    delivery_wire,
    webhook_wire,
)

MAX_OVERLAP_HOURS: Final = 24 * 7
MAX_NAMED_EVENTS: Final = 100
"""More than there are, since a client may name one twice."""


class WebhookChangesInput(serializers.Serializer[Any]):
    name = PlainNameField(max_length=200, allow_blank=True, required=False)
    url = serializers.CharField(max_length=MAX_URL_CHARS)
    events = BoundedListField(
        child=serializers.ChoiceField(WEBHOOK_EVENTS),
        allow_empty=False,
        required=False,
        max_length=MAX_NAMED_EVENTS,
    )
    include_output = serializers.BooleanField(
        required=False, help_text="Also send what the turn wrote."
    )
    whole_organization = serializers.BooleanField(
        required=False,
        help_text="Notify about turns of everybody's keys, not only of yours. Admins only.",
    )

    def validate_events(self, events: list[str]) -> list[str]:
        return list(dict.fromkeys(events))


class NewWebhookInput(WebhookChangesInput):
    events = BoundedListField(
        child=serializers.ChoiceField(WEBHOOK_EVENTS),
        allow_empty=False,
        max_length=MAX_NAMED_EVENTS,
        default=[name for name, _ in WEBHOOK_EVENTS],
    )


class EditedWebhookInput(WebhookChangesInput):
    enabled = serializers.BooleanField(required=False)


class RotateSecretInput(serializers.Serializer[Any]):
    overlap_hours = serializers.FloatField(
        default=24,
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        help_text="How many hours the old secret also signs.",
    )


WebhookSerializer = serializer_of(WebhookWire)
IssuedWebhookSerializer = serializer_of(IssuedWebhookWire)
DeliverySerializer = serializer_of(DeliveryWire)


class _WebhookListView(GenericAPIView[Any]):
    permission_classes = [HasPrincipal, InPerson]

    def page(self, rows: Any, wire: Callable[[Any], Mapping[str, Any]]) -> Response:
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response([wire(row) for row in page])


class WebhooksView(_WebhookListView):
    serializer_class = WebhookSerializer

    @extend_schema(responses=WebhookSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your webhooks in the active organization; admins also see those of the
        organization."""
        return self.page(Webhook.objects.visible_to(principal_of(request)), webhook_wire)

    @extend_schema(
        request=NewWebhookInput,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: IssuedWebhookSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a webhook for turns of your API keys. The secret is shown only once; it is null
        when the request is repeated with the same Idempotency-Key."""
        principal = principal_of(request)
        fields = validate_body(NewWebhookInput, request)
        return answer_once(
            request,
            lambda claim: services.create_webhook(principal, fields=fields, claim=claim),
            lambda made: {**webhook_wire(made[0]), "secret": made[1]},
        )


class WebhookView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=WebhookSerializer)
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """Show a webhook without its secret."""
        return Response(webhook_wire(get_visible(Webhook, principal_of(request), webhook_id)))

    @extend_schema(request=EditedWebhookInput, responses=WebhookSerializer)
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Change a webhook. `enabled: true` restarts one that was disabled."""
        principal = principal_of(request)
        webhook = get_writable(Webhook, principal, webhook_id)
        changes = validate_body(EditedWebhookInput, request, partial=True)
        return Response(webhook_wire(services.edit_webhook(webhook, principal, changes=changes)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        """Delete a webhook. It gets no further events."""
        services.delete_webhook(get_writable(Webhook, principal_of(request), webhook_id))
        return Response(status=204)


class RotateSecretView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=RotateSecretInput, responses={201: IssuedWebhookSerializer})
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Replace the secret by a new one, shown only once. For a while both sign."""
        webhook = get_writable(Webhook, principal_of(request), webhook_id)
        hours = validate_body(RotateSecretInput, request)["overlap_hours"]
        webhook, secret = services.rotate_secret(webhook, overlap=timedelta(hours=hours))
        return Response({**webhook_wire(webhook), "secret": secret}, status=201)


class DeliveriesView(_WebhookListView):
    serializer_class = DeliverySerializer

    @extend_schema(responses=DeliverySerializer(many=True))
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """List deliveries with their results, newest first."""
        webhook = get_visible(Webhook, principal_of(request), webhook_id)
        return self.page(webhook.deliveries.all(), delivery_wire)


class RedeliverView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, request: Request, webhook_id: UUID, delivery_id: UUID) -> Response:
        """Send the same event again."""
        principal = principal_of(request)
        webhook = get_writable(Webhook, principal, webhook_id)
        delivery = get_visible(WebhookDelivery, principal, delivery_id)
        if delivery.webhook_id != webhook.pk:
            raise Missing
        return Response(delivery_wire(services.deliver_again(delivery)), status=201)
