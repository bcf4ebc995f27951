"""Answer a conversation in OpenAI's form, and return it with the answer: `POST /chat`."""

from functools import partial
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.models import Scope
from accounts.principal import Principal
from accounts.sign_in.authentication import PrincipalAuthentication, principal_of
from accounts.tenancy.access import get_visible
from accounts.tenancy.idempotency import Replay, once
from amber.lib.errors import Forbidden, Missing
from amber.lib.json_text import numbers
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.wire import validate_body
from chats.messages.turn_messages import shown_entries_of_turn
from chats.models import Turn
from chats.streaming.turn_follower import wait_for_end
from public_api.openai.messages import from_output
from public_api.openai.serializers import ChatProxyInput, ChatProxySerializer
from public_api.services import start_chat


class PublicAuthentication(PrincipalAuthentication):
    scope = Scope.PUBLIC


class ChatProxyView(APIView):
    authentication_classes = [PublicAuthentication]

    @extend_schema(
        operation_id="chat",
        auth=[{"apiKey": []}],  # type: ignore[list-item]  # goes into the document as it is
        request=ChatProxyInput,
        parameters=[IDEMPOTENCY_KEY],
        tags=["public API"],
        responses={
            200: ChatProxySerializer,
            502: OpenApiResponse(description="The model failed to answer; `code` tells why."),
        },
    )
    def post(self, request: Request) -> DeferredResponse:
        """Answer a conversation, with all tools. Nothing is stored: send the whole history each
        time.

        If the client disconnects the turn is cancelled, unless an Idempotency-Key allows it to come
        back for the answer.
        """
        principal = _require_key(principal_of(request))
        given = validate_body(ChatProxyInput, request)
        key = request.headers.get("Idempotency-Key")
        done = once(
            principal,
            route="POST /chat",
            key=key,
            body=request.data,
            work=lambda claim: start_chat(
                principal, messages=given["messages"], model=given.get("model") or "", claim=claim
            ),
        )
        turn = get_visible(Turn, principal, done.answer["id"]) if isinstance(done, Replay) else done
        sent: Any = request.data["messages"]  # type: ignore[call-overload]  # an object: it is valid
        return DeferredResponse(partial(_answer, turn, sent, is_kept=key is not None))


def _require_key(principal: Principal) -> Principal:
    """Return the key's principal. Raises Forbidden for others."""
    if principal.key is None:
        raise Forbidden("This address accepts API keys only.")
    return principal


async def _answer(turn: Turn, sent: list[Any], *, is_kept: bool) -> HttpResponse:
    """Return the answer. Raises as `wait_for_end`, and Missing if it was erased meanwhile."""
    ended = await wait_for_end(turn, is_kept=is_kept)
    if ended.output is None:
        raise Missing
    messages = [*sent, *from_output(shown_entries_of_turn(ended))]
    return HttpResponse(numbers.write({"messages": messages}), content_type="application/json")
