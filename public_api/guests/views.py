"""Serve visitors of web pages: one public assistant, and a guest's chats with it.

The same services and serializers as for members (`chats.api.views`), with a guest as principal. A
guest cannot change the prompt, the assistant or the branches of a chat, and sees nothing hidden.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.principal import Principal
from accounts.registry import PublicAssistant, public_assistant
from accounts.sign_in.authentication import (
    GuestAuthentication,
    authenticate,
    check_page,
    principal_of,
)
from accounts.sign_in.guest_tokens import new_guest_token
from accounts.sign_in.rates import spend_guest_token
from accounts.tenancy.access import get_all_visible, get_visible, missing_first
from amber.lib.database.tenant import act_as
from amber.lib.errors import Missing, NotAuthenticated
from amber.lib.rest.preferences import PREFER
from amber.lib.rest.wire import validate_body
from assistants.models import Assistant
from chats import services
from chats.api.feedback_views import FeedbackInput, FeedbackSerializer
from chats.api.schema import POSTED_RESPONSES
from chats.api.serializers import ChatSerializer, MessageSerializer, TurnSerializer
from chats.feedback_services import give_feedback, withdraw_feedback
from chats.messages import transcript
from chats.messages.path_pages import path_page
from chats.messages.wire import chat_wire, feedback_wire, turn_wire
from chats.models import Chat, ChatMessage, Turn
from chats.streaming.negotiation import Streamable, answer_posted
from chats.streaming.stream_view import TurnEventsView
from libraries.models import File
from public_api.guests.serializers import (
    CardSerializer,
    GuestChatInput,
    GuestMessageInput,
    GuestTokenSerializer,
)


class ForAnybody(APIView):
    """A view for everybody, which looks at no credential."""

    authentication_classes = []
    permission_classes = []


class ForGuests(APIView):
    """A view for guests of the assistant in the address only."""

    authentication_classes = [GuestAuthentication]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        refuse_elsewhere(principal_of(request), kwargs["assistant_id"])


def refuse_elsewhere(principal: Principal, assistant_id: UUID) -> None:
    """Raise Missing for a guest of another assistant."""
    if principal.assistant_id != assistant_id:
        raise Missing


def guest_rows_expire_at() -> datetime:
    """Return when the rows that a guest creates now expire."""
    return timezone.now() + timedelta(days=settings.AMBER_GUEST_CHAT_DAYS)


# -- The assistant ------------------------------------------------------------------------------


class CardView(ForAnybody):
    @extend_schema(operation_id="public_assistant", responses=CardSerializer)
    def get(self, request: Request, assistant_id: UUID) -> Response:
        """Show what the assistant tells about itself. 404 unless it is public."""
        found = _load_public_assistant(request._request, assistant_id)
        visitor = Principal(
            found.organization_id, None, role="guest", guest_id="", assistant_id=found.id
        )
        act_as(visitor.tenant)
        return Response(CardSerializer(get_visible(Assistant, visitor, assistant_id)).data)


class TokenView(ForAnybody):
    @extend_schema(
        operation_id="public_assistant_token", request=None, responses={201: GuestTokenSerializer}
    )
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Become a guest. Keep the token secret: until it expires, whoever has it acts as you."""
        assistant = _load_public_assistant(request._request, assistant_id)
        spend_guest_token(request._request)
        token, text = new_guest_token(assistant)
        given = {"token": text, "guest_id": token.guest_id, "expires_at": token.ends_at}
        return Response(GuestTokenSerializer(given).data, status=201)


def _load_public_assistant(request: HttpRequest, assistant_id: UUID) -> PublicAssistant:
    """Return an assistant that takes guests from this page. Raises Missing, Forbidden."""
    assistant = public_assistant(assistant_id)
    if assistant is None:
        raise Missing
    check_page(assistant, request)
    return assistant


# -- Chats and messages -------------------------------------------------------------------------


