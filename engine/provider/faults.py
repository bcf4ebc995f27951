"""Derive a ProviderError from a provider's answer, by its status and its words alone.

The table is docs/architecture.md ("Providers"). Nothing here does I/O or knows a client library,
so that chat, embeddings and speech share one mapping. Texts for people are cut short and carry
nothing that looks like a key.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from engine.provider.model import ProviderError, ProviderErrorCode

MAX_DETAIL_CHARS = 300
"""Enough for the sentence that a provider writes; some send a whole traceback."""

_CONTEXT_TOO_LONG = re.compile(
    # OpenAI, vLLM, DeepSeek, Ollama, Mistral · vLLM, SGLang · llama.cpp · Bedrock, Anthropic ·
    # Gemini · text-generation-inference · xAI · Cohere
    r"context_length_exceeded|maximum (model |context |prompt )?length|context length"
    r"|longer than the (maximum )?model|(context (size|window)|context_size)"
    r"|(input|prompt) is too long|input token count|max_new_tokens` must be|`?inputs`? must have"
    r"|too many tokens",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(sk|pk|xai|gsk|Bearer)[-_ ][\w*.-]{6,}|\bAIza[\w-]{10,}"
    r"|\bkey[-_: ]{1,2}(?=[\w.-]*[\d*])[\w*.-]{6,}",
    re.IGNORECASE,
)
_QUERY = re.compile(r"(?<=\?)[^\s\"'<>]{8,}")
"""The query of an address: that of an image's link is a signature, which lets anybody read it."""
_WRONG_KEY = re.compile(
    # OpenAI, xAI · Gemini · DeepSeek, Mistral · OpenRouter · Zhipu, Moonshot, DashScope
    r"(incorrect|invalid|wrong|missing|no) (x-)?(api|auth)\S*[ -]?(key|token|credentials)"
    r"|api[ _-]?key (not valid|invalid)|authentication (fails?|failed|error)|unauthori[sz]ed",
    re.IGNORECASE,
)
_MODERATED = re.compile(
    r"moderation|flagged|usage (guidelines|polic)|content (policy|filter)", re.IGNORECASE
)
"""Said with 403 by OpenRouter and xAI, and then the question is refused, not the key."""

_PLAIN_WORDS: dict[ProviderErrorCode, str] = {
    "provider_unavailable": "The model provider is unavailable.",
    "provider_rate_limited": "The model provider limits Amber's requests.",
    "provider_timeout": "The model provider did not answer in time.",
    "provider_lost": "The connection to the model provider was lost.",
    "provider_malformed": "The model provider sent an answer that cannot be read.",
    "provider_rejected": "The model provider refused the request.",
    "provider_auth": "The model provider refused Amber's credentials.",
    "context_too_long": "The conversation is longer than the model's context.",
    "reply_too_long": "The model's answer was too long, and was cut off.",
}
_UNPAID = "Amber's account at the model provider has no credit left."

_CODE_BY_WORD: dict[str, ProviderErrorCode] = {
    "rate_limit_exceeded": "provider_rate_limited",
    "rate_limit_error": "provider_rate_limited",
    "insufficient_quota": "provider_rate_limited",
    "RESOURCE_EXHAUSTED": "provider_rate_limited",
    "invalid_api_key": "provider_auth",
    "authentication_error": "provider_auth",
    "permission_error": "provider_auth",
    "UNAUTHENTICATED": "provider_auth",
    "PERMISSION_DENIED": "provider_auth",
    "invalid_request_error": "provider_rejected",
    "BadRequestError": "provider_rejected",
    "INVALID_ARGUMENT": "provider_rejected",
    "model_not_found": "provider_rejected",
    "timeout": "provider_timeout",
    "DEADLINE_EXCEEDED": "provider_timeout",
}


def fault(
    code: ProviderErrorCode,
    detail: str = "",
    *,
    said: str = "",
    parameter: str = "",
    retry_after_seconds: float | None = None,
) -> ProviderError:
    """Return a ProviderError in plain words, followed by the provider's own (`detail`). `said` are
    words that people who ask do not need, and operators do."""
    detail, said = _shorten(detail), _shorten(said or detail)
    words = f"{_PLAIN_WORDS[code]} It said: {detail}" if detail else _PLAIN_WORDS[code]
    return ProviderError(
        code, words, retry_after_seconds=retry_after_seconds, said=said, parameter=parameter
    )


