"""Show allauth's tables, of addresses, identity providers and applications, on pages like the others."""

from importlib import import_module
from typing import Any, ClassVar, Final

from allauth.account.models import EmailAddress
from allauth.idp.oidc.models import Client, Token
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.sign_in.identity_providers import has_address
from amber.lib.operator_pages import OperatorAdmin
from amber.lib.operator_pages.cells import write_state

# They register the pages that are replaced here.
import_module("allauth.account.admin")
import_module("allauth.socialaccount.admin")
import_module("allauth.idp.oidc.admin")


def _adopt(model: type[Model], page: type[Any]) -> None:
    """Show a model of allauth's on a page of ours, with the actions of its own."""
    allauth_page = type(admin.site.get_model_admin(model))
    admin.site.unregister(model)
    admin.site.register(model, type(page.__name__, (page, allauth_page), {}))


class EmailAddressAdmin(OperatorAdmin):
    list_display = ("email", "state", "user", "primary")
    list_select_related = ("user",)
    search_fields = ("email", "user__name")
    raw_id_fields = ()
    autocomplete_fields = ("user",)

    @admin.display(description=_("state"), ordering="verified")
    def state(self, address: EmailAddress) -> Any:
        return write_state("verified" if address.verified else "unverified")


_OIDC_ID: Final = _("Choose an id, such as your company's name. It becomes part of an address.")
_OIDC_SETTINGS: Final = _('Name the provider\'s address: {"server_url": "https://issuer.example"}')


class SocialAppForm(forms.ModelForm[SocialApp]):
    """Asks for the provider by its name, in fields that look like those of other pages."""

    provider = forms.ChoiceField(choices=registry.as_choices, widget=UnfoldAdminSelectWidget)

    class Meta:
        model = SocialApp
        fields: ClassVar[list[str]] = [
            "provider",
            "provider_id",
            "name",
            "client_id",
            "secret",
            "key",
            "settings",
        ]

    def clean(self) -> dict[str, Any] | None:
        """Ask for what OpenID Connect cannot do without: the sign-in page would show no such provider."""
        given = super().clean() or self.cleaned_data
        if given.get("provider") == OpenIDConnectProvider.id:
            if not given.get("provider_id"):
                self.add_error("provider_id", _OIDC_ID)
            if "settings" in given and not has_address(given["settings"]):
                self.add_error("settings", _OIDC_SETTINGS)
        return given


class SocialAppAdmin(OperatorAdmin):
    form = SocialAppForm
    list_display = ("name", "provider", "client_id")
    search_fields = ("name", "provider")


class SocialAccountAdmin(OperatorAdmin):
    list_display = ("user", "provider", "uid", "last_login", "date_joined")
    list_select_related = ("user",)
    search_fields = ("uid", "user__email")
    raw_id_fields = ()
    autocomplete_fields = ("user",)


class SocialTokenAdmin(OperatorAdmin):
    """Shows for whom there is a token, and nothing of the token itself."""

    list_display = ("account", "app", "expires_at")
    list_select_related = ("account__user", "app")
    list_filter = ("app",)
    raw_id_fields = ()
    autocomplete_fields = ("app", "account")


class ClientAdmin(OperatorAdmin):
    """Applications that people may let act for them (`accounts.sign_in.applications`)."""

    list_display = ("name", "type", "owner", "skip_consent", "created_at")
    exclude = ("id", "secret")
    readonly_fields = ("created_at",)
    list_select_related = ("owner",)
    search_fields = ("name", "id")
    raw_id_fields = ()
    autocomplete_fields = ("owner",)


class TokenAdmin(OperatorAdmin):
    list_display = ("application", "type", "user", "created_at", "expires_at")
    list_select_related = ("client", "user")
    search_fields = ("client__name", "user__email")
    raw_id_fields = ()
    fields = ("application", "type", "user", "created_at", "expires_at", "scopes")
    readonly_fields = ("application", "created_at")
    autocomplete_fields = ("user",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: applications get tokens by asking for them, and keep what nobody else knows."""
        return False

    @admin.display(description=_("application"), ordering="client__name")
    def application(self, token: Token) -> str:
        return str(token.client.name)


def _name_client(client: Client) -> str:
    return client.name or str(client.get_type_display())


def _name_token(token: Token) -> str:
    return f"{token.get_type_display()}: {token.user or token.client}"


# allauth calls these two by ids, in headings and in questions whether to delete them.
Client.__str__ = _name_client
Token.__str__ = _name_token

_adopt(EmailAddress, EmailAddressAdmin)
_adopt(SocialApp, SocialAppAdmin)
_adopt(SocialAccount, SocialAccountAdmin)
_adopt(SocialToken, SocialTokenAdmin)
_adopt(Client, ClientAdmin)
_adopt(Token, TokenAdmin)
