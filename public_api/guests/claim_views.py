"""Let people who signed in take over what they left as guests: `POST me/claim/`."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.views import person
from accounts.registry import public_assistant
from accounts.sign_in.authentication import HasPrincipal, InPerson, principal_in, principal_of
from accounts.sign_in.guest_tokens import GuestToken, read_guest_token
from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.errors import Forbidden, Invalid, Missing
from amber.lib.rest.wire import validate_body
from operations.privacy.guest_claim import claim_guest
from public_api.guests.serializers import ClaimedSerializer, ClaimInput

_NO_TOKEN = "This token is unknown or has expired."
_STRANGERS = (
    "Only members of the assistant's organization can keep what they said to it as guests. Ask for an "
    "invitation; the token can be claimed until it ends."
)


class ClaimView(APIView):
    permission_classes = [HasPrincipal, InPerson]

    @extend_schema(request=ClaimInput, responses=ClaimedSerializer)
    def post(self, request: Request) -> Response:
        """Make a guest's chats, files and memories yours, in the assistant's organization.

        Repeat it to take over what has come since. 403 unless you are a member of that
        organization.
        """
        principal = principal_of(request)
        token = _read_valid_token(validate_body(ClaimInput, request)["token"])
        try:
            principal_in(principal, token.organization_id)
        except Missing:
            raise Forbidden(_STRANGERS)
        with as_tenant(Tenant(token.organization_id, is_whole=True)):  # the guest's and theirs
            claimed = claim_guest(
                person(principal), organization_id=token.organization_id, guest_id=token.guest_id
            )
        return Response(asdict(claimed))


def _read_valid_token(text: str) -> GuestToken:
    """Return the token. Raises Invalid for one that would not let its guest in."""
    token = read_guest_token(text)
    if token is None or not token.is_for(public_assistant(token.assistant_id)):
        raise Invalid(_NO_TOKEN, fields={"token": [_NO_TOKEN]})
    return token
