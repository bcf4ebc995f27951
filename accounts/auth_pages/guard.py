"""Hold allauth's JSON API to the rules of Amber's own: a body is one JSON object, bounded in depth,
whose numbers and strings can be stored.

allauth reads bodies with Python's own parser, which fails with a traceback on deep nesting and on
huge numbers.
"""

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from amber.lib.errors import AmberError
from amber.lib.rest.api import error_response
from amber.lib.rest.wire import parse_object

PREFIX: Final = "/_allauth/"
FORMS: Final = frozenset({"redirect_to_provider"})
"""Views that take a form and no JSON."""


class StrictAuthJsonMiddleware(MiddlewareMixin):
    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Return an error for a body that the view must not read, or None."""
        match = request.resolver_match
        if not request.path_info.startswith(PREFIX) or match is None or match.url_name in FORMS:
            return None
        try:
            if request.method != "GET" and request.body:
                parse_object(request.body)
        except AmberError as error:
            return error_response(error, request)
        return None
