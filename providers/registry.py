"""Find the model that an alias means, and what the engine needs to speak to it.

A provider's key is decrypted here only. Rows are not remembered between turns: what operators
change takes effect with the next turn.

The engine imports numpy and the HTTP client when they are first used, not before: the web
processes, which only look up aliases, never pay for them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import cast

from django.conf import settings
from django.db.models import Q, QuerySet

from amber.lib.database.cached_sql import CachedStatement, cache_sql
from amber.lib.errors import Unavailable
from amber.lib.secrets import decrypt_column
from amber.lib.tracing import spans
from engine.provider.audio import OpenAISpeech, OpenAITranscription
from engine.provider.client import Endpoint
from engine.provider.embedding import Embedder, OfflineEmbedder, OpenAIEmbedder
from engine.provider.model import Model, ModelProfile, ParameterRules, SystemPosition, Usage
from engine.provider.offline import OfflineModel
from engine.provider.openai_model import OpenAIModel
from engine.provider.reply import DEFAULT_RETRY_POLICY, RetryPolicy
from engine.provider_fields import sender_of
from providers.calls.traced import TracedEmbedder, TracedModel
from providers.models import (
    AUTO_ALIAS,
    OFFLINE_URL,
    EmbeddingModel,
    LanguageModel,
    Provider,
)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """The model that runs. If it is not the one that was named, `reason` says why."""

    row: LanguageModel
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as clients see it."""

    alias: str
    vision: bool
    context_tokens: int
    max_output_tokens: int
    default: bool
    default_vision: bool
    offline: bool
    allowed_parameters: list[str]
    forced_parameters: list[str]
    created_at: datetime


def listed_models() -> list[ListedModel]:
    """List every alias that a client may use: `auto` first, then by name. One query.

    `auto` has the default model's abilities, and vision if there is a default vision model.
    """
    rows = list(_enabled_models())
    listed = sorted((_list_model(row) for row in rows), key=lambda model: model.alias)
    automatic = _find_default(rows, wants_vision=False) or next(iter(rows), None)
    if automatic is None:
        return listed
    sees = automatic.vision or any(row.default_vision and row.vision for row in rows)
    auto = replace(
        _list_model(automatic), alias=AUTO_ALIAS, vision=sees, default=False, default_vision=False
    )
    return [auto, *listed]


def enabled_embedding_models() -> QuerySet[EmbeddingModel]:
    """Return the enabled ones with their providers, by alias."""
    rows = EmbeddingModel.objects.filter(enabled=True).select_related("provider")
    return rows.order_by("alias")


def resolve(alias: str, *, wants_vision: bool) -> ResolvedModel:
    """Return the model to run. `wants_vision`: the context holds an image; matters to `auto` only.

    A stored alias that has since been disabled or deleted runs as `auto`. Without a default model
    the oldest enabled one runs. One query. Raises Unavailable if none is enabled.
    """
    rows = _named_or_default(alias=alias)
    if not is_auto(alias):
        named = next((row for row in rows if row.alias == alias), None)
        if named is not None:
            return ResolvedModel(named)
    row = _find_default(rows, wants_vision=wants_vision) or _enabled_models().first()
    if row is None:
        raise Unavailable("No language model is enabled.")
    if is_auto(alias):
        return ResolvedModel(row)
    return ResolvedModel(row, f"The model {alias!r} is not enabled; {row.alias} answers.")


@cache_sql
def _named_or_default(*, alias: str) -> QuerySet[LanguageModel]:
    return _enabled_models().filter(Q(alias=alias) | Q(default=True) | Q(default_vision=True))


def is_auto(alias: str) -> bool:
    """Whether the alias leaves the choice to the defaults; an empty one does, too."""
    return alias in ("", AUTO_ALIAS)


def is_known_alias(alias: str) -> bool:
    """Whether a client may use this alias. At most one query."""
    return is_auto(alias) or _enabled_models().filter(alias=alias).exists()


def allowed_parameters(alias: str) -> list[str]:
    """Return the parameters that are allowed for the model that the alias means now. One query."""
    rows = _named_or_default(alias=alias)
    row = next((row for row in rows if row.alias == alias), None)
    row = row or _find_default(rows, wants_vision=False)
    return list(row.allowed_parameters) if row else []


def default_embedding_model() -> EmbeddingModel:
    """Return the model that new libraries use. One query. Raises Unavailable if none is enabled."""
    found = _first_embedding_model()
    if not found:
        raise Unavailable("No embedding model is enabled.")
    return found[0]


def select_default_embedding_model() -> CachedStatement:
    """Return the statement of `default_embedding_model`, for a query that reads it beside other things: without
    parameters."""
    return _first_embedding_model.statement()


