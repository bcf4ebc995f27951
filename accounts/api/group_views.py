"""Serve groups over REST, in the active organization: their names, their members, their grants.

Every member sees which groups there are, to share with them. Who is in a group its members and
admins see. Grants are served below the row that they are of: `assistants`, `libraries` and `tools`
route them to subclasses of `GrantsView` and `GrantView`.
"""

from typing import Any, ClassVar, Final
from uuid import UUID

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import group_services
from accounts.models import Grant, Group, GroupMember, Membership
from accounts.principal import Principal
from accounts.sign_in.authentication import (
    HasPrincipal,
    InPerson,
    InPersonOrReadOnly,
    principal_of,
)
from accounts.tenancy.access import get_managed, get_visible, get_writable
from accounts.tenant_rows import Right
from amber.lib.errors import Forbidden, Invalid, Missing
from amber.lib.rest.bounded_fields import PlainNameField
from amber.lib.rest.wire import validate_body

MAX_DESCRIPTION_CHARS = 2_000


class GroupSerializer(serializers.ModelSerializer[Group]):
    name = PlainNameField(
        max_length=200,
        help_text="Unique in the organization, whether in small or in capital letters.",
    )
    member_count = serializers.IntegerField(read_only=True)
    is_member = serializers.BooleanField(read_only=True, help_text="Whether you are in it.")

    class Meta:
        model = Group
        fields = [
            "id",
            "name",
            "description",
            "member_count",
            "is_member",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["id", "created_at", "updated_at"]
        extra_kwargs = {"description": {"max_length": MAX_DESCRIPTION_CHARS}}


class EndedGrantsSerializer(serializers.Serializer[Any]):
    """What a deleted group leaves behind: nothing but this number."""

    ended_grants = serializers.IntegerField(
        help_text="How many assistants, libraries and tools the group could use or edit."
    )


class GroupMemberSerializer(serializers.ModelSerializer[GroupMember]):
    email = serializers.EmailField(source="user.email", read_only=True)
    name = serializers.CharField(source="user.name", read_only=True)

    class Meta:
        model = GroupMember
        fields = ["user_id", "email", "name", "created_at"]
        read_only_fields = fields


class GrantSerializer(serializers.Serializer[Any]):
    """A group and what it may do with the row."""

    group_id = serializers.UUIDField(read_only=True)
    group_name = serializers.CharField(source="group.name", read_only=True)
    right = serializers.ChoiceField(
        choices=[Right.USE, Right.EDIT],
        help_text="`use`: see it and use it. `edit`: change it, too, but neither share nor delete "
        "it.",
    )
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)


SHARED_FILTERS: Final = [
    OpenApiParameter("q", str, description="Text that the name or description contains."),
    OpenApiParameter("group_id", UUID, description="Only what is shared with this group."),
]
"""What `shared_rows` reads of a request."""
NO_GROUP: Final = OpenApiResponse(description="You cannot see the group named by `group_id`.")
_NOT_IN_IT: Final = "Only members of the group and admins of the organization see who is in it."


