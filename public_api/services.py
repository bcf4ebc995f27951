"""Turn requests of the public API into turns. `start_turn` is the one place where it happens."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from amber.lib.errors import Invalid
from assistants.models import Assistant
from chats.call_services import ask_in_chat
from chats.context.call_options import CallOptions
from chats.models import Turn
from chats.services import start_stateless_turn
from engine.messages import MessageRole
from providers.registry import is_known_alias
from public_api.openai.answerers import stored_chat
from public_api.openai.messages import (
    Entry,
    RequestMessage,
    after_last_answer,
    images_of,
    prompts_of,
    to_input,
)
from public_api.openai.sent_images import unsaved_images


def start_turn(
    caller: Principal,
    *,
    messages: Sequence[RequestMessage],
    options: CallOptions,
    assistant: Assistant | None = None,
    chat_id: str = "",
    before: Sequence[Entry] = (),
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Start a stateless turn over the messages; with a `chat_id` one in that chat, over what is
    new.

    `before` is what a stateless conversation began with. Without an assistant the model of
    `options` answers. Raises Invalid (nobody asks; an image that is none, or cannot be fetched),
    Missing (no such chat), Conflict (turn_in_progress), TooLarge, Unavailable.
    """
    if not chat_id:
        return _stateless(caller, messages, options, assistant, claim, before)
    return _in_chat(caller, chat_id, messages, options, assistant, claim)


def start_chat(
    principal: Principal,
    *,
    messages: Sequence[RequestMessage],
    model: str = "",
    claim: IdempotencyRecord | None = None,
) -> Turn:
    """Start a stateless turn of a bare model with all built-in tools: POST /chat.

    Raises Invalid (unknown_model), and as `start_turn`.
    """
    if not is_known_alias(model):
        text = "No enabled model has this alias."
        raise Invalid(text, code="unknown_model", fields={"model": [text]})
    return start_turn(principal, messages=messages, options=CallOptions(model=model), claim=claim)


def _stateless(
    caller: Principal,
    messages: Sequence[RequestMessage],
    options: CallOptions,
    assistant: Assistant | None,
    claim: IdempotencyRecord | None,
    before: Sequence[Entry],
) -> Turn:
    asked_before = any(entry["role"] == MessageRole.HUMAN for entry in before)
    if not asked_before and not any(message.asks for message in messages):
        raise Invalid(code="no_human_message")
    expired_at = timezone.now() + timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)
    first = len(before)  # so that no two replies of the conversation have one id
    images = images_of(messages, first=first)
    with unsaved_images(caller, images, expired_at=expired_at) as files:
        ids = {place: str(file.pk) for place, file in files.items()}
        return start_stateless_turn(
            caller,
            messages=[*before, *to_input(messages, ids, first=first)],
            assistant=assistant,
            options=options,
            files=list(files.values()),
            claim=claim,
        )


def _in_chat(
    caller: Principal,
    chat_id: str,
    messages: Sequence[RequestMessage],
    options: CallOptions,
    assistant: Assistant | None,
    claim: IdempotencyRecord | None,
) -> Turn:
    """Start a turn over what is new in the chat, which holds already what precedes the last answer.

    System messages, wherever they stand, are prompts of this turn alone.
    """
    chat = stored_chat(caller, chat_id)
    first = 0 if chat is None else after_last_answer(messages)
    options = replace(options, prompts=(*options.prompts, *prompts_of(messages)))
    images = images_of(messages[first:], first=first)
    with unsaved_images(caller, images, expired_at=None) as files:
        ids = {place: str(file.pk) for place, file in files.items()}
        given = to_input(messages[first:], ids, first=first)
        entries = [entry for entry in given if entry["role"] != "system"]
        if not entries:
            said = "There is no new message to answer."
            raise Invalid(said, fields={"messages": [said]})
        return ask_in_chat(
            chat,
            caller,
            entries=entries,
            assistant=assistant,
            options=options,
            files=list(files.values()),
            claim=claim,
        )