@cache_sql
def _first_embedding_model() -> QuerySet[EmbeddingModel]:
    rows = EmbeddingModel.objects.filter(enabled=True).select_related("provider")
    return rows.order_by("-default", "created_at")[:1]


def profile_of(row: LanguageModel) -> ModelProfile:
    """Return what the engine must know of the model to compose a request."""
    return ModelProfile(
        upstream_id=row.upstream_id,
        context_tokens=row.context_tokens,
        max_output_tokens=row.max_output_tokens,
        vision=row.vision,
        encoding=row.encoding,
        tool_dialect=row.tool_dialect,
        system_position=cast(SystemPosition, row.system_position),
        sender=sender_of(row.provider.base_url, row.upstream_id),
        parameters=ParameterRules(
            allowed=frozenset(row.allowed_parameters),
            extra=row.extra_parameters,
            forced=row.forced_parameters,
        ),
    )


def engine_model(row: LanguageModel) -> Model:
    """Return the model to send requests to. Raises DecryptError.

    Cheap: all models of a provider share its connections.
    """
    if row.provider.is_offline:
        model: Model = OfflineModel(profile_of(row))
    else:
        model = OpenAIModel(
            profile_of(row),
            endpoint_of(row.provider),
            max_reply_chars=settings.AMBER_MAX_REPLY_CHARS,
        )
    return TracedModel(model, base_url=_base_url(row.provider)) if spans.is_on() else model


def engine_embedder(
    row: EmbeddingModel,
    *,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    on_usage: Callable[[Usage], None] | None = None,
) -> Embedder:
    """Return the embedder, as cheaply as `engine_model`. Raises DecryptError.

    `on_usage` is called after each call of the provider.
    """
    make = partial(_embedder, row, retry_policy)
    if not spans.is_on():
        return make(on_usage)
    return TracedEmbedder(make, base_url=_base_url(row.provider), on_usage=on_usage)


def _embedder(
    row: EmbeddingModel, retry_policy: RetryPolicy, on_usage: Callable[[Usage], None] | None
) -> Embedder:
    if row.provider.is_offline:
        return OfflineEmbedder(row.dimensions)
    return OpenAIEmbedder(
        row.upstream_id,
        row.dimensions,
        endpoint_of(row.provider),
        retry_policy=retry_policy,
        on_usage=on_usage,
    )


def endpoint_of(provider: Provider) -> Endpoint:
    """Return where the provider answers, and with which key. Raises DecryptError."""
    key = decrypt_column(provider, "api_key")
    return Endpoint(provider.base_url, key, settings.AMBER_CONNECT_SECONDS)


def _base_url(provider: Provider) -> str:
    return "" if provider.is_offline else provider.base_url


def engine_speech() -> OpenAISpeech | None:
    """Return AMBER_TTS_MODEL at the environment's provider, else at the oldest; None without one.

    One query. Raises DecryptError.
    """
    provider = _first_provider()
    if provider is None:
        return None
    return OpenAISpeech(
        settings.AMBER_TTS_MODEL,
        settings.AMBER_TTS_VOICE_NAME,
        endpoint_of(provider),
        max_bytes=settings.AMBER_MAX_UPLOAD_BYTES,
    )


def engine_transcription() -> OpenAITranscription | None:
    """Return AMBER_TRANSCRIPTION_MODEL at the provider that speaks, too; None without either.

    One query. Raises DecryptError.
    """
    provider = _first_provider() if settings.AMBER_TRANSCRIPTION_MODEL else None
    if provider is None:
        return None
    return OpenAITranscription(settings.AMBER_TRANSCRIPTION_MODEL, endpoint_of(provider))


def _first_provider() -> Provider | None:
    """Return the environment's provider, else the oldest."""
    rows = Provider.objects.exclude(base_url=OFFLINE_URL).order_by("created_at")
    # `min` returns the first of equals.
    return min(rows, key=lambda row: not row.environment_sealed, default=None)


def _enabled_models() -> QuerySet[LanguageModel]:
    return (
        LanguageModel.objects.filter(enabled=True)
        .select_related("provider")
        .order_by("created_at", "id")
    )


def _list_model(row: LanguageModel) -> ListedModel:
    return ListedModel(
        alias=row.alias,
        vision=row.vision,
        context_tokens=row.context_tokens,
        max_output_tokens=row.max_output_tokens,
        default=row.default,
        default_vision=row.default_vision,
        offline=row.provider.is_offline,
        allowed_parameters=sorted(row.allowed_parameters),
        forced_parameters=sorted(row.forced_parameters),
        created_at=row.created_at,
    )


def _find_default(rows: Iterable[LanguageModel], *, wants_vision: bool) -> LanguageModel | None:
    """Return what `auto` means. Without a default vision model it is the default model."""
    default = next((row for row in rows if row.default), None)
    seeing = next((row for row in rows if row.default_vision), None)
    return seeing if wants_vision and seeing is not None else default
