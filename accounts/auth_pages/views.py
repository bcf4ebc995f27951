"""Answer some of allauth's addresses otherwise: a closed sign-up says nothing, addresses that nobody can
prove are not taken and others not mailed without end, accounts have no phone numbers, and links to identity
providers that are gone are passed over."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.headless.account import views
from allauth.headless.base.response import ForbiddenResponse
from allauth.headless.socialaccount import views as social_views
from allauth.headless.socialaccount.response import SocialAccountsResponse
from allauth.socialaccount.adapter import get_adapter as get_social_adapter
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from accounts.auth_pages.adapter import proves_addresses
from accounts.models import User
from accounts.sign_in.rates import spend_mail_to_stranger


class SignupView(views.SignupView):  # type: ignore[misc]  # allauth has no types
    def handle(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a closed sign-up before allauth tells strangers which addresses exist."""
        if request.method == "POST" and not get_adapter().is_open_for_signup(request):
            refusal: HttpResponseBase = ForbiddenResponse(request)
            return refusal
        response: HttpResponseBase = super().handle(request, *args, **kwargs)
        return response


class ManageEmailView(views.ManageEmailView):  # type: ignore[misc]
    def handle(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse changes where no mail proves an address: anybody's would do, and be shown as theirs.

        Where one does, strangers can be made to get it: it is counted. Raises RateLimited.
        """
        if request.method != "GET" and not proves_addresses():
            refusal: HttpResponseBase = ForbiddenResponse(request)
            return refusal
        if request.method in ("POST", "PUT") and isinstance(request.user, User):
            spend_mail_to_stranger(request.user.pk)
        response: HttpResponseBase = super().handle(request, *args, **kwargs)
        return response


class ManageProvidersView(social_views.ManageProvidersView):  # type: ignore[misc]
    @classmethod
    def respond_provider_accounts(cls, request: HttpRequest) -> SocialAccountsResponse:
        """Leave out links to providers that operators have deleted: allauth would fail. They stay stored."""
        providers = get_social_adapter().list_providers(request)
        known = [provider.sub_id for provider in providers]
        user: Any = request.user
        links = user.socialaccount_set.filter(provider__in=known)
        return SocialAccountsResponse(request, links)


@csrf_exempt
def refuse_phone_numbers(request: HttpRequest) -> HttpResponseBase:
    """Answer 404: allauth has these addresses although accounts have no phone, and fails there."""
    raise Http404
