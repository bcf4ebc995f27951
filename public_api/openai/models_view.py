"""List what a key may name as `model`: GET /v1/models and /v1/models/{id}."""

from typing import Annotated, Literal, NotRequired, TypedDict

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.sign_in.authentication import principal_of
from amber.lib.rest.wire_serializers import serializer_of
from public_api.openai.usable_models import UsableModel, usable_model, usable_models
from public_api.openai.view import ERRORS, KEY, TAG, OpenAIView


class OpenAIModelWire(TypedDict):
    id: str
    object: Literal["model"]
    created: Annotated[int, "Seconds since 1970."]
    owned_by: str
    name: NotRequired[Annotated[str, "The name of an assistant, for people."]]


OpenAIModelSerializer = serializer_of(OpenAIModelWire)

_LIST = inline_serializer(
    "OpenAIModelList",
    {
        "object": serializers.ChoiceField(["list"]),
        "data": OpenAIModelSerializer(many=True),
    },
)


class OpenAIModelsView(OpenAIView):
    bound_keys_may = ("GET",)

    @extend_schema(
        operation_id="listModels",
        auth=KEY,
        tags=[TAG],
        responses={200: _LIST, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """List `auto`, the other aliases, embedding models, and `assistant:<slug>`."""
        models = usable_models(principal_of(request))
        return Response({"object": "list", "data": [_describe_model(model) for model in models]})


class OpenAIModelView(OpenAIView):
    bound_keys_may = ("GET",)

    @extend_schema(
        operation_id="retrieveModel",
        auth=KEY,
        tags=[TAG],
        responses={200: OpenAIModelSerializer, **ERRORS},
    )
    def get(self, request: Request, model_name: str) -> Response:
        """Show a model by its id; an assistant also as `assistant:<id>`."""
        return Response(_describe_model(usable_model(principal_of(request), model_name)))


def _describe_model(model: UsableModel) -> OpenAIModelWire:
    described: OpenAIModelWire = {
        "id": model.id,
        "object": "model",
        "created": int(model.created_at.timestamp()),
        "owned_by": model.owned_by,
    }
    if model.name:
        described["name"] = model.name
    return described