class GuestChatsView(ForGuests, GenericAPIView[Chat]):
    serializer_class = ChatSerializer

    @extend_schema(responses=ChatSerializer(many=True))
    def get(self, request: Request, assistant_id: UUID) -> Response:
        """List your chats, newest first."""
        rows = Chat.objects.visible_to(principal_of(request)).select_related("assistant")
        page = self.paginate_queryset(rows.annotate_live_turns())
        return self.get_paginated_response([chat_wire(chat) for chat in page or ()])

    @extend_schema(
        request=GuestChatInput, responses={201: ChatSerializer}, parameters=[IDEMPOTENCY_KEY]
    )
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Create a chat, which expires. 409 if you have too many."""
        principal = principal_of(request)
        given = validate_body(GuestChatInput, request)
        assistant = get_visible(Assistant, principal, assistant_id)
        return answer_once(
            request,
            lambda claim: services.create_chat(
                principal,
                at_most=settings.AMBER_GUEST_MAX_CHATS,
                claim=claim,
                assistant=assistant,
                expired_at=guest_rows_expire_at(),
                **given,
            ),
            chat_wire,
        )


class GuestChatView(ForGuests):
    @extend_schema(responses=ChatSerializer)
    def get(self, request: Request, assistant_id: UUID, chat_id: UUID) -> Response:
        """Show a chat without its messages."""
        return Response(chat_wire(get_visible(Chat, principal_of(request), chat_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assistant_id: UUID, chat_id: UUID) -> Response:
        """Delete a chat with all its messages and turns. A running turn is stopped."""
        services.delete_chat(get_visible(Chat, principal_of(request), chat_id))
        return Response(status=204)


class GuestMessagesView(ForGuests, Streamable, GenericAPIView[ChatMessage]):
    serializer_class = MessageSerializer

    @extend_schema(responses=MessageSerializer(many=True))
    def get(self, request: Request, assistant_id: UUID, chat_id: UUID) -> Response:
        """Show the conversation. The first page is its end, oldest first; `previous` leads back."""
        page = path_page(request, get_visible(Chat, principal_of(request), chat_id))
        results = transcript.messages_to_wire([m for m in page.messages if not m.hidden])
        return Response({"next": page.next, "previous": page.previous, "results": results})

    @extend_schema(
        request=GuestMessageInput,
        responses=POSTED_RESPONSES,
        parameters=[IDEMPOTENCY_KEY, PREFER],
    )
    def post(self, request: Request, assistant_id: UUID, chat_id: UUID) -> HttpResponseBase:
        """Ask a question. With `Accept: text/event-stream` the answer is streamed here, else follow
        `turns/{id}/events/`. Role `file` adds a file that the next question is about."""
        principal = principal_of(request)
        with missing_first(Chat, principal, chat_id):
            given = validate_body(GuestMessageInput, request)
        file_id = given.get("file_id")
        file = get_visible(File, principal, file_id) if file_id else None
        files = get_all_visible(File, principal, given.get("file_ids", ()))
        return answer_posted(
            request,
            lambda claim: services.post_message(
                chat_id,
                principal,
                role=given["role"],
                content=given["content"],
                file=file,
                files=files,
                claim=claim,
            ),
        )


class GuestFeedbackView(ForGuests):
    @extend_schema(request=FeedbackInput, responses=FeedbackSerializer)
    def put(self, request: Request, assistant_id: UUID, message_id: UUID) -> Response:
        """Say what you think of this answer; it replaces what you said before.

        The admins of the assistant's organization read it, and not the answer.
        """
        principal = principal_of(request)
        message = _shown_message(principal, message_id)
        given = validate_body(FeedbackInput, request)
        return Response(feedback_wire(give_feedback(message, principal, **given)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assistant_id: UUID, message_id: UUID) -> Response:
        """Take back what you said about this answer."""
        principal = principal_of(request)
        withdraw_feedback(_shown_message(principal, message_id), principal)
        return Response(status=204)


def _shown_message(principal: Principal, message_id: UUID) -> ChatMessage:
    """Return a message that the guest sees. Raises Missing."""
    message = get_visible(ChatMessage, principal, message_id)
    if message.hidden:
        raise Missing
    return message


class GuestRegenerateView(ForGuests, Streamable):
    @extend_schema(request=None, responses=POSTED_RESPONSES, parameters=[IDEMPOTENCY_KEY, PREFER])
    def post(self, request: Request, assistant_id: UUID, message_id: UUID) -> HttpResponseBase:
        """Ask the question of this message, or of this answer, again."""
        principal = principal_of(request)
        message = get_visible(ChatMessage, principal, message_id)
        return answer_posted(
            request, lambda claim: services.regenerate(message, principal, claim=claim)
        )


# -- Turns --------------------------------------------------------------------------------------


class GuestTurnView(ForGuests):
    @extend_schema(responses=TurnSerializer)
    def get(self, request: Request, assistant_id: UUID, turn_id: UUID) -> Response:
        """Show the current state of a turn, and why it ended."""
        return Response(turn_wire(get_visible(Turn, principal_of(request), turn_id)))


class GuestCancelView(ForGuests):
    @extend_schema(request=None, responses=TurnSerializer)
    def post(self, request: Request, assistant_id: UUID, turn_id: UUID) -> Response:
        """Cancel a turn. Text that was shown is kept. 200 also if it has already ended."""
        turn = get_visible(Turn, principal_of(request), turn_id)
        return Response(turn_wire(services.cancel_turn(turn)))


class GuestTurnEventsView(TurnEventsView):
    """Streams a turn's events: GET public/assistants/{id}/turns/{id}/events/."""

    def authenticate_viewer(self, request: HttpRequest, **place: UUID) -> Principal:
        principal = authenticate(request, for_guests=True)
        if principal is None:
            raise NotAuthenticated
        refuse_elsewhere(principal, place["assistant_id"])
        return principal
