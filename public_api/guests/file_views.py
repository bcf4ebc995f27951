"""Serve files of guests: those they send to an assistant, and those it made for them."""

from uuid import UUID

from django.conf import settings
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.answers import answer_once
from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.access import get_visible
from amber.lib.errors import Forbidden, TooLarge
from amber.lib.rest.wire import StrictMultiPartParser, validate_body
from assistants.models import Assistant
from libraries.api.file_serializers import FileSerializer, UploadInput
from libraries.api.file_views import AnyType
from libraries.api.schema import CONTENT_RESPONSES
from libraries.api.uploads import read_upload
from libraries.files import services
from libraries.files.response import file_response
from libraries.models import File
from libraries.wire import file_wire
from public_api.guests.views import ForGuests, guest_rows_expire_at

_FORM_BYTES = 100_000
"""The most bytes by which a form is longer than its file."""


class GuestFilesView(ForGuests):
    parser_classes = [StrictMultiPartParser]

    @extend_schema(
        request={"multipart/form-data": UploadInput},
        responses={201: FileSerializer},
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request, assistant_id: UUID) -> Response:
        """Upload a file for a message. 403 unless the assistant's card says `takes_files`."""
        principal = principal_of(request)
        if not get_visible(Assistant, principal, assistant_id).guest_files:
            raise Forbidden("This assistant does not accept files.")
        _refuse_long(int(request.META.get("CONTENT_LENGTH") or 0) - _FORM_BYTES)
        name, data = read_upload(validate_body(UploadInput, request)["file"])
        _refuse_long(data.size)
        return answer_once(
            request,
            lambda claim: services.store_upload(
                principal,
                name=name,
                data=data,
                expired_at=guest_rows_expire_at(),
                at_most=settings.AMBER_GUEST_MAX_FILES,
                claim=claim,
            ),
            file_wire,
            body={"name": name, "sha256": data.sha256},
        )


def _refuse_long(size_bytes: int) -> None:
    """Raise TooLarge for a form with too large a file."""
    if size_bytes > settings.AMBER_GUEST_MAX_FILE_BYTES:
        raise TooLarge(f"A file may have at most {settings.AMBER_GUEST_MAX_FILE_BYTES:,} bytes.")


class GuestFileContentView(ForGuests):
    content_negotiation_class = AnyType

    @extend_schema(responses=CONTENT_RESPONSES)
    def get(self, request: Request, assistant_id: UUID, file_id: UUID) -> HttpResponseBase:
        """Download a file of yours. Also HEAD."""
        return file_response(request._request, get_visible(File, principal_of(request), file_id))
