"""Route sign-up, login, logout, passwords and OpenID Connect to allauth's API and callbacks.

The addresses are those allauth's pages recommend; its OpenAPI document describes the answers:
https://docs.allauth.org/en/latest/headless/openapi-specification/
"""

from allauth.headless.constants import Client
from django.urls import include, path

from accounts.auth_pages.views import SignupView, refuse_phone_numbers

BROWSER = "_allauth/browser/v1"

urlpatterns = [
    path(f"{BROWSER}/account/phone", refuse_phone_numbers),
    path(f"{BROWSER}/auth/phone/verify", refuse_phone_numbers),
    path(f"{BROWSER}/auth/phone/verify/resend", refuse_phone_numbers),
    path(f"{BROWSER}/auth/signup", SignupView.as_api_view(client=Client.BROWSER)),
    path("_allauth/", include("allauth.headless.urls")),
    # With HEADLESS_ONLY nothing is left here but what identity providers send people back to.
    path("accounts/", include("allauth.urls")),
]
