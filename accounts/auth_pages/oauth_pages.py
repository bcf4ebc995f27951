"""Serve OAuth 2.1 to applications: they register, a person lets them in on a page, they get tokens.

allauth's authorization server does the protocol; here it is held to Amber's rules. A challenge of
S256 (PKCE) is wanted of every application. Nobody is asked who is not signed in: the page to sign
in on is Amber's own. Letting an application in makes it a key (`accounts.sign_in.applications`).
"""

from typing import Any, Final
from urllib.parse import quote, urlsplit

from allauth.idp.oidc import views
from allauth.idp.oidc.forms import AuthorizationForm
from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.csrf import csrf_exempt, ensure_csrf_cookie

from accounts import key_services
from accounts.audit.actors import client_address
from accounts.models import Membership, Organization, User
from accounts.principal import Actor, ActorKind
from accounts.sign_in.applications import SCOPE, root_of
from accounts.sign_in.authentication import ACTIVE_ORGANIZATION, active_membership
from amber.lib.errors import Invalid
from amber.lib.rest.wire import parse_object

MAX_BODY_BYTES: Final = 64_000
MAX_DIGITS: Final = 20
"""Python refuses to read numbers of thousands of digits."""


class BoundedBodyMixin:
    """Refuses bodies that cannot be stored, before allauth reads them."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdigit() or len(length) > MAX_DIGITS or int(length) > MAX_BODY_BYTES:
            return _refuse("invalid_request", "The body is too large.", status=413)
        if any("\0" in text for values in request.POST.lists() for text in (values[0], *values[1])):
            return _refuse("invalid_request", "The body holds a NUL.")
        try:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        except ValidationError as error:
            return _refuse("invalid_target", " ".join(error.messages))
        response["Cache-Control"] = "no-store"
        return response


def _refuse(code: str, words: str, *, status: int = 400) -> JsonResponse:
    return JsonResponse({"error": code, "error_description": words}, status=status)


class OAuthTokenView(BoundedBodyMixin, views.TokenView):
    """Gives tokens for a code, or for an older refresh token."""


class OAuthRevocationView(BoundedBodyMixin, views.RevokeView):
    """Ends a token."""


@method_decorator(csrf_exempt, name="dispatch")
class RegistrationView(BoundedBodyMixin, views.ClientRegistrationView):
    """Registers an application by what it says of itself (RFC 7591)."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if len(request.body) > MAX_BODY_BYTES:  # its length may have been left out
            return _refuse("invalid_client_metadata", "The body is too large.", status=413)
        try:
            parse_object(request.body)
        except Invalid as error:
            return _refuse("invalid_client_metadata", error.message)
        answer: HttpResponse = super().post(request, *args, **kwargs)
        return answer


class ConsentForm(AuthorizationForm):
    """Asks for which organization the application is let in."""

    organization = forms.ChoiceField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        user = kwargs["user"]
        super().__init__(*args, **kwargs)
        mine = Membership.objects.filter(user=user).select_related("organization")
        choices = [(str(each.organization_id), each.organization.name) for each in mine]
        self.fields["organization"].choices = choices


class ConsentView(BoundedBodyMixin, views.AuthorizationView):
    """Asks a person whether an application may act for them."""

    form_class = ConsentForm
    template_name = "accounts/consent.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        given = request.GET
        if given.get("code_challenge_method") != "S256" or not given.get("code_challenge"):
            return _show_fault(request, _("The application must send a challenge of S256 (PKCE)."))
        if given.get("prompt", "") not in ("", "consent", "login"):
            return _show_fault(request, _("This application must ask for your permission first."))
        answer: HttpResponse = super().get(request, *args, **kwargs)
        return answer

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = super().post(request, *args, **kwargs)
        return answer

    def _login_required(self, request: HttpRequest) -> HttpResponse | None:
        if isinstance(request.user, User):
            return None
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={quote(request.get_full_path())}")

    def get_initial(self) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_initial()
        assert isinstance(self.request.user, User)
        chosen = self.request.session.get(ACTIVE_ORGANIZATION)
        membership = active_membership(self.request.user, chosen)
        return initial | {"organization": str(membership.organization_id) if membership else ""}

    def form_valid(self, form: ConsentForm) -> HttpResponse:
        user = self.request.user
        assert isinstance(user, User)
        key_services.let_application_in(
            user,
            organization=Organization.objects.get(pk=form.cleaned_data["organization"]),
            client_id=self._request_info["client_id"],
            name=views.Client.objects.get(pk=self._request_info["client_id"]).name,
            by=Actor(ActorKind.USER, user.pk, address=client_address(self.request)),
        )
        answer: HttpResponse = super().form_valid(form)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        place = urlsplit(self._request_info["redirect_uri"])
        # What stands behind an app's scheme is the app's own choice, and may look like a site.
        is_web = place.scheme in ("http", "https")
        returns_to = (
            place.hostname
            if is_web
            else _("an app on this device ({scheme}:)").format(scheme=place.scheme)
        )
        return context | {"returns_to": returns_to}

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """Let the form's answer lead back to the application, which browsers hold to the policy."""
        response: HttpResponse = super().render_to_response(context, **kwargs)
        place = urlsplit(self._request_info["redirect_uri"])
        is_web = place.scheme in ("http", "https")
        source = f"{place.scheme}://{place.netloc}" if is_web else f"{place.scheme}:"
        response._csp_update = {"form-action": [source]}  # type: ignore[attr-defined]
        return response


@method_decorator(ensure_csrf_cookie, name="dispatch")
class SignInView(View):
    """Shows a page to sign in on, which goes on where the person wanted to go."""

    def get(self, request: HttpRequest) -> HttpResponse:
        wanted = request.GET.get("next", "")
        if not url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}):
            wanted = "/"
        return render(request, "accounts/sign_in.html", {"next": wanted})


def describe_server(request: HttpRequest) -> JsonResponse:
    """Tell what the authorization server can do (RFC 8414)."""
    root = root_of(request)
    addresses = {
        "authorization_endpoint": "idp:oidc:authorization",
        "token_endpoint": "idp:oidc:token",
        "revocation_endpoint": "idp:oidc:revoke",
        "registration_endpoint": "idp:oidc:client_registration",
    }
    return public_json(
        {
            "issuer": root,
            **{name: f"{root}{reverse(view)}" for name, view in addresses.items()},
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": [
                *("none", "client_secret_basic", "client_secret_post"),
            ],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": False,
        }
    )


def public_json(value: dict[str, Any]) -> JsonResponse:
    """Answer with what any page may read."""
    response = JsonResponse(value)
    response["Access-Control-Allow-Origin"] = "*"
    response["Cache-Control"] = "public, max-age=300"
    return response


def _show_fault(request: HttpRequest, words: str) -> HttpResponse:
    fault = {"error": {"description": words}}
    return render(request, "idp/oidc/error.html", fault, status=400)
