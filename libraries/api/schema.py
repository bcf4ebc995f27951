"""Describe files in OpenAPI beyond their shapes: examples, headers, bytes."""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from libraries.models import DocumentStage, DocumentStatus

FILE_EXAMPLES: Final = [
    OpenApiExample(
        "From an address",
        value={"url": "https://www.example.com/plans/kitchen.png"},
        request_only=True,
        media_type="application/json",
    ),
    OpenApiExample(
        "An image",
        value={
            "id": "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00",
            "name": "kitchen.png",
            "mime_type": "image/png",
            "size": 48213,
            "file_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "url": "https://www.example.com/plans/kitchen.png",
            "expired_at": None,
            "created_at": "2031-05-04T09:30:00.120000Z",
        },
        response_only=True,
    ),
]

DOCUMENT_FILTERS: Final = [
    OpenApiParameter("status", str, enum=DocumentStatus.values),
    OpenApiParameter(
        "stage", str, enum=DocumentStage.values, description="The last finished stage."
    ),
    OpenApiParameter("path_prefix", str, description="Only paths that begin with this."),
]

NOT_FETCHED: Final[dict[int, OpenApiResponse]] = {
    400: OpenApiResponse(description="The address does not answer with a file that can be read."),
    413: OpenApiResponse(description="The file at the address is too large."),
}
CONTENT_PARAMETERS: Final = [
    OpenApiParameter(
        "inline",
        str,
        enum=["1"],
        description="Show an image in the page instead of downloading it.",
    ),
    OpenApiParameter(
        "signature", str, description="From a link made by Amber; replaces the credential."
    ),
    OpenApiParameter(
        "If-None-Match",
        str,
        OpenApiParameter.HEADER,
        description="The `ETag` of an earlier answer.",
    ),
]
CONTENT_RESPONSES: Final[dict[Any, Any]] = {
    (200, "*/*"): OpenApiResponse(
        OpenApiTypes.BINARY,
        description="The bytes, as the file's `mime_type`: an image that Amber encoded, "
        "`text/plain`, `text/markdown`, `text/csv`, `application/json`, or else "
        "`application/octet-stream`.",
    ),
    304: OpenApiResponse(description="The bytes have not changed since this `ETag`."),
}
