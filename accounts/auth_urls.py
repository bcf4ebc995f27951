"""Sign-up, login, logout, passwords and OpenID Connect: allauth's own API and its callbacks.

The addresses are those allauth's pages recommend; its OpenAPI document describes the answers:
https://docs.allauth.org/en/latest/headless/openapi-specification/
"""

from django.urls import include, path

urlpatterns = [
    path("_allauth/", include("allauth.headless.urls")),
    # With HEADLESS_ONLY nothing is left here but what identity providers send people back to.
    path("accounts/", include("allauth.urls")),
]
