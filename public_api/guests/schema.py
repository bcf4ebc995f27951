"""Describe guests' event stream in OpenAPI: their one route that is a plain Django view."""

from copy import deepcopy
from typing import Any, Final

from chats.api.schema import EVENTS_PATH

PATH: Final = "/api/v1/public/assistants/{assistant_id}/turns/{turn_id}/events/"

_ASSISTANT_ID: Final = {
    "in": "path",
    "name": "assistant_id",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
}


def document_guest_events(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe the stream of `chats.api.schema.document_events` at the guests' address.

    A drf-spectacular hook, which comes after that one: changes `result` in place and returns it.
    """
    operation = deepcopy(result["paths"][EVENTS_PATH]["get"])
    operation |= {
        "operationId": "public_assistants_turns_events_retrieve",
        "tags": ["public"],
        "security": [{"guestToken": []}],
        "parameters": [_ASSISTANT_ID, *operation["parameters"]],
    }
    result["paths"][PATH] = {"get": operation}
    return result
