"""Describe accounts in OpenAPI: the three credentials, examples, and `Idempotency-Key`."""

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.permissions import SAFE_METHODS

from accounts.sign_in.authentication import InPerson, InPersonOrReadOnly
from accounts.tenancy.idempotency import MAX_KEY_CHARS

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": f"^[!-~]{{1,{MAX_KEY_CHARS}}}$"},
    OpenApiParameter.HEADER,
    description="Repeating a request with the same key and body returns the first answer again, "
    "for 24 hours.",
)
NEW_API_KEY: Final = OpenApiExample(
    "For a web page, one assistant, until the end of the year",
    value={
        "name": "help page",
        "assistant_id": "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00",
        "scopes": ["public"],
        "origins": ["https://www.example.com"],
        "expires_at": "2031-12-31T23:59:59Z",
    },
    request_only=True,
)
INVITATION: Final = OpenApiExample(
    "A new admin", value={"email": "bob@example.com", "role": "admin"}, request_only=True
)

NO_INVITATION: Final = OpenApiResponse(
    description="You have no open invitation with this token, or its sender may no longer invite "
    "people."
)


class PrincipalScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes keys and sessions; imported by the app's `ready`, found through its target."""

    target_class = "accounts.sign_in.authentication.PrincipalAuthentication"
    match_subclasses = True
    name = ["apiKey", "session"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        """Return key or session; the session alone where keys are refused."""
        names = ["session"] if _in_person_only(auto_schema) else self.name
        return [{name: []} for name in names]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {
                "type": "http",
                "scheme": "bearer",
                "description": "`Authorization: Bearer amb_live_…`, from `api-keys/`.",
            },
            {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "Unsafe methods also need `X-CSRFToken`: docs/accounts.md.",
            },
        ]


class GuestScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.sign_in.authentication.GuestAuthentication"
    name = "guestToken"
    priority = 1

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "`Authorization: Bearer amb_guest_…`, from "
            "`public/assistants/{id}/token/`.",
        }


def _in_person_only(auto_schema: Any) -> bool:
    permissions = auto_schema.view.get_permissions()
    if auto_schema.method in SAFE_METHODS:
        permissions = [given for given in permissions if not isinstance(given, InPersonOrReadOnly)]
    return any(isinstance(given, InPerson) for given in permissions)
