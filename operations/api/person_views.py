"""Serve REST requests about a person's own data: export all of it, delete all of it."""

from typing import Any, Literal, TypedDict

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.audit.recording import record
from accounts.audit_actions import AuditAction
from accounts.models import User
from accounts.sign_in.authentication import HasPrincipal, InPerson, principal_of
from amber.lib.database.tenant import across_tenants
from amber.lib.errors import Forbidden, Invalid
from amber.lib.json_text.stream import json_response
from amber.lib.rest.wire import validate_body
from amber.lib.rest.wire_serializers import serializer_of
from amber.lib.wire_fields import Time, write_time
from operations.models import Erasure
from operations.privacy.erasure_services import latest_erasure, request_erasure
from operations.privacy.person_export import person_document


class ErasureInput(serializers.Serializer[Any]):
    """`confirm` repeats your email address.

    `account` deletes your data everywhere, and the account.
    """

    confirm = serializers.CharField(max_length=320)
    account = serializers.BooleanField(default=False)


class ErasureWire(TypedDict):
    state: Literal["none", "running", "done"]
    account: bool
    asked_at: Time | None
    ended_at: Time | None


ErasureSerializer = serializer_of(ErasureWire)


class PersonExportView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(
        responses=OpenApiResponse(
            OpenApiTypes.OBJECT, description="docs/privacy.md describes its content."
        )
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export everything of yours in this organization as one JSON document.

        API keys cannot use this address.
        """
        address = settings.AMBER_PUBLIC_URL or request.build_absolute_uri("/").rstrip("/")
        principal, user = principal_of(request), _person(request)
        document = person_document(principal, user, address=address)
        record(
            principal.actor,
            AuditAction.PERSON_EXPORTED,
            user,
            organization_id=principal.organization_id,
        )
        return json_response(document, filename="amber-export.json")


class EraseView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=ErasureSerializer)
    def get(self, request: Request) -> Response:
        """Show the state of your latest erasure in this organization."""
        return Response(_wire(latest_erasure(principal_of(request))))

    @extend_schema(request=ErasureInput, responses={202: ErasureSerializer})
    def post(self, request: Request) -> Response:
        """Delete everything of yours in this organization, or your account. This cannot be undone.

        Your data disappears at once and is deleted in the background. Deleting an account answers
        409 if you are the only owner of an organization. API keys cannot use this address.
        """
        user = _person(request)
        given = validate_body(ErasureInput, request)
        if given["confirm"].strip().lower() != user.email.lower():
            said = "Enter your email address to confirm."
            raise Invalid(said, fields={"confirm": [said]})
        principal = principal_of(request)
        with across_tenants():  # an account goes with all its organizations
            erasure = request_erasure(
                user,
                organization_id=principal.organization_id,
                by=principal.actor,
                account=given["account"],
            )
        return Response(_wire(erasure), status=202)


def _person(request: Request) -> User:
    """Return the user who asks. Raises Forbidden for guests."""
    user = principal_of(request).user
    if user is None:
        raise Forbidden
    return user


def _wire(erasure: Erasure | None) -> ErasureWire:
    if erasure is None:
        return {"state": "none", "account": False, "asked_at": None, "ended_at": None}
    return {
        "state": "running" if erasure.ended_at is None else "done",
        "account": erasure.account,
        "asked_at": write_time(erasure.created_at),
        "ended_at": write_time(erasure.ended_at),
    }
