"""Serve a person's changes (`chats.events.changes`) as server-sent events, for as long as they stay.

The request gives its database connections back before the stream begins.
"""

import asyncio
from collections.abc import AsyncIterator

from django.conf import settings
from django.db import connections
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from accounts.sign_in.authentication import principal_of
from accounts.sign_in.credentials import credential_of
from amber.lib.errors import Forbidden
from amber.lib.rest.wire_serializers import serializer_of
from chats.events.change_viewers import ChangeViewer, change_hub
from chats.events.changes import ChangeWire, changes_channel
from chats.streaming.negotiation import Streamable
from chats.streaming.stream_view import HEARTBEAT, stream_response

ChangeSerializer = serializer_of(ChangeWire)


class ChangesView(Streamable):
    @extend_schema(
        operation_id="events",
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                ChangeSerializer,
                description="Server-sent events, each `data:` line of which is such an object, and "
                "a comment as a heartbeat every 15 seconds (docs/stream-protocol.md).",
            )
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Stream what changes among your chats, for as long as you stay. The first event is `ready`."""
        principal = principal_of(request)
        if principal.user_id is None or principal.guest_id is not None:
            raise Forbidden
        channel = changes_channel(principal.organization_id, principal.user_id)
        response = stream_response(_bytes(ChangeViewer(channel, credential_of(principal))))
        connections.close_all()
        return response


async def _bytes(viewer: ChangeViewer) -> AsyncIterator[bytes]:
    hub = change_hub()
    await hub.add(viewer)
    try:
        while True:
            try:
                async with asyncio.timeout(settings.AMBER_STREAM_HEARTBEAT_SECONDS):
                    change = await viewer.queue.get()
            except TimeoutError:
                yield HEARTBEAT
                continue
            if change is None:
                return  # the client reconnects; it gets a 401, or another process
            yield b"data: %s\n\n" % change
    finally:
        await hub.remove(viewer)
