"""Serve the list of models and the record of usage over REST."""

from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.sign_in.authentication import principal_of
from amber.lib.database.replica import may_be_stale
from amber.lib.rest.csv_text import CSVRenderer, csv_response
from amber.lib.rest.day_filters import DEFAULT_DAYS, MAX_DAYS
from amber.lib.rest.wire import JSONRenderer
from providers.api.serializers import ModelPageSerializer, UsageGroupSerializer, UsageSerializer
from providers.models import UsageKind, UsageRecord
from providers.registry import listed_models
from providers.usage.names import with_names
from providers.usage.report import (
    GROUPS,
    MAX_CSV_GROUPS,
    UsageFilters,
    read_groups,
    sum_by_groups,
)

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


class ModelsView(APIView):
    @extend_schema(responses=ModelPageSerializer, operation_id="models_list")
    def get(self, request: Request) -> Response:
        """List the model aliases you can use, `auto` first, then by name, all on one page."""
        page = {"next": None, "previous": None, "results": listed_models()}
        return Response(ModelPageSerializer(page).data)


class UsageView(GenericAPIView[UsageRecord]):
    serializer_class = UsageSerializer
    bound_keys_may = ("GET",)

    @extend_schema(
        responses=UsagePageSerializer, parameters=USAGE_PARAMETERS, operation_id="usage_list"
    )
    @may_be_stale
    def get(self, request: Request) -> Response:
        """List provider calls, newest first, or their sums. You see your own calls; admins see
        those of the whole organization."""
        filters = UsageFilters.read(request.query_params)
        rows = UsageRecord.objects.visible_to(principal_of(request))
        group_by = request.query_params.get("group_by")
        if group_by is not None:
            return _report(rows, filters.with_both_dates(), read_groups(group_by))
        page = self.paginate_queryset(filters.apply_to(rows))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class UsageExportView(APIView):
    renderer_classes = [JSONRenderer, CSVRenderer]

    @extend_schema(
        parameters=EXPORT_PARAMETERS,
        responses={
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, description="A line of names, then a line for each group."
            )
        },
        operation_id="usage_export",
    )
    @may_be_stale
    def get(self, request: Request) -> HttpResponse:
        """Export sums of usage as CSV, with names beside ids. You see your own calls; admins see
        those of the whole organization."""
        filters = UsageFilters.read(request.query_params).with_both_dates()
        groups = read_groups(request.query_params.get("group_by", EXPORTED_GROUPS))
        rows = filters.apply_to(UsageRecord.objects.visible_to(principal_of(request)))
        columns, table = with_names(sum_by_groups(rows, groups, most=MAX_CSV_GROUPS), groups)
        return csv_response(columns, table, filename=f"amber-usage-{filters.days_named}.csv")


def _report(rows: Any, filters: UsageFilters, groups: list[str]) -> Response:
    """Return the sums, all on one page."""
    results = sum_by_groups(filters.apply_to(rows), groups)
    return Response({"next": None, "previous": None, "results": results})
