"""Give every view under /v1 its base: for keys only, always JSON, documented alike."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.models import Scope, User
from accounts.principal import Principal
from accounts.sign_in.authentication import PrincipalAuthentication
from public_api.openai.serializers import OpenAIErrorSerializer

Method = TypeVar("Method", bound=Callable[..., Any])

_KEY: Final[Any] = [{"apiKey": []}]
_ERRORS: Final = {
    status: OpenApiResponse(OpenAIErrorSerializer)
    for status in (400, 401, 403, 404, 409, 413, 415, 429, 500, 502, 503)
}


def describe_operation(
    name: str, *, responses: dict[Any, Any], **options: Any
) -> Callable[[Method], Method]:
    """Describe a method under /v1 in the OpenAPI document, for keys alone, by OpenAI's name of it."""
    answers = {**responses, **_ERRORS}
    return extend_schema(
        operation_id=name, auth=_KEY, tags=["OpenAI"], responses=answers, **options
    )


class KeyAuthentication(PrincipalAuthentication):
    scope = Scope.PUBLIC

    def authenticate(self, request: Request) -> tuple[User | None, Principal] | None:
        """Authenticate by key. A session is not looked at, so CSRF is not checked."""
        if "Authorization" not in request.headers:
            return None
        return super().authenticate(request)


class AnyAccept(DefaultContentNegotiation):
    """Ignores `Accept`: the body of the request says whether the answer is streamed."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class OpenAIView(APIView):
    authentication_classes = [KeyAuthentication]
    content_negotiation_class = AnyAccept
