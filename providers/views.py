"""REST of providers: which models there are, and what was used."""

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import principal_of
from providers.models import UsageRecord
from providers.registry import listed_models
from providers.serializers import ModelSerializer, UsageSerializer


class ModelsView(GenericAPIView[UsageRecord]):
    serializer_class = ModelSerializer

    @extend_schema(
        parameters=[], filters=False, responses=ModelSerializer(many=True), operation_id="models"
    )
    def get(self, request: Request) -> Response:
        """The aliases you may write, `auto` first, then by name: all on one page."""
        models = self.get_serializer(listed_models(), many=True).data
        return Response({"next": None, "previous": None, "results": models})


class UsageView(GenericAPIView[UsageRecord]):
    serializer_class = UsageSerializer

    @extend_schema(responses=UsageSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Provider calls, newest first: your own; an admin's are the organization's."""
        page = self.paginate_queryset(UsageRecord.objects.visible_to(principal_of(request)))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
