"""Serve single questions to a library: `libraries/{id}/ask/`."""

from functools import partial
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from amber.lib.errors import Missing
from amber.lib.json_text import numbers
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.bounded_fields import BoundedListField
from amber.lib.rest.wire import validate_body
from chats.asking import LibraryQuestion, answer_of, ask_library
from chats.streaming.turn_follower import wait_for_end
from libraries.api.search_serializers import PassageSerializer
from libraries.models import Library
from providers.registry import is_known_alias

MAX_QUESTION_CHARS = 20_000
MAX_HISTORY = 50


class ExchangeInput(serializers.Serializer[object]):
    """One earlier exchange: what the user said and what was answered."""

    user = serializers.CharField(max_length=MAX_QUESTION_CHARS)
    assistant = serializers.CharField(max_length=200_000)


class AskInput(serializers.Serializer[object]):
    question = serializers.CharField(max_length=MAX_QUESTION_CHARS)
    history = BoundedListField(child=ExchangeInput(), required=False, max_length=MAX_HISTORY)
    model = serializers.CharField(required=False, allow_blank=True, max_length=120)

    def validate_model(self, alias: str) -> str:
        if not is_known_alias(alias):
            raise serializers.ValidationError("No enabled model has this alias.")
        return alias


class AnswerSerializer(serializers.Serializer[object]):
    answer = serializers.CharField()
    citations = PassageSerializer(many=True)
    turn_id = serializers.UUIDField()


class AskView(APIView):
    @extend_schema(request=AskInput, responses=AnswerSerializer)
    def post(self, request: Request, library_id: UUID) -> DeferredResponse:
        """Ask the library one question and wait for the answer.

        If the model fails, the answer is 502 and `code` says why. If the client disconnects, the
        turn is cancelled.
        """
        principal = principal_of(request)
        library = get_visible(Library, principal, library_id)
        given = validate_body(AskInput, request)
        asked = ask_library(
            library,
            principal,
            question=given["question"],
            history=given.get("history", ()),
            model=given.get("model", ""),
        )
        return DeferredResponse(partial(_answer, asked, principal))


async def _answer(asked: LibraryQuestion, caller: Principal) -> HttpResponse:
    ended = await wait_for_end(asked.turn, viewed_by=caller)
    if ended.output is None:
        raise Missing
    body = {**answer_of(ended, asked.knowledge), "turn_id": str(ended.pk)}
    return HttpResponse(numbers.write(body), content_type="application/json")
