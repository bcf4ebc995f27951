"""REST of providers: which models there are, and what was used."""

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authentication import principal_of
from providers.models import UsageRecord
from providers.registry import listed_models
from providers.serializers import ModelPageSerializer, UsageSerializer


class ModelsView(APIView):
    @extend_schema(responses=ModelPageSerializer, operation_id="models_list")
    def get(self, request: Request) -> Response:
        """The aliases you may write, `auto` first, then by name: all on one page."""
        page = {"next": None, "previous": None, "results": listed_models()}
        return Response(ModelPageSerializer(page).data)


class UsageView(GenericAPIView[UsageRecord]):
    serializer_class = UsageSerializer

    @extend_schema(responses=UsageSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Provider calls, newest first: your own; an admin's are the organization's."""
        page = self.paginate_queryset(UsageRecord.objects.visible_to(principal_of(request)))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
