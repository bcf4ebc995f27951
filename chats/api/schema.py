"""Add to OpenAPI what the serializers of chats do not say: examples, streams, the plain Django
route."""

from copy import deepcopy
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from pydantic import TypeAdapter

from chats.api.serializers import PostedSerializer
from engine.events import AnyEvent

POSTED_RESPONSES: Final[dict[Any, Any]] = {
    201: PostedSerializer,
    202: OpenApiResponse(PostedSerializer, description="With `Prefer: respond-async`."),
    (200, "text/event-stream"): OpenApiResponse(
        OpenApiTypes.STR,
        description="With `Accept: text/event-stream`: the turn's events, beginning "
        "with `turn.started` (docs/stream-protocol.md).",
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

EVENTS_PATH: Final = "/api/v1/turns/{turn_id}/events/"

_EVENTS_OPERATION: Final[dict[str, Any]] = {
    "operationId": "turns_events_retrieve",
    "summary": "Stream the turn's events, from the start or after `Last-Event-ID`, to its end",
    "description": "Each `data:` line is one `TurnEvent` (docs/stream-protocol.md).",
    "tags": ["turns"],
    "security": [{"apiKey": []}, {"session": []}],
    "parameters": [
        {
            "in": "path",
            "name": "turn_id",
            "required": True,
            "schema": {"type": "string", "format": "uuid"},
        },
        {
            "in": "header",
            "name": "Last-Event-ID",
            "description": "The number of the last event that the client received.",
            "schema": {"type": "integer", "minimum": 0},
        },
        {
            "in": "query",
            "name": "last_event_id",
            "description": "The same, for clients that cannot send the header.",
            "schema": {"type": "integer", "minimum": 0},
        },
    ],
    "responses": {
        "200": {
            "description": "Server-sent events, and a comment as a heartbeat every 15 seconds.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": "id: 2\nevent: text.delta\n"
                    'data: {"event":"text.delta","seq":2,"turn_id":"…","step":1,"text":"Hi"}\n\n',
                }
            },
        }
    },
}


def document_events(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the events' route, a plain Django view, and its events: a drf-spectacular hook.

    Changes `result` in place and returns it.
    """
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    form = "#/components/schemas/{model}Event"
    events = TypeAdapter(AnyEvent).json_schema(ref_template=form)
    for name, schema in events.pop("$defs").items():
        schemas[f"{name}Event"] = _openapi_3_0(schema)
    schemas["TurnEvent"] = events
    result.setdefault("paths", {})[EVENTS_PATH] = {"get": deepcopy(_EVENTS_OPERATION)}
    return result


def _openapi_3_0(schema: Any) -> Any:
    """Rewrite a schema for OpenAPI 3.0, which knows neither `const` nor the type null."""
    if isinstance(schema, list):
        return [_openapi_3_0(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _openapi_3_0(value) for name, value in schema.items()}
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    if {"type": "null"} in plain.get("anyOf", ()):
        (only,) = [each for each in plain.pop("anyOf") if each != {"type": "null"}]
        plain |= only | {"nullable": True}
    return plain
