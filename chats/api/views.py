"""Serve chats and their messages: one view per address, one service per verb."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.principal import Principal
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_all_visible, get_visible, missing_first
from amber.lib.database.replica import may_be_stale
from amber.lib.errors import Invalid, Missing
from amber.lib.rest.pages import NewestFirst, limit_of
from amber.lib.rest.preferences import PREFER
from amber.lib.rest.wire import validate_body
from assistants.models import Assistant, ScenePrompt
from chats import services
from chats.api.schema import CHAT_EXAMPLES, MESSAGE_EXAMPLES, POSTED_RESPONSES
from chats.api.serializers import (
    BranchInput,
    ChatInput,
    ChatSerializer,
    EditInput,
    ExportSerializer,
    FoundMessagesSerializer,
    MessageInput,
    MessageSerializer,
    NewChatInput,
    RegenerateInput,
)
from chats.messages import search, transcript
from chats.messages.export import export_chat
from chats.messages.path_pages import path_page
from chats.messages.wire import chat_wire
from chats.models import Chat, ChatMessage, ChatOwner
from chats.streaming.negotiation import Streamable, answer_posted
from libraries.models import File

MAX_QUERY_CHARS = 500
_ARCHIVED = ["false", "true", "all"]
_ORDERS = ["created", "activity"]


def get_if_named(model: Any, principal: Principal, pk: UUID | None) -> Any:
    """Return the row that a body names, None for no name. Raises Missing: absent or not visible."""
    return None if pk is None else get_visible(model, principal, pk)


# -- Chats --------------------------------------------------------------------------------------


class _PagesInChosenOrder(NewestFirst):
    """Pages by creation, or by activity."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        if _choice(request, "order", _ORDERS, _ORDERS[0]) == "activity":
            self.column = "updated_at"
        return super().paginate_queryset(queryset, request, view)


