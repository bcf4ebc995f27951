"""Decide which parameters a request carries to one model, and learn which ones that model refuses.

A parameter is what a model can answer without: sampling, the length of the reply, what a vendor has
besides. Messages, tools and the form of the answer are none, and never left out here.

Pure. What was learnt lives as long as the process (`engine.provider.openai_model`).
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from engine.provider.model import ParameterRules, ProviderError

SAMPLING: Final = frozenset(
    {
        *("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty"),
        "parallel_tool_calls",
    }
)
"""What requests of Amber may hold, and a model may do without."""

VENDOR_NUMBERS: Final = frozenset(
    {"top_k", "min_p", "top_a", "typical_p", "repetition_penalty", "thinking_budget"}
)
VENDOR_WORDS: Final = frozenset({"reasoning_effort", "verbosity"})
BY_WORDS: Final = VENDOR_WORDS | {"reasoning", "thinking"}
"""What a model may take with one word and refuse with another."""

VENDOR: Final = VENDOR_NUMBERS | VENDOR_WORDS
"""What clients of any vendor send and no harm comes of."""

RESERVED: Final = frozenset(
    {
        *("model", "messages", "stream", "tools", "tool_choice", "functions", "function_call"),
        *("input", "instructions", "system", "n"),
    }
)
"""Never a model's own setting: Amber writes them for each request."""

MAX_TOKENS: Final = "max_tokens"
MAX_COMPLETION_TOKENS: Final = "max_completion_tokens"
_OF_DIALECTS: Final = frozenset({"include", "reasoning", "thinking"})
OPTIONAL: Final = (
    SAMPLING | VENDOR | _OF_DIALECTS | {MAX_TOKENS, MAX_COMPLETION_TOKENS, "stream_options"}
)
"""What is left out when a model refuses it, besides the operator's own extra parameters."""

_WORD: Final = re.compile(r"[^\W_]+")
_UNSUPPORTED = re.compile(
    # OpenAI, Azure, DeepSeek · xAI, Groq · Mistral, Anthropic, vLLM · Bedrock · Gemini · Moonshot
    r"unsupported|(not|n't|cannot be) (support|allow|permit|accept)|unrecogni[sz]ed|not permitted"
    r"|extra (inputs|fields)|extraneous|unknown (name|parameter|field|argument)|unexpected"
    r"|cannot find field|deprecated|no longer|cannot (both )?be (used|specified)|instead"
    r"|only \S+ is allowed",
    re.IGNORECASE,
)


def sent_parameters(
    asked: Mapping[str, Any], rules: ParameterRules, refused: Collection[str] = ()
) -> dict[str, Any]:
    """Return which of the parameters that a request asks for are sent, with the operator's own; none
    is None.

    A model that refused `max_tokens`, or for which `max_completion_tokens` alone is allowed, gets the
    latter.
    """
    if rules.allowed:
        optional = SAMPLING | VENDOR
        asked = {k: v for k, v in asked.items() if k in rules.allowed or k not in optional}
    said = {k: v for k, v in asked.items() if v is not None}
    sent = {**_flat(rules.extra), **said, **_flat(rules.forced)}
    named = MAX_COMPLETION_TOKENS in rules.allowed and MAX_TOKENS not in rules.allowed
    if sent.get(MAX_TOKENS) is not None and (named or MAX_TOKENS in refused):
        sent.setdefault(MAX_COMPLETION_TOKENS, sent.pop(MAX_TOKENS))
    return {k: v for k, v in sent.items() if v is not None and k not in refused}


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return them with `extra_body` opened, as OpenAI's client opens it."""
    body = given.get("extra_body")
    inner = body if isinstance(body, Mapping) else {}
    return {k: v for k, v in {**given, **inner}.items() if k not in RESERVED | {"extra_body"}}


def refused_parameter(
    error: ProviderError, sent: Mapping[str, Any], rules: ParameterRules
) -> str | None:
    """Return which parameter of the request the model does not take, by what it answered; None if it
    names none that can be left out. Vendors write names in camel case, too."""
    if error.code != "provider_rejected":
        return None
    words = f"{error.said} {error.message}"
    droppable = (OPTIONAL | {*_flat(rules.extra)}) & {*sent}
    if sent.get("tool_choice") == "auto":  # as if it were not said
        droppable |= {"tool_choice"}
    if "max_completion_tokens" in words and MAX_TOKENS in sent:
        return MAX_TOKENS
    if not _UNSUPPORTED.search(words):
        return None
    if error.parameter in droppable:
        return error.parameter
    said = _WORD.findall(_plain(words))
    named = [name for name in droppable if _plain(name) in said]
    return min(named, key=lambda name: said.index(_plain(name)), default=None)


def refused_by_another_name(
    error: ProviderError, asked: Collection[str], names: Mapping[str, str]
) -> str | None:
    """Return which of the parameters that were asked for the model does not take, by a word of an API
    of its own; None if it says none of them."""
    words = f"{error.said} {error.message}".lower()
    if error.code != "provider_rejected" or not _UNSUPPORTED.search(words):
        return None
    return next((name for word, name in names.items() if word in words and name in asked), None)


def _plain(text: str) -> str:
    """Return the text in small letters, without what joins the words of a name."""
    return text.lower().replace("_", "")
