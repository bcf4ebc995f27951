"""Create the models that the environment or an operator names, and set the default models.

Operators are never overruled: a value of the environment is applied when it changes, not at every
start, and a default that somebody chose in the admin stays.
"""

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet

from amber.lib.errors import Invalid
from amber.lib.secrets import DecryptError, decrypt_column, encrypt_column
from engine.provider.embedding import OFFLINE_DIMENSIONS
from providers.environment import ProviderEnvironment, read_environment
from providers.known_models import NamedModel
from providers.models import AUTO_ALIAS, OFFLINE_URL, EmbeddingModel, LanguageModel, Provider
from providers.presets import preset_at, preset_of

logger = structlog.get_logger(__name__)

AnyModel = TypeVar("AnyModel", LanguageModel, EmbeddingModel)

ENVIRONMENT_PROVIDER = "environment"
OFFLINE_ALIAS = "offline"
OFFLINE_EMBEDDING_ALIAS = "offline-embedding"

OFFLINE_CONTEXT_TOKENS = 32_000
"""The offline model has no limit of its own; this one is that of a small model."""

MAX_ALIAS_CHARS = 120

_BOOTSTRAP_LOCK = 0x616D6272_70726F76
"""Any 64-bit number that nothing else locks: "ambrprov"."""

_VISION_PREFIXES = ("gpt-4o", "gpt-4.1", "gpt-5")
"""OpenAI's models whose names begin so take images."""


@transaction.atomic(durable=True)
def bootstrap_from_environment() -> None:
    """Create the provider and models that the environment names, and offline ones where needed.

    Idempotent; processes that start at once wait for each other. Afterwards there is a default
    language model and a default embedding model. Raises ImproperlyConfigured.
    """
    said = read_environment()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_BOOTSTRAP_LOCK])
    if said.is_configured:
        _apply_environment(said)
    if not LanguageModel.objects.filter(default=True).exists():
        _set_default(_offline_model())
    if not EmbeddingModel.objects.filter(default=True).exists():
        _set_default(_offline_embedding_model())


@transaction.atomic(durable=True)
def make_default(model: AnyModel) -> AnyModel:
    """Make this the model that `auto` means, or that new libraries use. Raises Invalid for a disabled model."""
    if not model.enabled:
        raise Invalid(f"{model.alias} is disabled; enable it first.")
    _set_default(model)
    return model


@transaction.atomic(durable=True)
def make_default_vision(model: LanguageModel) -> LanguageModel:
    """Make this the model that `auto` means for images.

    Raises Invalid unless it is enabled and reads images.
    """
    if not (model.enabled and model.vision):
        raise Invalid(f"{model.alias} must be enabled, and it must accept images.")
    _set_default(model, "default_vision")
    return model


@transaction.atomic(durable=True)
def add_models(
    provider: Provider, chosen: Iterable[NamedModel]
) -> list[LanguageModel | EmbeddingModel]:
    """Add a row for each of these that has none, and return the new rows.

    The first of a kind becomes the default where only an offline model is. Raises Invalid for an
    embedding model whose vectors have no known length.
    """
    rows = [row for model in chosen if (row := _add(provider, model)) is not None]
    for kind in (LanguageModel, EmbeddingModel):
        first = next((row for row in rows if isinstance(row, kind)), None)
        defaults = kind._default_manager.filter(default=True)
        if first is not None and not defaults.exclude(provider__base_url=OFFLINE_URL).exists():
            _set_default(first)
    return rows


def _add(provider: Provider, model: NamedModel) -> LanguageModel | EmbeddingModel | None:
    """Create the model's row, unless the provider has one of this name."""
    kind = EmbeddingModel if model.kind == "embedding" else LanguageModel
    name = model.upstream_id
    if kind.objects.filter(provider=provider, upstream_id=name).exists():
        return None
    fields = dict(model.fields)
    if model.kind != "embedding":
        preset = preset_of(provider.preset)
        fields = {"tool_dialect": preset.dialect, **preset.quirks, **fields}
    elif "dimensions" not in fields:
        raise Invalid(f"The vector length of {name} is not known.")
    row = kind(
        provider=provider, upstream_id=name, alias=_free_alias(kind, provider, name), **fields
    )
    row.save()
    return row


def _free_alias(
    kind: type[LanguageModel] | type[EmbeddingModel], provider: Provider, upstream_id: str
) -> str:
    """Return the model's name as an alias, behind the provider's where another model has it."""
    full = f"{provider.name}/{upstream_id}"
    for alias in itertools.chain(
        [upstream_id], [full], (f"{n}/{full}" for n in itertools.count(2))
    ):
        alias = alias[:MAX_ALIAS_CHARS]
        is_reserved = alias == AUTO_ALIAS or alias.startswith("assistant:")
        if not is_reserved and not kind.objects.filter(alias=alias).exists():
            return alias
    raise AssertionError("there is always another number")