class ChatsView(GenericAPIView[Chat]):
    pagination_class = _PagesInChosenOrder
    serializer_class = ChatSerializer
    bound_keys_may = ("GET", "POST")

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "owner",
                str,
                enum=ChatOwner.values,
                description="Default: user, or api with a key.",
            ),
            OpenApiParameter("q", str, description="Only chats with this text in their name."),
            OpenApiParameter(
                "archived",
                str,
                enum=_ARCHIVED,
                description="`true`: only archived chats; `all`: these and the others. Default: false.",
            ),
            OpenApiParameter("pinned", bool, description="Only those that are pinned, or not."),
            OpenApiParameter(
                "order",
                str,
                enum=_ORDERS,
                description="`activity`: those first that somebody asked last. Default: created.",
            ),
        ],
        responses=ChatSerializer(many=True),
    )
    @may_be_stale
    def get(self, request: Request) -> Response:
        """List your chats, newest first; `owner=api` lists those made with your keys."""
        principal = principal_of(request)
        default = ChatOwner.API if principal.key else ChatOwner.USER
        owner = _choice(request, "owner", ChatOwner.values, default)
        archived = _choice(request, "archived", _ARCHIVED, "false")
        rows = Chat.objects.visible_to(principal).filter(owner=owner)
        rows = rows.select_related("assistant").annotate_grants().annotate_live_turns()
        if archived != "all":
            rows = rows.filter(archived=archived == "true")
        if pinned := _choice(request, "pinned", ["", "true", "false"], ""):
            rows = rows.filter(pinned=pinned == "true")
        if words := request.query_params.get("q", "").strip():
            rows = rows.filter(name__icontains=words)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response([chat_wire(chat) for chat in page or ()])

    @extend_schema(
        request=NewChatInput,
        responses={201: ChatSerializer},
        parameters=[IDEMPOTENCY_KEY],
        examples=CHAT_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Create a chat, and ask its first `question` if there is one.

        Without a name it gets one from its first question.
        """
        principal = principal_of(request)
        given = validate_body(NewChatInput, request)
        question = given.pop("question", None)
        fields = _chat_fields(principal, given)
        if question is not None:
            files = get_all_visible(File, principal, question.pop("file_ids", ()))
            fields["question"] = {**question, "files": files}
        if principal.assistant_id and "assistant" not in fields:
            fields["assistant"] = get_if_named(Assistant, principal, principal.assistant_id)
        return answer_once(
            request, lambda claim: services.create_chat(principal, claim=claim, **fields), chat_wire
        )


def _choice(request: Request, name: str, among: Sequence[str], default: str) -> str:
    """Return this parameter of the query. Raises Invalid for what is not `among` its values."""
    said = request.query_params.get(name, default)
    if said not in among:
        raise Invalid(fields={name: [f"Must be one of {', '.join(filter(None, among))}."]})
    return said


class ChatView(APIView):
    bound_keys_may = ("GET", "PATCH", "DELETE")

    @extend_schema(responses=ChatSerializer)
    def get(self, request: Request, chat_id: UUID) -> Response:
        """Show the chat, without its messages."""
        return Response(chat_wire(get_visible(Chat, principal_of(request), chat_id)))

    @extend_schema(request=ChatInput, responses=ChatSerializer)
    def patch(self, request: Request, chat_id: UUID) -> Response:
        """Change the chat's name, assistant, prompt or pinned scene, pin or archive it; omitted
        fields stay."""
        principal = principal_of(request)
        chat = get_visible(Chat, principal, chat_id)
        fields = _chat_fields(principal, validate_body(ChatInput, request, partial=True))
        return Response(chat_wire(services.update_chat(chat, **fields)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, chat_id: UUID) -> Response:
        """Delete the chat with all its messages and turns; a running turn stops."""
        services.delete_chat(get_visible(Chat, principal_of(request), chat_id))
        return Response(status=204)


def _chat_fields(principal: Principal, given: dict[str, Any]) -> dict[str, Any]:
    """Return the columns to write: what is given, with the rows that its ids name."""
    fields = {name: value for name, value in given.items() if not name.endswith("_id")}
    if "assistant_id" in given:
        chosen = given["assistant_id"] or principal.assistant_id  # a bound key sees no other chat
        fields["assistant"] = get_if_named(Assistant, principal, chosen)
    if "pinned_scene_id" in given:
        fields["pinned_scene"] = get_if_named(ScenePrompt, principal, given["pinned_scene_id"])
    return fields


class BranchView(APIView):
    bound_keys_may = ("PUT",)

    @extend_schema(request=BranchInput, responses=ChatSerializer)
    def put(self, request: Request, chat_id: UUID) -> Response:
        """Show the branch that ends with this message, or the newest one that goes through it."""
        principal = principal_of(request)
        chat = get_visible(Chat, principal, chat_id)
        given = validate_body(BranchInput, request)
        (message_id,) = given.values()
        leaf = _message_of(chat.pk, principal, message_id)
        if "message_id" in given:
            leaf = transcript.newest_leaf(leaf)
        return Response(chat_wire(services.switch_branch(chat, leaf)))


def _message_of(chat_id: UUID, principal: Principal, message_id: UUID) -> ChatMessage:
    """Return a message of this chat. Raises Missing for a message of another chat."""
    message = get_visible(ChatMessage, principal, message_id)
    if message.chat_id != chat_id:
        raise Missing
    return message


class ChatExportView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(responses=ExportSerializer)
    @may_be_stale
    def get(self, request: Request, chat_id: UUID) -> Response:
        """Export the chat with all its branches, in the form that `chats/import/` accepts."""
        return Response(export_chat(get_visible(Chat, principal_of(request), chat_id)))


class MessageSearchView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "q",
                {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS},
                required=True,
                description="Words; a message must contain all of them.",
            ),
            OpenApiParameter("chat_id", UUID, description="Search only in this chat."),
        ],
        responses={200: FoundMessagesSerializer, 404: OpenApiResponse(description="No such chat.")},
    )
    @may_be_stale
    def get(self, request: Request) -> Response:
        """Find messages of your chats that contain all the words, best matches first."""
        principal = principal_of(request)
        query = request.query_params.get("q", "")
        if not query.strip() or len(query) > MAX_QUERY_CHARS:
            raise Invalid(fields={"q": [f"Must have 1 to {MAX_QUERY_CHARS} characters."]})
        chat = get_if_named(Chat, principal, _uuid(request, "chat_id"))
        found = search.search_messages(
            principal, query, chat_id=chat and chat.pk, limit=limit_of(request)
        )
        results = [
            {
                "message": message,
                "chat": {"id": str(hit.message.chat_id), "name": hit.message.chat.name},
                "score": hit.score,
            }
            for message, hit in zip(
                transcript.messages_to_wire([hit.message for hit in found]), found, strict=True
            )
        ]
        return Response({"results": results})


def _uuid(request: Request, name: str) -> UUID | None:
    text = request.query_params.get(name)
    try:
        return UUID(text) if text else None
    except ValueError:
        raise Invalid(fields={name: ["Must be a UUID."]}) from None


# -- Messages -----------------------------------------------------------------------------------


class MessagesView(Streamable, GenericAPIView[ChatMessage]):
    serializer_class = MessageSerializer
    bound_keys_may = ("GET", "POST")

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "branches", str, enum=["all"], description="List all branches, by age."
            ),
            OpenApiParameter(
                "around",
                UUID,
                description="Begin with the page around this message of the active branch.",
            ),
        ],
        responses=MessageSerializer(many=True),
    )
    def get(self, request: Request, chat_id: UUID) -> Response:
        """List the active branch.

        The first page is its end, oldest first; `previous` leads back.
        """
        chat = get_visible(Chat, principal_of(request), chat_id)
        branches = request.query_params.get("branches")
        if branches == "all":
            return self._all_branches(chat)
        if branches is not None:
            raise Invalid(fields={"branches": ["Must be `all` or left out."]})
        page = path_page(request, chat)
        results = transcript.messages_to_wire(page.messages)
        return Response({"next": page.next, "previous": page.previous, "results": results})

    def _all_branches(self, chat: Chat) -> Response:
        rows = chat.messages.select_related("assistant", "file")
        page = self.paginate_queryset(rows.defer("search"))
        answer = self.get_paginated_response(
            transcript.messages_to_wire(list(page or ())[::-1])
        ).data
        return Response({**answer, "next": answer["previous"], "previous": answer["next"]})

    @extend_schema(
        request=MessageInput,
        responses=POSTED_RESPONSES,
        parameters=[IDEMPOTENCY_KEY, PREFER],
        examples=MESSAGE_EXAMPLES,
    )
    def post(self, request: Request, chat_id: UUID) -> HttpResponseBase:
        """Post a message. A question starts a turn.

        With `Accept: text/event-stream` the turn is streamed in this answer; otherwise follow
        `turns/{id}/events/`.
        """
        principal = principal_of(request)
        with missing_first(Chat, principal, chat_id):
            given = validate_body(MessageInput, request)
        assistant = get_if_named(Assistant, principal, given.get("assistant_id"))
        file = get_if_named(File, principal, given.get("file_id"))
        files = get_all_visible(File, principal, given.get("file_ids", ()))
        parent_id = given.get("parent_id")
        parent = _message_of(chat_id, principal, parent_id) if parent_id else None
        return answer_posted(
            request,
            lambda claim: services.post_message(
                chat_id,
                principal,
                role=given["role"],
                content=given["content"],
                assistant=assistant,
                file=file,
                files=files,
                parent=parent,
                claim=claim,
            ),
        )


class MessageView(Streamable):
    bound_keys_may = ("GET", "PATCH", "DELETE")

    @extend_schema(responses=MessageSerializer)
    def get(self, request: Request, message_id: UUID) -> Response:
        """Show the message and the ids of its siblings on other branches."""
        message = get_visible(ChatMessage, principal_of(request), message_id)
        return Response(transcript.messages_to_wire([message])[0])

    @extend_schema(
        request=EditInput, responses=POSTED_RESPONSES, parameters=[IDEMPOTENCY_KEY, PREFER]
    )
    def patch(self, request: Request, message_id: UUID) -> HttpResponseBase:
        """Edit the message in a new branch; an edited question is asked again."""
        principal = principal_of(request)
        message = get_visible(ChatMessage, principal, message_id)
        content = validate_body(EditInput, request)["content"]
        return answer_posted(
            request,
            lambda claim: services.edit_message(message, principal, content=content, claim=claim),
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, message_id: UUID) -> Response:
        """Delete the message; the messages after it stay."""
        services.delete_message(get_visible(ChatMessage, principal_of(request), message_id))
        return Response(status=204)


class RegenerateView(Streamable):
    bound_keys_may = ("POST",)

    @extend_schema(
        request=RegenerateInput, responses=POSTED_RESPONSES, parameters=[IDEMPOTENCY_KEY, PREFER]
    )
    def post(self, request: Request, message_id: UUID) -> HttpResponseBase:
        """Ask this question, or the question of this answer, again in a new branch."""
        principal = principal_of(request)
        message = get_visible(ChatMessage, principal, message_id)
        given = validate_body(RegenerateInput, request)
        assistant = get_if_named(Assistant, principal, given.get("assistant_id"))
        return answer_posted(
            request,
            lambda claim: services.regenerate(message, principal, assistant=assistant, claim=claim),
        )
