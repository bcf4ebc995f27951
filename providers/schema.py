"""What OpenAPI says about usage: two forms of answer, and how calls are chosen and summed."""

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer

from providers.models import UsageKind
from providers.serializers import UsagePageSerializer, UsageReportSerializer
from providers.usage_report import DEFAULT_DAYS, GROUPS, MAX_DAYS

USAGE_PAGES: Final = PolymorphicProxySerializer(
    component_name="Usages",
    serializers=[UsagePageSerializer, UsageReportSerializer],
    resource_type_field_name=None,
)

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
