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
_SECRET = re.compile(r"\b(sk|pk|key|Bearer)[-_ ][\w*.-]{6,}", re.IGNORECASE)

_PLAIN_WORDS: dict[ProviderErrorCode, str] = {
    "provider_unavailable": "The model provider is unavailable.",
    "provider_rate_limited": "The model provider limits Amber's requests.",
    "provider_timeout": "The model provider did not answer in time.",
    "provider_lost": "The connection to the model provider was lost.",
    "provider_malformed": "The model provider sent an answer that cannot be read.",
    "provider_rejected": "The model provider refused the request.",
    "provider_auth": "The model provider refused Amber's credentials.",
    "context_too_long": "The conversation is longer than the model's context.",
}

_CODE_BY_WORD: dict[str, ProviderErrorCode] = {
    "rate_limit_exceeded": "provider_rate_limited",
    "rate_limit_error": "provider_rate_limited",
    "insufficient_quota": "provider_rate_limited",
    "invalid_api_key": "provider_auth",
    "authentication_error": "provider_auth",
    "permission_error": "provider_auth",
    "invalid_request_error": "provider_rejected",
    "BadRequestError": "provider_rejected",
    "model_not_found": "provider_rejected",
    "timeout": "provider_timeout",
}


def fault(
    code: ProviderErrorCode, detail: str = "", *, retry_after_seconds: float | None = None
) -> ProviderError:
    """Return a ProviderError in plain words, followed by the provider's own (`detail`)."""
    detail = _SECRET.sub("[key]", " ".join(detail.split()))[:MAX_DETAIL_CHARS]
    words = f"{_PLAIN_WORDS[code]} It said: {detail}" if detail else _PLAIN_WORDS[code]
    return ProviderError(code, words, retry_after_seconds=retry_after_seconds)


def fault_of_status(
    status: int, body: object, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return what an answer with this HTTP status (400 to 599) means.

    `body` is the decoded JSON, or the text where it was none.
    """
    detail = error_detail(body)
    if status in (401, 403):
        return fault("provider_auth")
    if status == 429:
        return fault("provider_rate_limited", retry_after_seconds=retry_after(headers or {}))
    if _CONTEXT_TOO_LONG.search(f"{_word(body, 'code')} {_word(body, 'type')} {detail}"):
        return fault("context_too_long")
    if status >= 500:
        return fault("provider_unavailable", retry_after_seconds=retry_after(headers or {}))
    return fault("provider_rejected", detail)


def fault_of_event(error: object) -> ProviderError:
    """Return what `{"error": …}` in a stream means: by its status if it has one, else its words."""
    code, kind = _word(error, "code"), _word(error, "type")
    for word in (code, _word(error, "status"), _word(error, "status_code")):
        if word.isdecimal() and 400 <= int(word) < 600:
            return fault_of_status(int(word), error)
    detail = error_detail(error)
    if _CONTEXT_TOO_LONG.search(f"{code} {kind} {detail}"):
        return fault("context_too_long")
    known = _CODE_BY_WORD.get(code) or _CODE_BY_WORD.get(kind) or "provider_unavailable"
    return fault(known, detail if known == "provider_rejected" else "")


def error_detail(body: object) -> str:
    """Return the sentence inside an error body of any of the usual shapes, or ""."""
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body  # a proxy's HTML page
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error", body)
    if isinstance(inner, str):
        return inner
    for key in ("message", "detail", "error_description"):
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
