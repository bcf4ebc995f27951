"""Serve accounts over REST: me, organizations, their members and invitations, API keys.

Views below `organizations/{id}/` act in that organization, whichever is active. What keys may not
do is refused by permission class, before any row is looked at.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.middleware.csrf import get_token
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from accounts import key_services, services
from accounts.api import schema
from accounts.api.serializers import (
    ActiveOrganizationSerializer,
    ApiKeyChangesSerializer,
    ApiKeySerializer,
    FoundInvitationSerializer,
    InvitationSerializer,
    InvitationTokenSerializer,
    IssuedApiKeySerializer,
    IssuedInvitationSerializer,
    MeChangesSerializer,
    MemberSerializer,
    MeSerializer,
    NewApiKeySerializer,
    NewOrganizationSerializer,
    OrganizationSerializer,
    RotationSerializer,
)
from accounts.models import ApiKey, Invitation, Membership, Organization, Role, User
from accounts.principal import Principal
from accounts.registry import sees_assistant
from accounts.sign_in.authentication import (
    HasPrincipal,
    InPerson,
    InPersonOrReadOnly,
    principal_in,
    principal_of,
)
from accounts.tenancy.access import get_visible, get_writable
from amber.lib.database.tenant import across_tenants
from amber.lib.errors import Forbidden, Missing
from amber.lib.rest.wire import validate_body


def person(principal: Principal) -> User:
    """Return the acting user. Raises Forbidden for guests, who have none."""
    if principal.user is None:
        raise Forbidden
    return principal.user


class _ListView(GenericAPIView[Any]):
    def page(self, rows: Any, shape: type[BaseSerializer[Any]]) -> Response:
        return self.get_paginated_response(shape(self.paginate_queryset(rows), many=True).data)


# -- Me ----------------------------------------------------------------------------------------


class MeView(APIView):
    permission_classes = [HasPrincipal, InPersonOrReadOnly]

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Show you and your active organization. Sets the CSRF cookie that sessions need."""
        principal = principal_of(request)
        if principal.key is None:
            get_token(request._request)
        return Response(_me(principal))

    @extend_schema(request=MeChangesSerializer, responses=MeSerializer)
    def patch(self, request: Request) -> Response:
        """Change your name, your time zone, and which mails you get in which language."""
        principal = principal_of(request)
        changes = validate_body(MeChangesSerializer, request, partial=True)
        services.edit_user(person(principal), changes=changes)
        return Response(_me(principal))


class ActiveOrganizationView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=ActiveOrganizationSerializer, responses=MeSerializer)
    def put(self, request: Request) -> Response:
        """Switch this session to another of your organizations."""
        wanted = validate_body(ActiveOrganizationSerializer, request)["organization_id"]
        there = principal_in(principal_of(request), wanted)
        services.switch_organization(
            request._request.session, organization_id=there.organization_id
        )
        return Response(_me(there))


def _me(principal: Principal) -> dict[str, Any]:
    user: Any = person(principal)
    user.organization = get_visible(Organization, principal, principal.organization_id)
    user.api_key = principal.key
    return dict(MeSerializer(user).data)


# -- Organizations -----------------------------------------------------------------------------


