"""Tell browsers who may cache an answer, and what a page may load and run.

Nobody keeps personal answers: neither a proxy, nor the browser of a shared computer after its user
has signed out. Answers with a cache header of their own are left alone: static files, and the bytes
of people's files, which browsers ask for again each time. Pages run no inline code; the admin,
whose components evaluate expressions, has a policy of its own.
"""

from collections.abc import Callable
from typing import Final

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

PUBLIC_PAGES: Final = frozenset({"schema", "docs"})
"""The address of the OpenAPI document, which is the same for everybody."""

View = Callable[[HttpRequest], HttpResponseBase]


def keep_out_of_caches(get_response: View) -> View:
    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        match = request.resolver_match
        if match is None or match.view_name not in PUBLIC_PAGES:
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return answer


class PagePolicyMiddleware(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        match = request.resolver_match
        if match is not None and match.app_name == "admin":
            parts.replace = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