def _shorten(words: str) -> str:
    without_queries = _QUERY.sub("…", " ".join(words.split()))
    return _SECRET.sub("[key]", without_queries)[:MAX_DETAIL_CHARS]


def fault_of_status(
    status: int, body: object, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return what an answer with this HTTP status (400 to 599) means.

    `body` is the decoded JSON, or the text where it was none.
    """
    body = _first_of(body)
    detail = error_detail(body)
    said = f"{status} {detail} {_upstream_words(body)}"
    if status == 402:
        return ProviderError("provider_auth", _UNPAID, said=_shorten(said))
    if status == 401 or (status == 403 and not _MODERATED.search(detail)):
        return fault("provider_auth", said=said)
    if status == 408:
        return fault("provider_timeout", said=said)
    if status in (429, 498):  # 498: Groq's flexible tier is full
        pause = retry_after(headers or {})
        return fault("provider_rate_limited", said=said, retry_after_seconds=pause)
    words = f"{_word(body, 'code')} {_word(body, 'type')} {detail}"
    # Whatever the status is: some servers say it with a 500.
    if _CONTEXT_TOO_LONG.search(words):
        return fault("context_too_long", said=said)
    if status >= 500:
        pause = retry_after(headers or {})
        return fault("provider_unavailable", said=said, retry_after_seconds=pause)
    if _WRONG_KEY.search(words):  # 400 at Gemini and xAI
        return fault("provider_auth", said=said)
    return fault("provider_rejected", detail, said=said, parameter=_word(body, "param"))


def fault_of_event(error: object) -> ProviderError:
    """Return what `{"error": …}` in a stream means: by its status if it has one, else its words."""
    error = _first_of(error)
    code, kind = _word(error, "code"), _word(error, "type")
    for word in (code, _word(error, "status"), _word(error, "status_code")):
        if word.isdecimal() and 400 <= int(word) < 600:
            return fault_of_status(int(word), error)
    detail = error_detail(error)
    said = f"{code} {detail} {_upstream_words(error)}"
    if _CONTEXT_TOO_LONG.search(f"{code} {kind} {detail}"):
        return fault("context_too_long", said=said)
    if _WRONG_KEY.search(f"{code} {detail}"):
        return fault("provider_auth", said=said)
    words = (code, kind, _word(error, "status"))
    found = (_CODE_BY_WORD[word] for word in words if word in _CODE_BY_WORD)
    known: ProviderErrorCode = next(found, "provider_unavailable")
    return fault(known, detail if known == "provider_rejected" else "", said=said)


def fault_of_list(body: list[Any]) -> ProviderError:
    """Return what a list means where a reply was expected: Gemini's errors are in one."""
    inner = _first_of(body)
    if isinstance(inner, Mapping) and inner.get("error"):
        return fault_of_event(inner["error"])
    return fault("provider_malformed")


def _first_of(body: object) -> object:
    """Return the object that a list of one holds."""
    return body[0] if isinstance(body, list) and body else body


def _upstream_words(body: object) -> str:
    """Return what stood behind a gateway's own words: OpenRouter's `metadata.raw`."""
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    about = inner.get("metadata") if isinstance(inner, Mapping) else None
    return str(about.get("raw", "")) if isinstance(about, Mapping) else ""


def error_detail(body: object) -> str:
    """Return the sentence inside an error body of any of the usual shapes, or ""."""
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body  # a proxy's HTML page
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error", body)
    if isinstance(inner, str):
        return inner
    for key in ("message", "detail", "error_description", "msg"):
        if isinstance(inner, Mapping) and inner.get(key):  # a list in FastAPI's servers
            return str(inner[key])
    return ""


def _word(body: object, key: str) -> str:
    inner: Any = body.get("error", body) if isinstance(body, Mapping) else None
    value = inner.get(key) if isinstance(inner, Mapping) else None
    return str(value) if isinstance(value, str | int) else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds from `retry-after-ms` or `Retry-After` (seconds or an HTTP date), or None.

    `headers` are looked up in lower case. Source: RFC 9110, 10.2.3.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    """Return a finite number that is not negative, or None."""
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
