"""Say what a model can do, by what its provider lists of it and else by its name.

Pure. Providers' lists differ in all but the id; what each of them says is read where it is known.
Numbers for names are those of the makers' pages.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

MAX_RESERVED_TOKENS: Final = 32_000
"""Of a window is kept for the reply at most this, and a quarter: some models could answer with more
than half of it."""

ModelKind = Literal["chat", "embedding", "other"]


@dataclass(frozen=True, slots=True)
class Abilities:
    """What is known of a name. A dialect "" is that of the provider."""

    context_tokens: int
    max_output_tokens: int
    vision: bool = True
    dialect: str = ""


_BY_NAME: Final = (
    (re.compile(r"gpt-5(?!.*chat)"), Abilities(400_000, 128_000, dialect="responses")),
    (re.compile(r"gpt-5"), Abilities(128_000, 16_384)),
    (re.compile(r"gpt-4\.1"), Abilities(1_047_576, 32_768)),
    (re.compile(r"gpt-4o"), Abilities(128_000, 16_384)),
    (re.compile(r"gpt-4-turbo"), Abilities(128_000, 4_096)),
    (re.compile(r"gpt-4"), Abilities(8_192, 8_192, vision=False)),
    (re.compile(r"gpt-3\.5"), Abilities(16_385, 4_096, vision=False)),
    (re.compile(r"o3-mini"), Abilities(200_000, 100_000, vision=False, dialect="responses")),
    (re.compile(r"o[134]"), Abilities(200_000, 100_000, dialect="responses")),
    (re.compile(r"claude-3-haiku|claude-3-opus"), Abilities(200_000, 4_096)),
    (re.compile(r"claude-3-5"), Abilities(200_000, 8_192)),
    (re.compile(r"claude"), Abilities(200_000, 32_000)),
    (re.compile(r"gemini-(1|2\.0)"), Abilities(1_048_576, 8_192)),
    (re.compile(r"gemini"), Abilities(1_048_576, 65_536)),
    (re.compile(r"deepseek-reasoner"), Abilities(128_000, 64_000, vision=False)),
    (re.compile(r"deepseek"), Abilities(128_000, 8_192, vision=False)),
)
"""Patterns of the beginnings of names; the first that fits counts. OpenAI's reasoning models keep
their thoughts from call to call only in `responses`."""

DIMENSIONS: Final[Mapping[str, int]] = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
    "gemini-embedding-001": 3_072,
    "mistral-embed": 1_024,
}
"""The lengths of vectors by names; those of others are learnt by asking."""

_OTHER: Final = re.compile(
    r"whisper|tts|dall-e|image|audio|realtime|transcri|moderation|sora|babbage|davinci|imagen|veo|"
    r"rerank|ocr|guard|aqa|lyria|computer-use|deep-research|-live-|speech|orpheus|codex|instruct-\d"
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a provider names. `fields` are the columns of its row that are known."""

    upstream_id: str
    kind: ModelKind
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_entry(entry: Mapping[str, Any], *, own_dialects: bool) -> NamedModel:
    """Return what an entry of a provider's list tells, and what its name does. `own_dialects`: this
    is the maker of the models, who offers them in each of its APIs."""
    upstream_id = entry["id"].removeprefix("models/")  # Gemini's
    kind = _kind_of(upstream_id, entry)
    if kind == "embedding":
        known = DIMENSIONS.get(upstream_id)
        return NamedModel(upstream_id, kind, {"dimensions": known} if known else {})
    name = upstream_id.rpartition("/")[2].lower()
    known_by_name = next((able for start, able in _BY_NAME if start.match(name)), None)
    fields: dict[str, Any] = {}
    if known_by_name is not None:
        fields = {"vision": known_by_name.vision}
        fields |= _sizes(known_by_name.context_tokens, known_by_name.max_output_tokens)
        if own_dialects and known_by_name.dialect:
            fields["tool_dialect"] = known_by_name.dialect
    fields |= _listed_sizes(entry, fields) | _listed_vision(entry) | _listed_prices(entry)
    return NamedModel(upstream_id, kind, fields)


def _sizes(context_tokens: int, max_output_tokens: int) -> dict[str, int]:
    reserved = min(max_output_tokens, context_tokens // 4, MAX_RESERVED_TOKENS)
    return {"context_tokens": context_tokens, "max_output_tokens": reserved}


def _kind_of(upstream_id: str, entry: Mapping[str, Any]) -> ModelKind:
    name, kind = upstream_id.lower(), str(entry.get("type", ""))
    if "embed" in name or kind.startswith("embedding"):
        return "embedding"
    able = entry.get("capabilities")
    can_chat = able.get("completion_chat", True) if isinstance(able, Mapping) else True  # Mistral
    is_other = _OTHER.search(name) or not can_chat or entry.get("active") is False  # Groq
    return "other" if is_other else "chat"


def _listed_sizes(entry: Mapping[str, Any], known: Mapping[str, int]) -> dict[str, int]:
    """Return the window and the longest answer, as far as the provider says."""
    names = ("loaded_context_length", "max_model_len", "context_length", "context_window")
    more = ("max_context_length", "max_input_tokens")  # LM Studio, Mistral · Anthropic
    context = next(_whole_numbers(entry, *names, *more), None)
    top = entry.get("top_provider")  # OpenRouter
    longest = next(_whole_numbers(entry, "max_completion_tokens", "max_tokens"), None)
    if longest is None and isinstance(top, Mapping):
        longest = next(_whole_numbers(top, "max_completion_tokens"), None)
    if context is None:
        return {}
    return _sizes(context, longest or known.get("max_output_tokens") or 4_096)


def _whole_numbers(entry: Mapping[str, Any], *names: str) -> Iterator[int]:
    for name in names:
        value = entry.get(name)
        if isinstance(value, int) and 512 <= value < 2**31:
            yield value


def _listed_vision(entry: Mapping[str, Any]) -> dict[str, bool]:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:  # OpenRouter
            return {"vision": "image" in kinds}
        case {"capabilities": {"vision": bool(sees)}}:  # Mistral
            return {"vision": sees}
        case {"capabilities": {"image_input": {"supported": bool(sees)}}}:  # Anthropic
            return {"vision": sees}
        case {"type": "llm" | "vlm" as kind}:  # LM Studio
            return {"vision": kind == "vlm"}
    return {}


def _listed_prices(entry: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return OpenRouter's prices, which are in dollars per token, per million."""
    prices = entry.get("pricing")
    if not isinstance(prices, Mapping):
        return {}
    columns = {
        "price_in": prices.get("prompt"),
        "price_out": prices.get("completion"),
        "price_cached": prices.get("input_cache_read"),
    }
    return {name: price for name, said in columns.items() if (price := _per_million(said))}


def _per_million(said: Any) -> Decimal | None:
    try:
        price = round(Decimal(str(said)) * 1_000_000, 6)
    except InvalidOperation:
        return None
    return price if 0 < price < 1_000_000 else None
