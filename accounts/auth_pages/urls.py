"""Route sign-up, login, logout, passwords and OpenID Connect to allauth's API and callbacks, and
applications to the authorization server.

The addresses are those allauth's pages recommend; its OpenAPI document describes the answers:
https://docs.allauth.org/en/latest/headless/openapi-specification/
"""

from allauth.headless.constants import Client
from django.urls import include, path

from accounts.auth_pages import oauth_pages
from accounts.auth_pages.views import (
    ManageEmailView,
    ManageProvidersView,
    SignupView,
    refuse_phone_numbers,
)

BROWSER = "_allauth/browser/v1"

# Under the names that allauth gives its own; of these only what applications of OAuth need is here.
_OAUTH = [
    path("authorize", oauth_pages.ConsentView.as_view(), name="authorization"),
    path("api/token", oauth_pages.OAuthTokenView.as_view(), name="token"),
    path("api/revoke", oauth_pages.OAuthRevocationView.as_view(), name="revoke"),
    path("api/clients", oauth_pages.RegistrationView.as_view(), name="client_registration"),
]

urlpatterns = [
    path("identity/o/", include(([path("", include((_OAUTH, "oidc")))], "idp"))),
    path("identity/sign-in", oauth_pages.SignInView.as_view(), name="sign-in"),
    path(".well-known/oauth-authorization-server", oauth_pages.describe_server),
    path(f"{BROWSER}/account/email", ManageEmailView.as_api_view(client=Client.BROWSER)),
    path(f"{BROWSER}/account/providers", ManageProvidersView.as_api_view(client=Client.BROWSER)),
    path(f"{BROWSER}/account/phone", refuse_phone_numbers),
    path(f"{BROWSER}/auth/phone/verify", refuse_phone_numbers),
    path(f"{BROWSER}/auth/phone/verify/resend", refuse_phone_numbers),
    path(f"{BROWSER}/auth/signup", SignupView.as_api_view(client=Client.BROWSER)),
    path("_allauth/", include("allauth.headless.urls")),
    # With HEADLESS_ONLY nothing is left here but what identity providers send people back to.
    path("accounts/", include("allauth.urls")),
]
