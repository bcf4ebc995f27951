"""Addresses of the public API, from the root."""

from django.urls import include, path

from public_api.views import ChatProxyView

app_name = "public_api"

urlpatterns = [
    path("chat", ChatProxyView.as_view(), name="chat"),
    path("api/v1/", include("public_api.guest_urls")),
]
