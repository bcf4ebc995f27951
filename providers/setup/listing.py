"""Ask a provider which models it has, and what is not known of those that an operator chose.

Slow: it waits for the provider, and is never called within a transaction. `providers.services` adds
the models.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from amber.lib.database.connections import release_connections
from amber.lib.errors import Invalid
from engine.provider.client import Endpoint, fetch, read_body, response_errors, shared_client
from engine.provider.dialects import DIALECTS
from engine.provider.embedding import measure_dimensions
from engine.provider.faults import fault
from engine.provider.model import ProviderError
from providers import registry
from providers.environment import MAX_DIMENSIONS
from providers.known_models import NamedModel, read_entry
from providers.models import Provider
from providers.presets import Preset, preset_of

LIST_SECONDS: Final = 30.0
MAX_ID_CHARS: Final = 200
_OWN_DIALECTS: Final = frozenset({"openai"})
"""Presets of makers that offer their models in more than one API."""


@dataclass(frozen=True, slots=True)
class ListedUpstream:
    """A model of the provider's list, and whether a row has it already."""

    model: NamedModel
    is_added: bool


def list_upstream(provider: Provider) -> list[ListedUpstream]:
    """Return the provider's models, by kind and name; the offline one has no list. Asks it. Raises
    ProviderError, DecryptError."""
    if provider.is_offline:
        return []
    endpoint = registry.endpoint_of(provider)
    release_connections()
    entries = asyncio.run(_entries(endpoint, preset_of(provider.preset)))
    named = [read_entry(e, own_dialects=provider.preset in _OWN_DIALECTS) for e in entries]
    added = {
        *provider.models.values_list("upstream_id", flat=True),
        *provider.embedding_models.values_list("upstream_id", flat=True),
    }
    listed = [ListedUpstream(model, model.upstream_id in added) for model in named]
    return sorted(listed, key=lambda each: (each.model.kind, each.model.upstream_id))


async def _entries(endpoint: Endpoint, preset: Preset) -> list[Mapping[str, Any]]:
    """Return the entries of the provider's list, those with a fit id. Raises ProviderError."""
    headers = DIALECTS[preset.dialect].headers(endpoint.api_key)
    if preset.host_path:
        parts = urlsplit(endpoint.base_url)
        host = replace(endpoint, base_url=f"{parts.scheme}://{parts.netloc}")
        try:
            return await _list_at(host, preset.host_path, headers)
        except ProviderError as error:
            if error.code not in ("provider_rejected", "provider_malformed"):
                raise  # an older version has the other list alone
    return await _list_at(endpoint, preset.models_path, headers)


async def _list_at(
    endpoint: Endpoint, path: str, headers: Mapping[str, str | None]
) -> list[Mapping[str, Any]]:
    client = await shared_client(endpoint)
    try:
        async with asyncio.timeout(LIST_SECONDS):
            response = await fetch(client, path, headers)
            async with response_errors(), aclosing(response):
                body = await read_body(response)
    except TimeoutError:
        raise fault("provider_timeout") from None
    try:
        answer = orjson.loads(body)
        entries = answer["data"] if isinstance(answer, dict) else answer
        return [each for each in entries if _is_fit(each["id"])]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        raise fault("provider_malformed", "It sent no list of models.") from None


def _is_fit(upstream_id: Any) -> bool:
    is_text = isinstance(upstream_id, str) and upstream_id.isprintable()
    return is_text and 0 < len(upstream_id) <= MAX_ID_CHARS


def measure(provider: Provider, chosen: Iterable[NamedModel]) -> list[NamedModel]:
    """Return the models with the length of vectors where it was not known. Asks the provider.

    Raises ProviderError, DecryptError, and Invalid for vectors that no index takes.
    """
    return [_with_dimensions(provider, model) for model in chosen]


def _with_dimensions(provider: Provider, model: NamedModel) -> NamedModel:
    if model.kind != "embedding" or "dimensions" in model.fields:
        return model
    endpoint = registry.endpoint_of(provider)
    release_connections()
    length = asyncio.run(measure_dimensions(model.upstream_id, endpoint))
    if length > MAX_DIMENSIONS:
        raise Invalid(
            f"{model.upstream_id} makes vectors of {length:,} numbers; at most {MAX_DIMENSIONS:,} "
            "can be searched. Add it by hand with fewer dimensions, if it can make them."
        )
    return replace(model, fields={**model.fields, "dimensions": length})
