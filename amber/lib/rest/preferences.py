"""Read the header `Prefer`: whether a client would rather not wait (RFC 7240)."""

from typing import Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

RESPOND_ASYNC: Final = "respond-async"

PREFER: Final = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: answer at once with 202 and a Location to poll.",
)


def prefers_async(request: Request) -> bool:
    """Return whether the client prefers not to wait; other preferences are ignored (RFC 7240)."""
    given = request.headers.get("Prefer", "").split(",")
    return RESPOND_ASYNC in {each.partition(";")[0].strip().lower() for each in given}


def accepted_headers(location: str) -> dict[str, str]:
    """Return the headers of a 202."""
    return {"Location": location, "Preference-Applied": RESPOND_ASYNC}
