"""Serve OpenAI's responses, answers that have an id, by turns: /v1/responses."""

from functools import partial
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.idempotency import once
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.orderly import OrderlyView
from amber.lib.rest.preferences import PREFER, accepted_headers, prefers_async
from amber.lib.rest.wire import validate_body, validate_query
from chats.call_services import forget_turn
from chats.services import cancel_turn
from public_api.completions.serializers import MAX_USER_CHARS
from public_api.openai.answerers import answerer_named, asking_as
from public_api.openai.answering import turn_of, whole_answer
from public_api.openai.view import OpenAIView, describe_operation
from public_api.responses.answering import (
    form_of,
    response_of,
    settled_response,
    streamed_response,
    whole_response,
)
from public_api.responses.inputs import input_items, page
from public_api.responses.names import response_id
from public_api.responses.request import ResponseRequest
from public_api.responses.serializers import MAX_ID_CHARS, ResponseInput
from public_api.responses.services import (
    asked_of,
    response_turn,
    start_response,
)

ROUTE: Final = "POST /v1/responses"

_OBJECT: Final = OpenApiResponse(OpenApiTypes.OBJECT, description="A response.")
_EVENTS: Final = OpenApiResponse(
    OpenApiTypes.STR, description="With `stream`: the typed events of the response, then `[DONE]`."
)
_USER: Final = OpenApiParameter("user", str, description="The guest that the response belongs to.")


class DeletedResponseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    object = serializers.ChoiceField(["response"])
    deleted = serializers.BooleanField()


class RetrieveInput(serializers.Serializer[Any]):
    """The query of a retrieval."""

    stream = serializers.BooleanField(default=False)
    starting_after = serializers.IntegerField(default=-1, min_value=-1)


class PageInput(serializers.Serializer[Any]):
    """The query of a list; other fields are ignored."""

    after = serializers.CharField(default="", max_length=MAX_ID_CHARS)
    limit = serializers.IntegerField(default=20, min_value=1, max_value=100)
    order = serializers.ChoiceField(["asc", "desc"], default="desc")


class ResponsesView(OrderlyView, OpenAIView):
    bound_keys_may = ("POST",)

    @describe_operation(
        "createResponse",
        request=ResponseInput,
        parameters=[IDEMPOTENCY_KEY, PREFER],
        responses={
            (200, "application/json"): _OBJECT,
            (200, "text/event-stream"): _EVENTS,
            202: OpenApiResponse(OpenApiTypes.OBJECT, description="With `respond-async`."),
        },
    )
    def post(self, request: Request) -> DeferredResponse | Response:
        """Answer an input: whole, as a stream, or in the background. It may follow an earlier
        response.

        A client that disconnects cancels the response, unless it is in the background or in a
        stored chat, or an Idempotency-Key allows it to come back for it.
        """
        given = validate_body(ResponseInput, request)
        is_async = prefers_async(request) and given.get("store") is not False  # else lost for good
        asked = ResponseRequest.read(given, is_async=is_async)
        principal = principal_of(request)
        answerer = answerer_named(principal, asked.asked.model)
        caller = asking_as(principal, asked.asked.user)
        key = request.headers.get("Idempotency-Key")
        done = once(
            caller,
            route=ROUTE,
            key=key,
            body=request.data,
            work=lambda claim: start_response(caller, asked, answerer, claim=claim),
        )
        turn = turn_of(done, caller)
        is_background = asked.asked.is_background
        is_kept = is_background or key is not None or turn.chat_id is not None
        if asked.streams:
            form = form_of(turn)
            return DeferredResponse(partial(streamed_response, turn, form, is_kept=is_kept))
        if is_background:
            where = accepted_headers(f"{request.path}/{response_id(turn)}") if is_async else {}
            return Response(response_of(turn), status=202 if is_async else 200, headers=where)
        tell = partial(whole_response, form_of(turn))
        return DeferredResponse(partial(whole_answer, turn, tell, is_kept=is_kept))


class ResponseView(OpenAIView):
    bound_keys_may = ("GET", "DELETE")

    @describe_operation(
        "getResponse",
        parameters=[RetrieveInput, _USER],
        responses={
            (200, "application/json"): _OBJECT,
            (200, "text/event-stream"): _EVENTS,
        },
    )
    def get(self, request: Request, response_id: str) -> DeferredResponse | Response:
        """Show the current state of a response. With `stream=true` its events, beginning after the
        one whose number is `starting_after`."""
        turn = response_turn(_caller(request), response_id)
        given = validate_query(RetrieveInput, request)
        if not given["stream"]:
            return Response(response_of(turn))
        number: int = given["starting_after"]
        return DeferredResponse(
            partial(streamed_response, turn, form_of(turn), number=number, is_kept=True)
        )

    @describe_operation(
        "deleteResponse",
        parameters=[_USER],
        responses={200: DeletedResponseSerializer},
    )
    def delete(self, request: Request, response_id: str) -> Response:
        """Delete a response with its texts. A running one is cancelled. A stored chat keeps its
        messages."""
        forget_turn(response_turn(_caller(request), response_id))
        return Response({"id": response_id, "object": "response", "deleted": True})


class InputItemsView(OpenAIView):
    bound_keys_may = ("GET",)

    @describe_operation(
        "listInputItems",
        parameters=[PageInput, _USER],
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="A page of items."),
        },
    )
    def get(self, request: Request, response_id: str) -> Response:
        """List the input of a response, including earlier items of its conversation. In a stored
        chat only what was new."""
        turn = response_turn(_caller(request), response_id)
        wanted = validate_query(PageInput, request)
        items = input_items(turn.pk.hex, asked_of(turn))
        is_descending = wanted["order"] == "desc"
        return Response(
            page(items, after=wanted["after"], limit=wanted["limit"], is_descending=is_descending)
        )


class CancelResponseView(OpenAIView):
    bound_keys_may = ("POST",)

    @describe_operation(
        "cancelResponse",
        request=None,
        parameters=[_USER],
        responses={200: _OBJECT},
    )
    def post(self, request: Request, response_id: str) -> DeferredResponse:
        """Cancel a response. Text that was written is kept. One that has ended does not change."""
        turn = cancel_turn(response_turn(_caller(request), response_id))
        return DeferredResponse(partial(settled_response, turn))


def _caller(request: Request) -> Principal:
    return asking_as(principal_of(request), request.query_params.get("user", "")[:MAX_USER_CHARS])