def _apply_environment(now: ProviderEnvironment) -> None:
    provider, before = _environment_provider()
    if now.base_url != before.base_url:
        provider.base_url = now.base_url
        provider.preset = preset_at(now.base_url)
    if now.api_key != before.api_key:
        encrypt_column(provider, "api_key", now.api_key)
    encrypt_column(provider, "environment", now.as_text())
    provider.save()
    _apply_model(provider, now, before)
    _apply_vision_model(provider, now, before)
    _apply_embedding_model(provider, now, before)


def _environment_provider() -> tuple[Provider, ProviderEnvironment]:
    """Return the row that the environment made, under any name, and what the environment said then.

    What cannot be decrypted any more counts as never said: its key could not be decrypted either.
    """
    provider = Provider.objects.exclude(environment_sealed="").order_by("created_at").first()
    if provider is None:
        taken = Provider.objects.filter(name=ENVIRONMENT_PROVIDER).exists()
        name = f"{ENVIRONMENT_PROVIDER} (OPENAI_BASE_URL)" if taken else ENVIRONMENT_PROVIDER
        return Provider(name=name), ProviderEnvironment()
    try:
        return provider, ProviderEnvironment.from_text(decrypt_column(provider, "environment"))
    except DecryptError:
        logger.warning("environment_unreadable", provider=provider.name)
        return provider, ProviderEnvironment()


def _apply_model(provider: Provider, now: ProviderEnvironment, before: ProviderEnvironment) -> None:
    if now.model == before.model:
        return
    model = _language_model(provider, now.model, vision=now.model.startswith(_VISION_PREFIXES))
    current = LanguageModel.objects.select_related("provider").filter(default=True).first()
    if current is None or current.provider.is_offline or current.alias == before.model:
        _set_default(model)


def _apply_vision_model(
    provider: Provider, now: ProviderEnvironment, before: ProviderEnvironment
) -> None:
    if now.vision_model == before.vision_model or not now.vision_model:
        return
    model = _language_model(provider, now.vision_model, vision=True)
    current = LanguageModel.objects.filter(default_vision=True).first()
    if current is None or current.alias == before.vision_model:
        LanguageModel.objects.filter(pk=model.pk).update(vision=True)
        _set_default(model, "default_vision")


def _apply_embedding_model(
    provider: Provider, now: ProviderEnvironment, before: ProviderEnvironment
) -> None:
    names = ("embedding_model", "embedding_dimensions")
    if not now.embedding_model or all(getattr(now, n) == getattr(before, n) for n in names):
        return
    model = _embedding_model(provider, now.embedding_model, now.embedding_dimensions)
    current = EmbeddingModel.objects.select_related("provider").filter(default=True).first()
    if (
        current is None
        or current.provider.is_offline
        or (current.provider_id == provider.pk and current.upstream_id == before.embedding_model)
    ):
        _set_default(model)


def _language_model(provider: Provider, name: str, *, vision: bool) -> LanguageModel:
    """Return the row of this alias, whoever made it; a new one gets the columns' defaults, and
    speaks as its provider does."""
    dialect = preset_of(provider.preset).dialect
    fields = {"upstream_id": name, "vision": vision, "tool_dialect": dialect}
    model, _ = LanguageModel.objects.get_or_create(
        alias=name, defaults={"provider": provider, **fields}
    )
    return model


def _embedding_model(provider: Provider, name: str, dimensions: int) -> EmbeddingModel:
    """Return the row of this name and length.

    Vectors of another length make another model, whose alias ends in the length.
    """
    found = EmbeddingModel.objects.filter(alias=name).first()
    alias = name if found is None or found.dimensions == dimensions else f"{name}-{dimensions}"
    defaults = {"provider": provider, "upstream_id": name, "dimensions": dimensions}
    model, _ = EmbeddingModel.objects.get_or_create(alias=alias, defaults=defaults)
    return model


def _offline_provider() -> Provider:
    found = Provider.objects.filter(base_url=OFFLINE_URL).first()
    return found or Provider.objects.create(name=OFFLINE_ALIAS, base_url=OFFLINE_URL)


def _offline_model() -> LanguageModel:
    fields = {"upstream_id": OFFLINE_ALIAS, "context_tokens": OFFLINE_CONTEXT_TOKENS}
    model, _ = LanguageModel.objects.get_or_create(
        alias=OFFLINE_ALIAS, defaults={"provider": _offline_provider(), **fields}
    )
    return model


def _offline_embedding_model() -> EmbeddingModel:
    fields = {"upstream_id": OFFLINE_EMBEDDING_ALIAS, "dimensions": OFFLINE_DIMENSIONS}
    model, _ = EmbeddingModel.objects.get_or_create(
        alias=OFFLINE_EMBEDDING_ALIAS, defaults={"provider": _offline_provider(), **fields}
    )
    return model


def _set_default(model: LanguageModel | EmbeddingModel, column: str = "default") -> None:
    """Set the column of this model, and of no other of its kind."""
    rows: QuerySet[Any] = type(model)._default_manager.all()
    rows.filter(**{column: True}).exclude(pk=model.pk).update(**{column: False})
    rows.filter(pk=model.pk).update(**{column: True})
    setattr(model, column, True)
