"""Send CORS headers as django-cors-headers does, without cookies for keys and guest tokens."""

from typing import TYPE_CHECKING

from corsheaders.middleware import ACCESS_CONTROL_ALLOW_CREDENTIALS, CorsMiddleware

from public_api.cors import GUEST_PATHS, PATHS

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


class CookielessCorsMiddleware(CorsMiddleware):
    """Refuses cookies for the public API; elsewhere trusted origins may send the session's
    cookie."""

    def add_response_headers(
        self, request: "HttpRequest", response: "HttpResponseBase"
    ) -> "HttpResponseBase":
        answered = super().add_response_headers(request, response)
        if request.path_info.startswith((*PATHS, *GUEST_PATHS)):
            answered.headers.pop(ACCESS_CONTROL_ALLOW_CREDENTIALS, None)
        return answered
