"""Describe accounts on the wire. What is shown once (`key`, `token`) has serializers of its own."""

import zoneinfo
from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils import timezone
from rest_framework import serializers

from accounts.models import (
    ApiKey,
    Invitation,
    Language,
    Membership,
    Organization,
    Role,
    Scope,
    User,
)
from amber.lib.rest.bounded_fields import BoundedListField, PlainNameField

MAX_ORIGINS: Final = 20
MAX_NAMED_SCOPES: Final = 100
"""More than there are, since a client may name one twice."""
MAX_PROMPT_CHARS: Final = 200_000
# Ten years: beyond that, leave it out.
MAX_RETENTION_DAYS: Final = 3_650
MAX_OVERLAP_HOURS: Final = 24 * 30

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@cache
def time_zones() -> frozenset[str]:
    """Return the IANA names that this machine knows; read once, which takes milliseconds."""
    return frozenset(zoneinfo.available_timezones())


class OrganizationSerializer(serializers.ModelSerializer[Organization]):
    """`role` is the caller's role in it."""

    role = serializers.ChoiceField(choices=Role.choices, read_only=True)
    name = PlainNameField(max_length=200)
    default_prompt = serializers.CharField(
        max_length=MAX_PROMPT_CHARS, allow_blank=True, required=False, trim_whitespace=False
    )
    retention_days = serializers.IntegerField(
        min_value=1, max_value=MAX_RETENTION_DAYS, allow_null=True, required=False
    )

    class Meta:
        model = Organization
        fields = [
            "id",
            "name",
            "slug",
            "personal",
            "role",
            "retention_days",
            "default_prompt",
            "trace_content",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["id", "slug", "personal", "created_at", "updated_at"]
        extra_kwargs = {
            "trace_content": {
                "help_text": "Whether the operator's traces may hold what people asked, and what models "
                "and tools answered."
            }
        }


class NewOrganizationSerializer(serializers.Serializer[Any]):
    name = PlainNameField(max_length=200)


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    class Meta:
        model = ApiKey
        fields = [
            "id",
            "name",
            "prefix",
            "user_id",
            "assistant_id",
            "scopes",
            "origins",
            "expires_at",
            "last_used_at",
            "revoked_at",
            "rotated_from_id",
            "oauth_client",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "oauth_client": {
                "help_text": "The id of the application that acts as this key, by OAuth. Empty for "
                "others."
            }
        }


class IssuedApiKeySerializer(ApiKeySerializer):
    """A new key's row, with the key itself: no later answer shows it."""

    key = serializers.CharField(read_only=True)

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]
        read_only_fields = fields


class ApiKeyChangesSerializer(serializers.Serializer[Any]):
    name = PlainNameField(max_length=200)
    scopes = BoundedListField(
        child=serializers.ChoiceField(choices=Scope.choices),
        required=False,
        max_length=MAX_NAMED_SCOPES,
        help_text="Empty: the key may do everything that its user may do with a key.",
    )
    origins = BoundedListField(
        child=serializers.CharField(max_length=300),
        required=False,
        max_length=MAX_ORIGINS,
        help_text="Origins of the web pages that may use the key, such as `https://example.com`. "
        "Empty: any page.",
    )
    expires_at = serializers.DateTimeField(allow_null=True, required=False)

    def validate_scopes(self, scopes: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(scopes))

    def validate_origins(self, origins: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(browser_origin(text) for text in origins))

    def validate_expires_at(self, expires_at: Any) -> Any:
        if expires_at is not None and expires_at <= timezone.now():
            raise serializers.ValidationError("Choose a time in the future.", code="in_past")
        return expires_at


class NewApiKeySerializer(ApiKeyChangesSerializer):
    assistant_id = serializers.UUIDField(
        allow_null=True, required=False, help_text="Limits the key to this assistant."
    )


class RotationSerializer(serializers.Serializer[Any]):
    overlap_hours = serializers.FloatField(
        default=24,
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        help_text="How many hours the old key keeps working.",
    )


class MeSerializer(serializers.ModelSerializer[User]):
    """`organization` is the active one; `api_key` is the key that the request came with."""

    is_operator = serializers.BooleanField(source="is_staff", read_only=True)
    language = serializers.ChoiceField(choices=Language.choices, allow_blank=True)
    organization = OrganizationSerializer(read_only=True)
    api_key = ApiKeySerializer(read_only=True, allow_null=True)

    class Meta:
        model = User
        fields = [
            "id",
            "email",
            "name",
            "time_zone",
            "language",
            "mail_notices",
            "is_operator",
            "organization",
            "api_key",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class MeChangesSerializer(serializers.Serializer[Any]):
    name = PlainNameField(max_length=200, allow_blank=True, required=False)
    time_zone = serializers.CharField(
        max_length=64, required=False, help_text="An IANA name, such as `Europe/Berlin`."
    )

    language = serializers.ChoiceField(
        choices=Language.choices,
        allow_blank=True,
        required=False,
        help_text="The language of mails to you. Empty: the installation's.",
    )
    mail_notices = serializers.BooleanField(
        required=False,
        help_text="Mail you budgets that run low, and what of your imports failed.",
    )

    def validate_time_zone(self, name: str) -> str:
        if name not in time_zones():
            raise serializers.ValidationError("This is not an IANA time zone.")
        return name


class ActiveOrganizationSerializer(serializers.Serializer[Any]):
    organization_id = serializers.UUIDField()


class MemberSerializer(serializers.ModelSerializer[Membership]):
    email = serializers.EmailField(source="user.email", read_only=True)
    name = serializers.CharField(source="user.name", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ["id", "user_id", "email", "name", "role", "created_at", "updated_at"]
        read_only_fields = ["id", "user_id", "created_at", "updated_at"]


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER)

    class Meta:
        model = Invitation
        fields = [
            "id",
            "email",
            "role",
            "invited_by_id",
            "is_mailed",
            "expires_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = [name for name in fields if name not in ("email", "role")]
        extra_kwargs = {
            "is_mailed": {
                "help_text": "false: no mail was written. Hand the token over yourself.",
            }
        }


class IssuedInvitationSerializer(InvitationSerializer):
    """A new invitation, with its token: no later answer shows it."""

    token = serializers.CharField(read_only=True)

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "token"]


class FoundInvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation as whom it is for sees it."""

    organization = serializers.CharField(source="organization.name")
    inviter = serializers.CharField(help_text="Who invites you: their name, or else their address.")

    class Meta:
        model = Invitation
        fields = ["organization", "inviter", "role", "expires_at"]
        read_only_fields = fields


class InvitationTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(max_length=200)


def browser_origin(text: str) -> str:
    """Return the origin as browsers write it (RFC 6454, 6.2): lower case, no path or default port.

    Raises ValidationError.
    """
    try:
        parts = urlsplit(text.strip().lower())
        port = parts.port
    except ValueError:
        raise serializers.ValidationError(f"{text}: this is not an origin.")
    extra = parts.path.rstrip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if "*" in parts.netloc:
        raise serializers.ValidationError(f"{text}: wildcards are not supported; list each origin.")
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or extra or not text.isascii():
        raise serializers.ValidationError(f"{text}: enter an origin, such as https://example.com")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = "" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown_port}"
