"""Choose the language of pages: the person's choice, else the browser's, else the installation's.

REST answers, events and documents for programs stay English whatever a request says, and so do workers and
commands: clients decide by codes, and what is stored is read by everybody.
"""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation.trans_real import parse_accept_lang_header

FOR_PEOPLE: Final = (
    *("/admin/", "/identity/", "/_allauth/", "/accounts/", "/i18n/", "/tools/connected"),
)
"""How the addresses of pages begin, and of what is said on the web page as it is (allauth's answers)."""

View = Callable[[HttpRequest], HttpResponseBase]


def choose_language(get_response: View) -> View:
    """Answer what people read in their language: a middleware."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(FOR_PEOPLE):
            return get_response(request)
        language = language_of(request)
        request.LANGUAGE_CODE = language
        with translation.override(language):
            response = get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response

    return answer


def language_of(request: HttpRequest) -> str:
    """Return the language of whoever sent this, as Django names it."""
    accepted = parse_accept_lang_header(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    wanted = (chosen, *(asked for asked, _ in accepted), settings.AMBER_LANGUAGE)
    return next(filter(None, (_match(each) for each in wanted)), settings.LANGUAGE_CODE)


def _match(asked: str) -> str:
    """Return the language that a code names, with or without its script and region; empty if none."""
    begins = asked.lower().partition("-")[0]
    return next((code for code, _ in settings.LANGUAGES if code.partition("-")[0] == begins), "")
