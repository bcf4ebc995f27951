"""Serve the messages that a memory comes from. It is here since `memory` knows no messages."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from chats.api.serializers import SourcesSerializer
from chats.messages import transcript
from chats.models import ChatMessage
from memory.models import Memory


class MemorySourcesView(APIView):
    bound_keys_may = ("GET",)

    @extend_schema(responses=SourcesSerializer)
    def get(self, request: Request, memory_id: UUID) -> Response:
        """List the messages that the memory rests on and that still exist, oldest first."""
        principal = principal_of(request)
        memory = get_visible(Memory, principal, memory_id, without=("vector", "search"))
        seen = ChatMessage.objects.visible_to(principal).filter(pk__in=memory.evidence)
        rows = list(seen.select_related("chat").defer("search").order_by("created_at", "pk"))
        transcript.attach_related(rows)
        results = [
            {"message": message, "chat": {"id": str(row.chat_id), "name": row.chat.name}}
            for message, row in zip(transcript.messages_to_wire(rows), rows, strict=True)
        ]
        return Response({"results": results})
