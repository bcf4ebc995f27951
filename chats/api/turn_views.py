"""Serve turns: state, cancel, approve, manifest; and trying an assistant without a chat."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from amber.lib.errors import Missing
from amber.lib.rest.preferences import PREFER
from amber.lib.rest.wire import validate_body
from assistants.models import Assistant
from chats import services
from chats.api.manifest_serializers import ManifestSerializer, in_order
from chats.api.serializers import ApproveInput, TryInput, TurnSerializer
from chats.approval_services import approve_calls
from chats.context.manifest import manifest_with_memories, rebuild_messages
from chats.messages.wire import turn_wire
from chats.models import Turn
from chats.streaming.negotiation import Streamable, answer_turn
from chats.turns.queue_place import place_of
from engine.messages import MessageRole


class TurnView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(responses=TurnSerializer)
    def get(self, request: Request, turn_id: UUID) -> Response:
        """Show the turn's state, why it waits, what it used and why it ended."""
        turn = get_visible(Turn, principal_of(request), turn_id)
        return Response(turn_wire(turn, place_of(turn)))


class TurnCancelView(APIView):
    bound_keys_may = ("POST",)

    @extend_schema(request=None, responses=TurnSerializer)
    def post(self, request: Request, turn_id: UUID) -> Response:
        """Cancel the turn; text that was shown is kept. Answers 200 even if the turn is over."""
        turn = get_visible(Turn, principal_of(request), turn_id)
        return Response(turn_wire(services.cancel_turn(turn)))


class ApproveView(APIView):
    bound_keys_may = ("POST",)

    @extend_schema(request=ApproveInput, responses=TurnSerializer, parameters=[IDEMPOTENCY_KEY])
    def post(self, request: Request, turn_id: UUID) -> Response:
        """Allow or decline calls that the turn waits for; it continues once all are decided."""
        principal = principal_of(request)
        turn = get_visible(Turn, principal, turn_id)
        decisions = validate_body(ApproveInput, request)["decisions"]
        return answer_once(
            request,
            lambda claim: approve_calls(turn, principal, decisions, claim=claim),
            turn_wire,
            status=lambda _: 200,
        )


class ManifestView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(
        parameters=[OpenApiParameter("request", bool, description="true: rebuild the request.")],
        responses=ManifestSerializer,
    )
    def get(self, request: Request, turn_id: UUID) -> Response:
        """Show what went into the turn's request. Answers 404 until the request is composed.

        With `request=true` the answer also has the request's messages, rebuilt; null if something
        they were made of has been deleted since. `request_hash` shows whether they are the same.
        """
        turn = get_visible(Turn, principal_of(request), turn_id)
        if turn.manifest is None:
            raise Missing("This turn's request has not been composed yet.")
        manifest = in_order(manifest_with_memories(turn))
        if request.query_params.get("request") != "true":
            return Response(manifest)
        return Response({**manifest, "request": rebuild_messages(turn)})


class TryView(Streamable):
    bound_keys_may = ("POST",)

    @extend_schema(
        request=TryInput,
        parameters=[IDEMPOTENCY_KEY, PREFER],
        responses={
            201: TurnSerializer,
            202: OpenApiResponse(TurnSerializer, description="With `Prefer: respond-async`."),
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR, description="The turn's events."
            ),
        },
    )
    def post(self, request: Request, assistant_id: UUID) -> HttpResponseBase:
        """Ask an assistant without a chat; the answer is kept for a short while only."""
        principal = principal_of(request)
        assistant = get_visible(Assistant, principal, assistant_id)
        given = validate_body(TryInput, request)
        question: dict[str, Any] = {"role": MessageRole.HUMAN, "content": given["content"]}
        messages = [*map(dict, given.get("history", ())), question]
        return answer_turn(
            request,
            lambda claim: services.start_stateless_turn(
                principal, assistant=assistant, messages=messages, claim=claim
            ),
        )
