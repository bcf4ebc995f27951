"""Embed memories and questions about them, and account for the calls.

There is no cache: a vector is kept with its memory alone, so that what a person forgets leaves
nothing behind. Requests are not held up: there the embedder gets a few seconds and one try, and
without it words must do; `embed_waiting` embeds later what has no vector yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Q

from amber.lib.database.connections import release_connections
from amber.lib.errors import Unavailable
from amber.lib.secrets import DecryptError
from amber.lib.workers.thread_bridge import run_on_loop
from engine.provider.model import ProviderError, Usage
from engine.provider.reply import RetryPolicy
from engine.text import tokens
from memory.facts.facts import EmbeddedText
from memory.models import Memory
from memory.owner import Owner
from memory.recall.calibration import calibrate, scales_of
from providers.models import EmbeddingModel
from providers.registry import default_embedding_model, engine_embedder
from providers.usage import ledger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

logger = structlog.get_logger(__name__)

REQUEST_SECONDS: Final = 2.0
"""People wait no longer for a vector; words find much of what there is."""

CHARS_PER_TOKEN: Final = 4
"""OpenAI's rule of thumb, where a provider does not count."""

_AT_ONCE: Final = 64
_ONE_TRY: Final = RetryPolicy(first_token_seconds=REQUEST_SECONDS, retries=0)


def embed(
    texts: Sequence[str],
    *,
    owner: Owner,
    model: EmbeddingModel,
    retry_policy: RetryPolicy | None = None,
) -> "Vectors":
    """Return the texts' vectors: (n, dimensions) float32, L2-normalised.

    One provider call a batch, and a ledger row; once for each model a further call, which calibrates it.
    Gives the thread's database connections back while it waits. Raises ProviderError, DecryptError.
    """
    retry_policy = retry_policy or RetryPolicy(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
    )
    vectors = _buy(texts, owner, model, retry_policy)
    _calibrate(model, owner)
    return vectors


def _calibrate(model: EmbeddingModel, owner: Owner) -> None:
    """Calibrate the model on the owner's account, unless it is known or is the built-in one."""
    if not model.provider.is_offline:
        calibrate(model.pk, lambda texts: _buy(texts, owner, model, _ONE_TRY))


def _buy(
    texts: Sequence[str], owner: Owner, model: EmbeddingModel, retry_policy: RetryPolicy
) -> "Vectors":
    texts = [tokens.beginning(text, model.max_input_tokens, model.encoding) for text in texts]
    used: list[Usage] = []
    embedder = engine_embedder(model, retry_policy=retry_policy, on_usage=used.append)
    if model.provider.is_offline:
        return run_on_loop(lambda _: embedder.embed(texts))
    release_connections()
    account = partial(
        ledger.record,
        model,
        organization_id=owner.organization_id,
        user_id=owner.user_id,
        guest_id=owner.guest_id,
    )
    try:
        vectors = run_on_loop(lambda _: embedder.embed(texts))
    except ProviderError as error:
        account(sum(used, Usage()), outcome=error.code)
        raise
    estimate = Usage(prompt_tokens=sum(map(len, texts)) // CHARS_PER_TOKEN)
    account(sum(used, Usage()) if used else estimate, estimated=not used)
    return vectors


def embedded_or_none(text: str, *, owner: Owner) -> EmbeddedText | None:
    """Return the text's vector for a request, or None where the embedder fails or takes long."""
    try:
        model = default_embedding_model()
        (vector,) = embed([text], owner=owner, model=model, retry_policy=_ONE_TRY)
    except (ProviderError, Unavailable, DecryptError) as error:
        logger.warning("memory_not_embedded", reason=_reason(error))
        return None
    return EmbeddedText(vector, model.pk, is_lexical=model.provider.is_offline)


def embed_waiting() -> None:
    """Embed valid memories that have no vector, or one of another model than the default.

    Goes on in batches until nothing is left or the embedder fails. Running it twice at once costs
    money and does no harm.
    """
    try:
        model = default_embedding_model()
        while _embed_some(model):
            pass
        _calibrate_again(model)
    except (ProviderError, Unavailable, DecryptError) as error:
        logger.warning("memories_not_embedded", reason=_reason(error))


def _calibrate_again(model: EmbeddingModel) -> None:
    """Calibrate the model if what was measured is lost, on the account of one whom it matters to."""
    if model.provider.is_offline or scales_of(model.pk):
        return
    rows = Memory.objects.filter(embedding_model_id=model.pk, valid_until__isnull=True)
    whose = rows.values_list("organization_id", "user_id", "guest_id").first()
    if whose is not None:
        _calibrate(model, Owner(*whose))


@dataclass(frozen=True, slots=True)
class _WaitingMemory:
    pk: UUID
    content: str
    content_md5: str
    owner: Owner


def _embed_some(model: EmbeddingModel) -> int:
    """Embed one batch and return how many were written. Raises ProviderError, DecryptError."""
    other = Q(embedding_model_id__isnull=True)  # two ranges of the index, not a scan for <>
    other |= Q(embedding_model_id__lt=model.pk) | Q(embedding_model_id__gt=model.pk)
    rows = Memory.objects.filter(other, valid_until__isnull=True)
    fields = ("pk", "content", "content_md5", "organization_id", "user_id", "guest_id")
    waiting = [
        _WaitingMemory(pk, content, md5, Owner(organization_id, user_id, guest_id))
        for pk, content, md5, organization_id, user_id, guest_id in rows.values_list(*fields)[
            :_AT_ONCE
        ]
    ]
    waiting.sort(key=lambda each: each.owner.word)
    return sum(
        _embed_of(owner, list(some), model)
        for owner, some in groupby(waiting, key=lambda each: each.owner)
    )


def _embed_of(owner: Owner, some: Sequence[_WaitingMemory], model: EmbeddingModel) -> int:
    """Store vectors where the text is still the same; what was edited meanwhile waits."""
    vectors = embed([each.content for each in some], owner=owner, model=model)
    return sum(
        Memory.objects.filter(pk=each.pk, content_md5=each.content_md5).update(
            vector=vector, embedding_model_id=model.pk
        )
        for each, vector in zip(some, vectors, strict=True)
    )


def _reason(error: Exception) -> str:
    return getattr(error, "code", type(error).__name__)
