"""What OpenAPI says about usage: calls or sums on a page, and how they are chosen and summed."""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema_field,
)
from rest_framework import serializers

from providers.api.serializers import UsageGroupSerializer, UsageSerializer
from providers.models import UsageKind
from providers.usage.report import DEFAULT_DAYS, GROUPS, MAX_DAYS

_USAGE: Final = PolymorphicProxySerializer(
    component_name="CallOrSum",
    serializers=[UsageSerializer, UsageGroupSerializer],
    resource_type_field_name=None,
    many=True,
)


@extend_schema_field(_USAGE)
class _Results(serializers.ListField):
    """Calls, newest first; with `group_by` sums, newest day first, then most tokens first."""


class UsagePageSerializer(serializers.Serializer[Any]):
    """Sums are on one page."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = _Results()


USAGE_PARAMETERS: Final = [
    OpenApiParameter(
        "group_by",
        str,
        description=(
            f"Sums instead of calls: {', '.join(GROUPS)}, separated by commas. All on one page; of"
            f" the last {DEFAULT_DAYS} days unless dates are given, at most {MAX_DAYS} days."
        ),
    ),
    OpenApiParameter("from", OpenApiTypes.DATE, description="The first day, of UTC."),
    OpenApiParameter("to", OpenApiTypes.DATE, description="The last day, of UTC."),
    OpenApiParameter("model", str, description="An alias."),
    OpenApiParameter("kind", str, enum=UsageKind.values),
    OpenApiParameter("assistant_id", OpenApiTypes.UUID),
    OpenApiParameter("api_key_id", OpenApiTypes.UUID),
    OpenApiParameter("user_id", OpenApiTypes.UUID),
    OpenApiParameter("limit", OpenApiTypes.INT, description="Calls per page: 50, at most 200."),
    OpenApiParameter("cursor", str, description="From `next` or `previous`."),
]
