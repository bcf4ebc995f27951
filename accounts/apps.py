"""Django's configuration of the app `accounts`."""

from importlib import import_module
from typing import Final

from django.apps import AppConfig, apps
from django.utils.translation import gettext_lazy as _

_HEADINGS: Final = {
    "allauth.account": _("Signing in"),
    "allauth.socialaccount": _("Signing in elsewhere"),
    "django.contrib.auth": _("Operators' rights"),
}
"""Headings of other apps' pages in the admin; two would read "Accounts" otherwise."""


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        """Import extensions of drf-spectacular, which finds only imported ones, and receivers of
        sign-ins; workers need neither."""
        if apps.is_installed("drf_spectacular"):
            import_module("accounts.api.schema")
            import_module("accounts.auth_pages.sign_ins")
        for label, heading in _HEADINGS.items():
            if apps.is_installed(label):
                apps.get_app_config(label.rpartition(".")[2]).verbose_name = heading