class OrganizationsView(_ListView):
    permission_classes = [HasPrincipal, InPersonOrReadOnly]

    @extend_schema(responses=OrganizationSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the organizations you are a member of; a key sees its own only."""
        return self.page(
            Organization.objects.visible_to(principal_of(request)), OrganizationSerializer
        )

    @extend_schema(request=NewOrganizationSerializer, responses={201: OrganizationSerializer})
    def post(self, request: Request) -> Response:
        """Create an organization that you own. Your active organization does not change."""
        principal = principal_of(request)
        fields = validate_body(NewOrganizationSerializer, request)
        with across_tenants():
            made = services.create_organization(person(principal), name=fields["name"])
        shown = get_visible(Organization, principal, made.pk)
        return Response(OrganizationSerializer(shown).data, status=201)


class OrganizationView(APIView):
    permission_classes = [HasPrincipal, InPersonOrReadOnly]

    @extend_schema(responses=OrganizationSerializer)
    def get(self, request: Request, organization_id: UUID) -> Response:
        """Show an organization and your role in it."""
        found = get_visible(Organization, principal_of(request), organization_id)
        return Response(OrganizationSerializer(found).data)

    @extend_schema(request=OrganizationSerializer, responses=OrganizationSerializer)
    def patch(self, request: Request, organization_id: UUID) -> Response:
        """Change an organization. Owners and admins only."""
        there = principal_in(principal_of(request), organization_id)
        organization = get_writable(Organization, there, organization_id)
        changes = validate_body(OrganizationSerializer, request, partial=True)
        by = principal_of(request).actor
        services.edit_organization(organization, changes=changes, by=by)
        return Response(OrganizationSerializer(organization).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, organization_id: UUID) -> Response:
        """Delete an organization with everything in it. Owners only; not for personal ones."""
        there = principal_in(principal_of(request), organization_id)
        if there.role != Role.OWNER:
            raise Forbidden
        services.delete_organization(get_writable(Organization, there, organization_id))
        return Response(status=204)


class _InOrganization(_ListView):
    """A view below organizations/{id}/, which acts in that organization."""

    permission_classes = [HasPrincipal, InPerson]

    def there(self) -> Principal:
        """Return the caller in that organization. Raises Missing."""
        return principal_in(principal_of(self.request), self.kwargs["organization_id"])

    def as_admin(self) -> Principal:
        """Return the caller, an admin there. Raises Missing, Forbidden."""
        there = self.there()
        if not there.is_admin:
            raise Forbidden
        return there


class MembersView(_InOrganization):
    @extend_schema(responses=MemberSerializer(many=True))
    def get(self, request: Request, organization_id: UUID) -> Response:
        """List the members of the organization, newest first."""
        members = Membership.objects.visible_to(self.there()).select_related("user")
        return self.page(members, MemberSerializer)


class MemberView(_InOrganization):
    @extend_schema(responses=MemberSerializer)
    def get(self, request: Request, organization_id: UUID, member_id: UUID) -> Response:
        """Show a member and their role."""
        return Response(MemberSerializer(get_visible(Membership, self.there(), member_id)).data)

    @extend_schema(request=MemberSerializer, responses=MemberSerializer)
    def patch(self, request: Request, organization_id: UUID, member_id: UUID) -> Response:
        """Change a member's role. Admins may give the roles admin and member; owners also owner."""
        there = self.there()
        membership = get_writable(Membership, there, member_id)
        changes = validate_body(MemberSerializer, request)
        changed = services.change_role(membership, role=changes["role"], by=there)
        return Response(MemberSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, organization_id: UUID, member_id: UUID) -> Response:
        """Remove a member, or leave. The member's keys in this organization are revoked."""
        there = self.there()
        services.remove_member(get_visible(Membership, there, member_id), by=there)
        return Response(status=204)


# -- Invitations -------------------------------------------------------------------------------


class InvitationsView(_InOrganization):
    @extend_schema(responses=InvitationSerializer(many=True))
    def get(self, request: Request, organization_id: UUID) -> Response:
        """List invitations not accepted yet, including expired ones. Owners and admins only."""
        waiting = Invitation.objects.visible_to(self.as_admin()).filter(accepted_at=None)
        return self.page(waiting, InvitationSerializer)

    @extend_schema(
        request=InvitationSerializer,
        responses={201: IssuedInvitationSerializer},
        examples=[schema.INVITATION],
    )
    def post(self, request: Request, organization_id: UUID) -> Response:
        """Invite an email address. The token is shown only once: pass it on to that person.

        Where mail is sent the link is mailed, too (`is_mailed`). An earlier open invitation to the same address is replaced.
        """
        there = self.as_admin()
        fields = validate_body(InvitationSerializer, request)
        invitation, token = services.invite(
            get_writable(Organization, there, organization_id),
            email=fields["email"],
            role=fields["role"],
            by=there,
        )
        shown = {**InvitationSerializer(invitation).data, "token": token}
        return Response(shown, status=201)


class InvitationView(_InOrganization):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, organization_id: UUID, invitation_id: UUID) -> Response:
        """Withdraw an invitation."""
        invitation = get_writable(Invitation, self.as_admin(), invitation_id)
        if invitation.accepted_at is not None:
            raise Missing
        services.revoke_invitation(invitation)
        return Response(status=204)


