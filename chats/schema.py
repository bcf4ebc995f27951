"""What OpenAPI says about chats beyond their shapes: examples, streams, the plain Django route."""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from chats.serializers import PostedSerializer

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The same key and body give the first answer again, for 24 hours.",
)

POSTED_RESPONSES: Final[dict[Any, Any]] = {
    201: PostedSerializer,
    (200, "text/event-stream"): OpenApiResponse(
        OpenApiTypes.STR,
        description="With `Accept: text/event-stream`: the turn's events, from `turn.started` on "
        "(docs/stream-protocol.md).",
    ),
}

CHAT_EXAMPLES: Final = [
    OpenApiExample(
        "With an assistant",
        value={"assistant_id": "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00"},
        request_only=True,
    )
]
MESSAGE_EXAMPLES: Final = [
    OpenApiExample("A question", value={"role": "human", "content": "Hi"}, request_only=True),
    OpenApiExample(
        "An instruction for what follows",
        value={"role": "system", "content": "Answer in French."},
        request_only=True,
    ),
]
