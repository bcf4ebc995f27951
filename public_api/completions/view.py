"""Answer OpenAI's chat completions by a turn: POST /v1/chat/completions.

Fields that Amber does not know are a model's own parameters if an operator allows them for it, and passed
on; the names of the rest are told in a header, since OpenAI's clients send fields that no other server has,
and a refusal would help nobody.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from accounts.api.schema import IDEMPOTENCY_KEY
from accounts.sign_in.authentication import principal_of
from accounts.tenancy.idempotency import once
from amber.lib.errors import Invalid
from amber.lib.rest.async_response import DeferredResponse
from amber.lib.rest.orderly import OrderlyView
from amber.lib.rest.wire import validate_body
from chats.models import Turn
from engine.events import TurnCompleted
from engine.provider.parameters import RESERVED
from engine.provider_fields import MAX_FIELDS_BYTES, is_too_long, storable
from providers.registry import allowed_parameters
from public_api.completions.chunks import Chunks, CompletionFormat, completion
from public_api.completions.request import CompletionRequest
from public_api.completions.serializers import CompletionInput
from public_api.openai.answerers import Answerer, answerer_named, asking_as
from public_api.openai.answering import CHAT_HEADER, streamed_answer, turn_of, whole_answer
from public_api.openai.growing_answer import Row
from public_api.openai.view import OpenAIView, describe_operation
from public_api.services import start_turn

ROUTE = "POST /v1/chat/completions"


class CompletionsView(OrderlyView, OpenAIView):
    bound_keys_may = ("POST",)

    @describe_operation(
        "createChatCompletion",
        request=CompletionInput,
        parameters=[
            IDEMPOTENCY_KEY,
            OpenApiParameter(
                CHAT_HEADER,
                str,
                OpenApiParameter.HEADER,
                description="Same as `metadata.chat_id`, which takes precedence.",
            ),
        ],
        responses={
            (200, "application/json"): OpenApiResponse(
                OpenApiTypes.OBJECT, description="A chat completion."
            ),
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR,
                description="With `stream`: the chunks of the answer, then `[DONE]`.",
            ),
        },
    )
    def post(self, request: Request) -> DeferredResponse:
        """Answer a conversation. Nothing is stored, unless a chat is named.

        A client that disconnects cancels a stateless turn, unless an Idempotency-Key allows it to
        come back for the answer.
        """
        asked = CompletionRequest.read(validate_body(CompletionInput, request))
        principal = principal_of(request)
        answerer = answerer_named(principal, asked.model)
        sent: Any = request.data  # an object: it is valid
        asked, ignored = with_own_parameters(asked, sent, answerer)
        caller = asking_as(principal, asked.user)
        chat_id = asked.chat_id or request.headers.get(CHAT_HEADER, "")
        key = request.headers.get("Idempotency-Key")
        done = once(
            caller,
            route=ROUTE,
            key=key,
            body=[request.data, chat_id],
            work=lambda claim: start_turn(
                caller,
                messages=asked.messages,
                options=answerer.options(asked.options),
                assistant=answerer.assistant,
                chat_id=chat_id,
                claim=claim,
            ),
        )
        turn = turn_of(done, caller)
        form = _form(turn, asked)
        is_kept = bool(key or chat_id)
        if asked.streams:
            tell = Chunks(form).take
            return DeferredResponse(
                partial(streamed_answer, turn, tell, is_kept=is_kept, headers=ignored)
            )
        return DeferredResponse(
            partial(whole_answer, turn, partial(_whole, form), is_kept=is_kept, headers=ignored)
        )


def _form(turn: Turn, asked: CompletionRequest) -> CompletionFormat:
    return CompletionFormat(
        id=f"chatcmpl-{turn.pk.hex}",
        created=int(turn.created_at.timestamp()),
        model=asked.model,
        client_tools=frozenset(tool.name for tool in asked.options.tools),
        is_legacy=asked.is_legacy,
        writes_calls=asked.writes_calls,
        includes_usage=asked.includes_usage,
        root=settings.AMBER_PUBLIC_URL,
    )


def _whole(form: CompletionFormat, messages: Sequence[Row], end: TurnCompleted) -> dict[str, Any]:
    return completion(form, messages, usage=end.usage, finish_reason=end.finish_reason)


IGNORED_HEADER: Final = "X-Amber-Ignored-Parameters"
MAX_NAMED: Final = 20

_KNOWN: Final = frozenset(CompletionInput().fields) | RESERVED
_NAME = re.compile(r"\A[A-Za-z0-9_.-]{1,64}\Z")


def with_own_parameters(
    asked: CompletionRequest, sent: Mapping[str, Any], answerer: Answerer
) -> tuple[CompletionRequest, dict[str, str]]:
    """Return the request with the model's own parameters, and the header that names what is ignored.

    At most one query, and none where all fields are known. Raises Invalid.
    """
    unknown = {k: v for k, v in sent.items() if k not in _KNOWN and v is not None}
    if not unknown:
        return asked, {}
    alias = answerer.assistant.model if answerer.assistant else answerer.name
    allowed = allowed_parameters(alias)
    own = {k: storable(v) for k, v in unknown.items() if k in allowed}
    if is_too_long(own):
        raise Invalid(f"The model's parameters have more than {MAX_FIELDS_BYTES:,} bytes.")
    options = replace(asked.options, extra={**asked.options.extra, **own})
    ignored = sorted(k for k in unknown if k not in own and _NAME.match(k))[:MAX_NAMED]
    return replace(asked, options=options), {IGNORED_HEADER: ", ".join(ignored)} if ignored else {}
