"""Describe usage for OpenAPI: pages of calls or of sums, and the parameters that choose them."""

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
    """Calls, newest first. With `group_by`: sums, newest day first, then most tokens first."""


class UsagePageSerializer(serializers.Serializer[Any]):
    """A page of calls; sums are always on one page."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = _Results()


EXPORTED_GROUPS: Final = "day,model"
"""What an export is grouped by unless it is told."""

_FILTERS: Final = [
    OpenApiParameter("from", OpenApiTypes.DATE, description="The first day, in UTC."),
    OpenApiParameter("to", OpenApiTypes.DATE, description="The last day, in UTC."),
    OpenApiParameter("model", str, description="The alias of a model."),
    OpenApiParameter("kind", str, enum=UsageKind.values),
    OpenApiParameter("assistant_id", OpenApiTypes.UUID),
    OpenApiParameter("api_key_id", OpenApiTypes.UUID),
    OpenApiParameter("user_id", OpenApiTypes.UUID),
]
USAGE_PARAMETERS: Final = [
    OpenApiParameter(
        "group_by",
        str,
        description=(
            f"Return sums instead of calls, grouped by any of {', '.join(GROUPS)}, separated by"
            f" commas. All sums are on one page. They cover the last {DEFAULT_DAYS} days unless"
            f" dates are given, and at most {MAX_DAYS} days."
        ),
    ),
    *_FILTERS,
    OpenApiParameter(
        "limit", OpenApiTypes.INT, description="Calls per page: 50 by default, at most 200."
    ),
    OpenApiParameter("cursor", str, description="The cursor from `next` or `previous`."),
]
EXPORT_PARAMETERS: Final = [
    OpenApiParameter(
        "group_by",
        str,
        default=EXPORTED_GROUPS,
        description=(
            f"Any of {', '.join(GROUPS)}, separated by commas. The sums cover the last"
            f" {DEFAULT_DAYS} days unless dates are given, and at most {MAX_DAYS} days."
        ),
    ),
    *_FILTERS,
]
