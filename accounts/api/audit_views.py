"""Serve the audit log over REST, to the organization's owners and admins in person; read only."""

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.audit.reading import AuditEventWire, events_wire, lines_of
from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.models import AuditEvent, Organization
from accounts.sign_in.authentication import HasPrincipal, InPerson, admin_of
from accounts.tenancy.access import get_visible
from amber.lib.json_text.stream import json_lines_response
from amber.lib.rest.day_filters import DayFields, DayFilters
from amber.lib.rest.wire import JSONRenderer, validate_query
from amber.lib.rest.wire_serializers import serializer_of

AuditEventSerializer = serializer_of(AuditEventWire)


class AuditFilters(DayFields):
    action = serializers.ChoiceField(choices=AuditAction.choices, required=False)
    actor_user_id = serializers.UUIDField(required=False, help_text="Who did it.")
    target_kind = serializers.CharField(
        max_length=40, required=False, help_text="Such as `assistant`, `api_key` or `user`."
    )
    target_id = serializers.UUIDField(required=False, help_text="What it was done to.")


class AuditView(GenericAPIView[AuditEvent]):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(parameters=[AuditFilters], responses=AuditEventSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List what was done in the organization, newest first. Owners and admins only."""
        rows = AuditEvent.objects.visible_to(admin_of(request))
        filters = DayFilters.of(validate_query(AuditFilters, request))
        page = self.paginate_queryset(filters.apply_to(rows))
        return self.get_paginated_response(events_wire(page or []))


class _LinesRenderer(JSONRenderer):
    """Lets clients ask for lines; what is rendered by it are errors."""

    media_type = "application/x-ndjson"


class AuditExportView(APIView):
    permission_classes = [HasPrincipal, InPerson]
    renderer_classes = [JSONRenderer, _LinesRenderer]

    @extend_schema(
        parameters=[AuditFilters],
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(
                OpenApiTypes.STR, description="Events, oldest first, one JSON object a line."
            )
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export the audit log as JSON lines. Owners and admins only.

        The export is itself an event, and the last one that it can contain.
        """
        principal = admin_of(request)
        said = validate_query(AuditFilters, request)
        organization = get_visible(Organization, principal, principal.organization_id)
        number = record(
            principal.actor,
            AuditAction.AUDIT_EXPORTED,
            organization,
            organization_id=organization.pk,
            detail={name: str(value) for name, value in said.items()},
        )
        rows = AuditEvent.objects.visible_to(principal).filter(number__lte=number)
        events = lines_of(DayFilters.of(said).apply_to(rows))
        return json_lines_response(events, filename="amber-audit.jsonl")
