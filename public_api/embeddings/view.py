"""Embed texts, or the token ids that some clients send instead, in OpenAI's form:
/v1/embeddings."""

from functools import partial
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from accounts.sign_in.authentication import principal_of
from amber.lib.errors import Invalid
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.wire import validate_body
from engine.text.token_ids import UnknownTokenError, text_of_tokens
from providers.models import EmbeddingModel
from public_api.completions.serializers import MAX_MODEL_CHARS, MAX_USER_CHARS, OPTIONAL
from public_api.embeddings.embedder import (
    MAX_TEXTS,
    EmbeddingRequest,
    admit_request,
    check_tokens,
    embed_request,
)
from public_api.openai.answerers import asking_as, embedding_model_named
from public_api.openai.strict_fields import TextField, WholeNumberField
from public_api.openai.view import OpenAIView, describe_operation

_ONE_OF: Final[dict[str, Any]] = {
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    ]
}

Given = list[str | list[int]]


@extend_schema_field(_ONE_OF)
class InputField(serializers.Field[Given, Any, Any, Any]):
    """One input or several, each a text or a list of token ids."""

    default_error_messages = {
        "invalid_type": "Must be a text, token ids, or a list of either.",
        "empty": "This is empty.",
        "max_length": "Send at most {most} at once.",
    }

    def to_internal_value(self, data: Any) -> Given:
        is_one = isinstance(data, str) or _is_tokens(data)
        many = [data] if is_one else data
        if not isinstance(many, list):
            self.fail("invalid_type")
        if len(many) > MAX_TEXTS:
            self.fail("max_length", most=MAX_TEXTS)
        if not many or not all(many):
            self.fail("empty")
        if not (all(isinstance(each, str) for each in many) or all(map(_is_tokens, many))):
            self.fail("invalid_type")
        return many


def _is_tokens(data: Any) -> bool:
    """Return whether it is a list of token ids, with at least one."""
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(token, int) and not isinstance(token, bool) for token in data)
    )


class EmbeddingInput(serializers.Serializer[Any]):
    """The body of a request. Other fields are ignored."""

    model = TextField(max_length=MAX_MODEL_CHARS, allow_blank=False)
    input = InputField()
    encoding_format = serializers.ChoiceField(["float", "base64"], **OPTIONAL)
    dimensions = WholeNumberField(**OPTIONAL, min_value=1)
    user = TextField(**OPTIONAL, max_length=MAX_USER_CHARS)


class EmbeddingsView(OpenAIView):
    @describe_operation(
        "createEmbedding",
        request=EmbeddingInput,
        responses={200: OpenApiTypes.OBJECT},
    )
    def post(self, request: Request) -> DeferredResponse:
        """Embed texts into L2-normalised vectors. Nothing is stored."""
        given = validate_body(EmbeddingInput, request)
        principal = principal_of(request)
        model = embedding_model_named(given["model"])
        wanted = EmbeddingRequest(
            asking_as(principal, given.get("user") or ""),
            model,
            _texts(given["input"], model),
            _dimensions(given.get("dimensions"), model),
            as_base64=given.get("encoding_format") == "base64",
        )
        return DeferredResponse(partial(_answer, admit_request(wanted)))


async def _answer(request: EmbeddingRequest) -> HttpResponse:
    return HttpResponse(await embed_request(request), content_type="application/json")


def _texts(given: Given, model: EmbeddingModel) -> list[str]:
    """Return the texts. Raises Invalid."""
    texts: list[str] = []
    for number, each in enumerate(given):
        try:
            text = each if isinstance(each, str) else text_of_tokens(each, model.encoding)
        except UnknownTokenError as error:
            raise Invalid(str(error), fields={f"input.{number}": [str(error)]}) from None
        texts.append(text)
    check_tokens(texts, model)
    return texts


def _dimensions(given: int | None, model: EmbeddingModel) -> int | None:
    """Return the dimensions to ask for; None for the model's own. Raises Invalid."""
    if given is not None and given > model.dimensions:
        said = f"{model.alias} has {model.dimensions} dimensions."
        raise Invalid(said, fields={"dimensions": [said]})
    return given