class FindInvitationView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(
        request=InvitationTokenSerializer,
        responses={200: FoundInvitationSerializer, 404: schema.NO_INVITATION},
    )
    def post(self, request: Request) -> Response:
        """Show who invites you to what, before you answer. It must be for your email address."""
        token = validate_body(InvitationTokenSerializer, request)["token"]
        with across_tenants():
            found = services.find_invitation(person(principal_of(request)), token=token)
            return Response(FoundInvitationSerializer(found).data)


class AcceptInvitationView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(
        request=InvitationTokenSerializer,
        responses={200: OrganizationSerializer, 404: schema.NO_INVITATION},
    )
    def post(self, request: Request) -> Response:
        """Accept an invitation. It must be for your email address."""
        principal = principal_of(request)
        token = validate_body(InvitationTokenSerializer, request)["token"]
        with across_tenants():
            membership = services.accept_invitation(
                person(principal), token=token, by=principal.actor
            )
        joined = get_visible(Organization, principal, membership.organization_id)
        return Response(OrganizationSerializer(joined).data)


class DeclineInvitationView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(
        request=InvitationTokenSerializer, responses={204: None, 404: schema.NO_INVITATION}
    )
    def post(self, request: Request) -> Response:
        """Decline an invitation. It must be for your email address."""
        token = validate_body(InvitationTokenSerializer, request)["token"]
        with across_tenants():
            services.decline_invitation(person(principal_of(request)), token=token)
        return Response(status=204)


# -- API keys ----------------------------------------------------------------------------------


class ApiKeysView(_ListView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=ApiKeySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your keys in the active organization; owners and admins see everybody's."""
        return self.page(ApiKey.objects.visible_to(principal_of(request)), ApiKeySerializer)

    @extend_schema(
        request=NewApiKeySerializer,
        responses={201: IssuedApiKeySerializer},
        examples=[schema.NEW_API_KEY],
    )
    def post(self, request: Request) -> Response:
        """Create a key that acts for you in the active organization. It is shown only once."""
        principal = principal_of(request)
        fields = validate_body(NewApiKeySerializer, request)
        assistant_id = fields.get("assistant_id")
        if assistant_id is not None and not sees_assistant(principal, assistant_id):
            raise Missing
        key, secret = key_services.create_api_key(
            person(principal),
            organization=get_visible(Organization, principal, principal.organization_id),
            by=principal.actor,
            **fields,
        )
        return Response({**ApiKeySerializer(key).data, "key": secret}, status=201)


class ApiKeyView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=ApiKeySerializer)
    def get(self, request: Request, key_id: UUID) -> Response:
        """Show what a key may do, never the key itself."""
        return Response(ApiKeySerializer(get_visible(ApiKey, principal_of(request), key_id)).data)

    @extend_schema(request=ApiKeyChangesSerializer, responses=ApiKeySerializer)
    def patch(self, request: Request, key_id: UUID) -> Response:
        """Change a key. Only the user it acts for may do this."""
        principal = principal_of(request)
        key = get_writable(ApiKey, principal, key_id)
        changes = validate_body(ApiKeyChangesSerializer, request, partial=True)
        key = key_services.edit_api_key(key, changes=changes, by=principal.actor)
        return Response(ApiKeySerializer(key).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key_id: UUID) -> Response:
        """Revoke a key, at once and for good. Owners and admins may revoke everybody's keys."""
        principal = principal_of(request)
        key_services.revoke_api_key(get_visible(ApiKey, principal, key_id), by=principal.actor)
        return Response(status=204)


class RotateApiKeyView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=RotationSerializer, responses={201: IssuedApiKeySerializer})
    def post(self, request: Request, key_id: UUID) -> Response:
        """Replace a key by a new one with the same rights, shown once. For its user only."""
        principal = principal_of(request)
        key = get_writable(ApiKey, principal, key_id)
        hours = validate_body(RotationSerializer, request)["overlap_hours"]
        overlap = timedelta(hours=hours)
        successor, secret = key_services.rotate_api_key(key, overlap=overlap, by=principal.actor)
        return Response({**ApiKeySerializer(successor).data, "key": secret}, status=201)
