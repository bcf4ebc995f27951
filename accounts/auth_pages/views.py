"""Answer some of allauth's addresses otherwise: a closed sign-up says nothing, and accounts have no
phone numbers."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.headless.account import views
from allauth.headless.base.response import ForbiddenResponse
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt


class SignupView(views.SignupView):  # type: ignore[misc]  # allauth has no types
    def handle(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a closed sign-up before allauth tells strangers which addresses exist."""
        if request.method == "POST" and not get_adapter().is_open_for_signup(request):
            refusal: HttpResponseBase = ForbiddenResponse(request)
            return refusal
        response: HttpResponseBase = super().handle(request, *args, **kwargs)
        return response


@csrf_exempt
def refuse_phone_numbers(request: HttpRequest) -> HttpResponseBase:
    """Answer 404: allauth has these addresses although accounts have no phone, and fails there."""
    raise Http404
