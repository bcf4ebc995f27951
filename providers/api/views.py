"""Serve the list of models and the record of usage over REST."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.sign_in.authentication import principal_of
from providers.api.schema import USAGE_PARAMETERS, UsagePageSerializer
from providers.api.serializers import ModelPageSerializer, UsageSerializer
from providers.models import UsageRecord
from providers.registry import listed_models
from providers.usage.report import UsageFilters, read_groups, sum_by_groups


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
    def get(self, request: Request) -> Response:
        """List provider calls, newest first, or their sums. You see your own calls; admins see
        those of the whole organization."""
        filters = UsageFilters.read(request.query_params)
        rows = UsageRecord.objects.visible_to(principal_of(request))
        group_by = request.query_params.get("group_by")
        if group_by is not None:
            return _report(rows, filters.with_both_dates(), read_groups(group_by))
        page = self.paginate_queryset(filters.applied_to(rows))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


def _report(rows: Any, filters: UsageFilters, groups: list[str]) -> Response:
    """Return the sums, all on one page."""
    results = sum_by_groups(filters.applied_to(rows), groups)
    return Response({"next": None, "previous": None, "results": results})
