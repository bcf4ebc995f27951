"""List what a key may name as `model`: GET /v1/models and /v1/models/{id}."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from amber.lib.rest.wire_serializers import serializer_of
from assistants.models import Assistant
from providers.registry import enabled_embedding_models, listed_models
from public_api.openai.answerers import PREFIX, assistant_named, unknown_model
from public_api.openai.view import OpenAIView, describe_operation

MAX_ASSISTANTS: Final = 1_000
"""The most assistants in the list, which has no pages in OpenAI's form."""

INSTALLATION: Final = "amber"
ORGANIZATION: Final = "organization"


@dataclass(frozen=True, slots=True)
class UsableModel:
    """A model to choose. `name` is for people; only assistants have one."""

    id: str
    created_at: datetime
    owned_by: str
    name: str = ""


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

    @describe_operation(
        "listModels",
        responses={200: _LIST},
    )
    def get(self, request: Request) -> Response:
        """List `auto`, the other aliases, embedding models, and `assistant:<slug>`."""
        models = usable_models(principal_of(request))
        return Response({"object": "list", "data": [_describe_model(model) for model in models]})


class OpenAIModelView(OpenAIView):
    bound_keys_may = ("GET",)

    @describe_operation(
        "retrieveModel",
        responses={200: OpenAIModelSerializer},
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


def usable_models(principal: Principal) -> list[UsableModel]:
    """Return `auto`, other aliases, embedding models, then assistants, the newest first.

    Three queries; one for a key that is bound to an assistant, which is all such a key may use.
    """
    assistants = list(_assistants(principal))
    if principal.assistant_id is not None:
        return assistants
    chat = [UsableModel(m.alias, m.created_at, INSTALLATION) for m in listed_models()]
    names = {model.id for model in chat}
    embedding = [
        UsableModel(row.alias, row.created_at, INSTALLATION)
        for row in enabled_embedding_models()
        if row.alias not in names
    ]
    return [*chat, *embedding, *assistants]


def usable_model(principal: Principal, name: str) -> UsableModel:
    """Return one by its id in the list, or by an assistant's id. Raises AmberError
    (unknown_model)."""
    if name.startswith(PREFIX):
        return _of_assistant(assistant_named(principal, name))
    for model in usable_models(principal):
        if model.id == name:
            return model
    raise unknown_model(name)


def _assistants(principal: Principal) -> Iterator[UsableModel]:
    rows = Assistant.objects.visible_to(principal).order_by("-created_at")
    for row in rows.only("slug", "name", "created_at")[:MAX_ASSISTANTS]:
        yield _of_assistant(row)


def _of_assistant(row: Assistant) -> UsableModel:
    return UsableModel(f"{PREFIX}{row.slug}", row.created_at, ORGANIZATION, row.name)