class GroupsView(GenericAPIView[Group]):
    permission_classes = [HasPrincipal, InPersonOrReadOnly]
    serializer_class = GroupSerializer

    @extend_schema(
        parameters=[
            OpenApiParameter("mine", bool, description="`true`: only groups that you are in.")
        ],
        responses=GroupSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the organization's groups, newest first. All members see them, to share with
        them."""
        principal = principal_of(request)
        rows = Group.objects.visible_to(principal).annotate_members(principal)
        if request.query_params.get("mine", "").lower() == "true":
            rows = rows.filter(is_member=True)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(GroupSerializer(page, many=True).data)

    @extend_schema(responses={201: GroupSerializer})
    def post(self, request: Request) -> Response:
        """Create a group, with nobody in it yet. Owners and admins only; 409 if another group has
        the name."""
        principal = principal_of(request)
        if not principal.is_admin:
            raise Forbidden
        fields = validate_body(GroupSerializer, request)
        group = group_services.create_group(principal.organization_id, **fields, by=principal.actor)
        return Response(_group_to_wire(group, principal), status=201)


class GroupView(GenericAPIView[Group]):
    permission_classes = [HasPrincipal, InPersonOrReadOnly]
    serializer_class = GroupSerializer

    def get(self, request: Request, group_id: UUID) -> Response:
        """Show a group; `groups/{id}/members/` says who is in it."""
        principal = principal_of(request)
        return Response(_group_to_wire(get_visible(Group, principal, group_id), principal))

    def patch(self, request: Request, group_id: UUID) -> Response:
        """Change a group's name or description. Owners and admins only."""
        principal = principal_of(request)
        group = get_writable(Group, principal, group_id)
        changes = validate_body(GroupSerializer, request, partial=True)
        group = group_services.edit_group(group, changes=changes, by=principal.actor)
        return Response(_group_to_wire(group, principal))

    @extend_schema(responses={200: EndedGrantsSerializer})
    def delete(self, request: Request, group_id: UUID) -> Response:
        """Delete a group. What was shared with it ends for its members at once; the answer says how
        much that was. Owners and admins only.

        409 while something whose owner is gone can be reached by this group alone.
        """
        principal = principal_of(request)
        group = get_writable(Group, principal, group_id)
        ended = group_services.delete_group(group, by=principal.actor)
        return Response(EndedGrantsSerializer({"ended_grants": ended}).data)


def _group_to_wire(group: Group, principal: Principal) -> Any:
    """Return the group as it is shown, with its members counted. One query."""
    rows = Group.objects.visible_to(principal).annotate_members(principal)
    shown = rows.filter(pk=group.pk).first()
    if shown is None:
        raise Missing
    return GroupSerializer(shown).data


# -- Members -----------------------------------------------------------------------------------


class GroupMembersView(GenericAPIView[GroupMember]):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(responses=GroupMemberSerializer(many=True))
    def get(self, request: Request, group_id: UUID) -> Response:
        """List who is in the group, the last to join first. For its members and admins; 403 for
        others."""
        principal = principal_of(request)
        group = get_visible(Group, principal, group_id)
        rows = GroupMember.objects.visible_to(principal).filter(group=group)
        if not principal.is_admin and not rows.filter(user_id=principal.user_id).exists():
            raise Forbidden(_NOT_IN_IT)
        page = self.paginate_queryset(rows.select_related("user"))
        return self.get_paginated_response(GroupMemberSerializer(page, many=True).data)


class GroupMemberView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=None, responses=GroupMemberSerializer)
    def put(self, request: Request, group_id: UUID, user_id: UUID) -> Response:
        """Let a member of the organization into the group. Owners and admins only.

        404 for somebody who is no member; whoever is in the group already stays so.
        """
        principal = principal_of(request)
        group = get_writable(Group, principal, group_id)
        members = Membership.objects.visible_to(principal).select_related("user")
        membership = members.filter(user_id=user_id).first()
        if membership is None:
            raise Missing
        member = group_services.add_group_member(group, membership=membership, by=principal.actor)
        return Response(GroupMemberSerializer(member).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, group_id: UUID, user_id: UUID) -> Response:
        """Take somebody out of the group, or leave it yourself. What was shared with the group ends
        for them at once."""
        principal = principal_of(request)
        group = get_visible(Group, principal, group_id)
        seen = GroupMember.objects.visible_to(principal)
        member = seen.filter(group=group, user_id=user_id).first()
        if member is None:
            raise Missing
        member = get_writable(GroupMember, principal, member.pk)
        group_services.remove_group_member(member, by=principal.actor)
        return Response(status=204)


# -- Grants ------------------------------------------------------------------------------------


class GrantsView(GenericAPIView[Grant]):
    """Lists the grants of one row of `shared_model`, whose address calls its id `id_name`."""

    shared_model: ClassVar[Any]
    id_name: ClassVar[str]

    @extend_schema(responses=GrantSerializer(many=True))
    def get(self, request: Request, **ids: UUID) -> Response:
        """List the groups that this is shared with, the newest first, and what each may do.

        For whoever may share it: its creator, and admins if it is shared; 403 for others.
        """
        row = get_managed(self.shared_model, principal_of(request), ids[self.id_name])
        page = self.paginate_queryset(row.grants.select_related("group"))
        return self.get_paginated_response(GrantSerializer(page, many=True).data)


def shared_rows(model: Any, request: Request) -> Any:
    """Return the assistants, libraries or tools that the caller sees, with the caller's access to them.

    The request may narrow them to a group, and to words of the name or description. Raises Invalid, Missing.
    """
    principal = principal_of(request)
    rows = model.objects.visible_to(principal).annotate_access(principal)
    if wanted := request.query_params.get("group_id"):
        try:
            group_id = UUID(wanted)
        except ValueError:
            raise Invalid(fields={"group_id": ["Must be a UUID."]})
        rows = rows.filter(grants__group=get_visible(Group, principal, group_id))
    if words := request.query_params.get("q", "").strip():
        rows = rows.filter(Q(name__icontains=words) | Q(description__icontains=words))
    return rows


class GrantView(APIView):
    """Changes one group's grant of one row, as `GrantsView` lists them."""

    shared_model: ClassVar[Any]
    id_name: ClassVar[str]

    @extend_schema(request=GrantSerializer, responses=GrantSerializer)
    def put(self, request: Request, group_id: UUID, **ids: UUID) -> Response:
        """Share this with a group, or change what the group may do.

        For whoever may share it: its creator, and admins if it is shared; 403 for others.
        """
        principal = principal_of(request)
        row = get_managed(self.shared_model, principal, ids[self.id_name])
        group = get_visible(Group, principal, group_id)
        right = validate_body(GrantSerializer, request)["right"]
        grant = group_services.grant_right(row, group=group, right=right, by=principal.actor)
        return Response(GrantSerializer(grant).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, group_id: UUID, **ids: UUID) -> Response:
        """Share this with the group no longer. It ends for the group's members at once, also in
        chats that they have begun.

        409 while its owner is gone and nobody else can reach it.
        """
        principal = principal_of(request)
        row = get_managed(self.shared_model, principal, ids[self.id_name])
        grant = row.grants.filter(group_id=group_id).first()
        if grant is None:
            raise Missing
        group_services.end_grant(grant, by=principal.actor)
        return Response(status=204)
