"""Mend a conversation for a model that refuses it as it is, and learn from its words what it wants.

    a field it does not know       is left out of its messages and calls, also if it sent it itself
    reasoning_content is missing   nothing was thought, where nothing is known of it (DeepSeek)
    a call is not signed           the mark that Google documents for calls of other models (Gemini 3)
    ids of calls in another form   nine letters and digits, made of the id (Mistral; all others take it)
    a user after a tool            a word of the assistant between them (Mistral)
    an id that was used before     another one, for any model: Anthropic refuses it, and results of others
                                   would be told apart by nothing

What is stored stays as it is: this is done to each request anew, in the same way, so that consecutive
requests begin alike. Sources: https://ai.google.dev/gemini-api/docs/thought-signatures,
https://mistralai.github.io/mistral-common/usage/tools/. Pure: no I/O.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from engine.messages import AssistantMessage, ProviderMessage, ResultMessage, calls_in
from engine.provider_fields import REASONING, exchanges, fields_of, with_reasoning
from engine.tool_calls import CALL_FORM, ChatToolCall

Messages = Sequence[ProviderMessage]

UNSIGNED: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Stands for the signature of a call that another model made."""

BRIDGE: Final = "Understood."

_ID_CHARS: Final = 9
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHORT_ID = re.compile(rf"[a-zA-Z0-9]{{{_ID_CHARS}}}")
_ABOUT_IDS = re.compile(
    r"tool[_ ]call[_ ]?id|tool_calls\S{0,40}\.id\b|tool_use\S{0,40}\bid\b", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
_ABOUT_ROLES = re.compile(r"role\W*user\W* after role\W*tool", re.IGNORECASE)
_OF_MISTRAL = re.compile(
    r"mistral|mixtral|magistral|ministral|devstral|codestral|pixtral", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class MessageMends:
    """What a model's conversations go through; as it begins, next to nothing."""

    has_short_ids: bool = False
    has_bridges: bool = False
    signs_calls: bool = False
    fills_reasoning: bool = False
    dropped: frozenset[str] = frozenset()

    def apply(self, messages: Messages) -> list[ProviderMessage]:
        """Return the conversation as this model takes it; messages that stay are the same objects."""
        mended = list(_with_ids(messages, are_short=self.has_short_ids))
        if self.dropped:
            mended = [_without(message, self.dropped) for message in mended]
        if self.fills_reasoning:
            mended = with_reasoning(mended)
        if self.signs_calls:
            mended = _sign(mended)
        return list(_bridge(mended)) if self.has_bridges else mended

    def after(self, refusal: str, sent: Messages) -> "MessageMends | None":
        """Return what to try next, after the model refused these messages in these words; None if
        they say nothing that can be mended."""
        if not self.signs_calls and "thought_signature" in refusal:
            return replace(self, signs_calls=True)
        if not self.has_short_ids and _ABOUT_IDS.search(refusal):
            return replace(self, has_short_ids=True)
        if not self.has_bridges and _ABOUT_ROLES.search(refusal):
            return replace(self, has_bridges=True)
        named = _fields_in(sent) & {*_WORD.findall(refusal)}
        may_fill = not self.fills_reasoning and REASONING not in self.dropped
        if REASONING in refusal and may_fill and with_reasoning(sent) != list(sent):
            return replace(self, fills_reasoning=True)
        if named:
            still_fills = self.fills_reasoning and REASONING not in named
            return replace(self, dropped=self.dropped | named, fills_reasoning=still_fills)
        return None


def known_mends(base_url: str, upstream_id: str) -> MessageMends:
    """Return what is known of a model without asking it."""
    return MessageMends(
        has_short_ids=bool(_OF_MISTRAL.search(f"{base_url} {upstream_id}")),
        fills_reasoning="api.deepseek.com" in base_url,
    )


# -- Ids -------------------------------------------------------------------------------------------


def _with_ids(messages: Messages, *, are_short: bool) -> Iterator[ProviderMessage]:
    """Yield the messages, each call with an id of its own, and results with that of their call."""
    used: set[str] = set()
    waiting: dict[str, deque[str]] = {}
    for message in messages:
        if message["role"] == "tool":
            given = message["tool_call_id"]
            ids = waiting.get(given)
            sent = ids.popleft() if ids else given
            yield (
                message if sent == given else cast(ResultMessage, {**message, "tool_call_id": sent})
            )
            continue
        calls = calls_in(message)
        if not calls:
            yield message
            continue
        waiting = {}
        renamed: list[ChatToolCall] = []
        for call in calls:
            given = call["id"]
            sent = _fitting_id(given, used, is_short=are_short)
            used.add(sent)
            waiting.setdefault(given, deque()).append(sent)
            renamed.append(call if sent == given else cast(ChatToolCall, {**call, "id": sent}))
        yield cast(AssistantMessage, {**message, "tool_calls": renamed})


def _fitting_id(given: str, used: set[str], *, is_short: bool) -> str:
    fits = bool(given) and (not is_short or _SHORT_ID.fullmatch(given))
    sent, number = given, 0
    while not fits or sent in used:
        sent, fits, number = _short_id(f"{given} {number}"), True, number + 1
    return sent


def _short_id(seed: str) -> str:
    number = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()[:8], "big")
    letters = []
    for _ in range(_ID_CHARS):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)


# -- Fields ----------------------------------------------------------------------------------------


def _fields_in(messages: Messages) -> set[str]:
    names: set[str] = set()
    for message in messages:
        names |= {*fields_of(message)}
        for call in calls_in(message):
            names |= {*call} - CALL_FORM
    return names


def _without(message: ProviderMessage, names: frozenset[str]) -> ProviderMessage:
    """Return the message without these fields, in it and in its calls."""
    if message["role"] != "assistant":
        return message
    kept: dict[str, Any] = {
        n: v for n, v in message.items() if n not in names & {*fields_of(message)}
    }
    if calls := calls_in(message):
        kept["tool_calls"] = [_call_without(call, names - CALL_FORM) for call in calls]
    return cast(AssistantMessage, kept)


def _call_without(call: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name not in names}


def _sign(messages: Messages) -> list[ProviderMessage]:
    """Sign the first call of each reply in the last exchange that is not signed."""
    *earlier, last = exchanges(messages)
    signed = [message for exchange in earlier for message in exchange]
    for message in last:
        calls = calls_in(message)
        if calls and "extra_content" not in calls[0]:
            first = {**calls[0], "extra_content": UNSIGNED}
            message = cast(AssistantMessage, {**message, "tool_calls": [first, *calls[1:]]})
        signed.append(message)
    return signed


def _bridge(messages: Messages) -> Iterator[ProviderMessage]:
    before = ""
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": BRIDGE}
        before = message["role"]
        yield message
