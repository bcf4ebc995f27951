"""Begin each request for nobody; who signs in is its tenant from then on (`accounts.sign_in`).

Pages of operators, and those on which people sign in, are about all tenants.
"""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from amber.lib.database.replica import note_write
from amber.lib.database.tenant import NOBODY, across_tenants, as_tenant, current_tenant

ACROSS_TENANTS: Final = (
    *("/admin/", "/_allauth/", "/accounts/", "/identity/"),
    *("/readyz", "/metrics"),
)
"""Beginnings of the addresses that are served over the system's connection."""


READING: Final = ("GET", "HEAD", "OPTIONS")


class TenantMiddleware:
    """Limits a request to its tenant, and keeps whom it was for: its stream goes on for them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(ACROSS_TENANTS):
            with across_tenants():
                return self._get_response(request)
        with as_tenant(NOBODY):
            response = self._get_response(request)
            tenant = request.tenant = current_tenant()  # type: ignore[attr-defined]
            if request.method not in READING:
                note_write(tenant)
            return response
