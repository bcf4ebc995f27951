"""Describe groups, their members and what they are granted, on the wire."""

from typing import Any

from rest_framework import serializers

from accounts.models import Group, GroupMember
from accounts.tenant_rows import Right

MAX_DESCRIPTION_CHARS = 2_000


class GroupSerializer(serializers.ModelSerializer[Group]):
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
        extra_kwargs = {
            "name": {
                "help_text": "Unique in the organization, whether in small or in capital letters."
            },
            "description": {"max_length": MAX_DESCRIPTION_CHARS},
        }


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
