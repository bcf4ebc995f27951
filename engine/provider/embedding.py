"""Turn texts into vectors: the embedder protocol, one behind a provider, and an offline one.

Every vector is L2-normalised here, whatever the provider sends, so that a dot product is a
cosine. numpy and the provider's client are imported on first use: importing this is free.
"""

import asyncio
import base64
import binascii
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from engine.provider.client import (
    Endpoint,
    log_failures,
    read_body,
    response_errors,
    send,
    shared_client,
)
from engine.provider.faults import fault
from engine.provider.model import ProviderError, Usage, as_json, usage_of
from engine.provider.reply import DEFAULT_RETRY_POLICY, RetryPolicy, pause_seconds
from engine.text.lexical import features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_BATCH_TEXTS = 128
MAX_BATCH_CHARS = 200_000
"""OpenAI takes 2,048 texts and 300,000 tokens; a Chinese character can be more than one token.
https://platform.openai.com/docs/api-reference/embeddings/create"""
OFFLINE_DIMENSIONS = 512


class Embedder(Protocol):
    """Something that embeds. Vectors of different `model_id`s cannot be compared."""

    @property
    def model_id(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return (len(texts), dimensions) float32, L2-normalised, in the order of `texts`.

        Raises ProviderError.
        """
        ...


class OpenAIEmbedder:
    """An embedding model of an OpenAI-compatible provider.

    `retry_policy.first_token_seconds` bounds one provider call; failed ones are retried as replies
    are. `on_usage` gets the tokens of each call.
    """

    def __init__(
        self,
        model_id: str,
        dimensions: int,
        endpoint: Endpoint,
        *,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
        on_usage: Callable[[Usage], None] | None = None,
    ) -> None:
        self.model_id = model_id
        self.dimensions = dimensions
        self._endpoint = endpoint
        self._retry_policy = retry_policy
        self._on_usage = on_usage

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Embed as `Embedder` says. One provider call per batch, one after the other."""
        import numpy as np

        parts = [await self._embed_with_retries(batch) for batch in batches(texts)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimensions), np.float32)

    async def _embed_with_retries(self, texts: list[str]) -> "Vectors":
        failed = 0
        while True:
            try:
                async with asyncio.timeout(self._retry_policy.first_token_seconds):
                    with log_failures(self.model_id):
                        return await self._embed_once(texts)
            except TimeoutError:
                error = fault("provider_timeout")
            except ProviderError as provider_error:
                error = provider_error
            failed += 1
            pause = pause_seconds(error, failed, self._retry_policy)
            if pause is None:
                raise error
            await asyncio.sleep(pause)

    async def _embed_once(self, texts: list[str]) -> "Vectors":
        client = await shared_client(self._endpoint)
        unknown = _unknown_fields.setdefault((self._endpoint.base_url, self.model_id), set())
        while True:
            optional = {"encoding_format": "base64", "dimensions": self.dimensions}
            fields = {k: v for k, v in optional.items() if k not in unknown}
            # Providers refuse an empty text; a blank says as little.
            body = {"model": self.model_id, "input": [t or " " for t in texts], **fields}
            try:
                response = await send(client, "/embeddings", as_json(body))
                break
            except ProviderError as error:
                refused = next((name for name in fields if name in error.message), None)
                if error.code != "provider_rejected" or refused is None:
                    raise
                unknown.add(refused)
        async with response_errors(), aclosing(response):
            return self._vectors(await read_body(response), len(texts))

    def _vectors(self, body: bytes, count: int) -> "Vectors":
        try:
            answer = orjson.loads(body)
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = [_vector(row["embedding"]) for row in rows]
        except (ValueError, KeyError, TypeError):
            raise fault("provider_malformed") from None
        if len(vectors) != count:
            raise fault("provider_malformed", f"{len(vectors)} vectors for {count} texts")
        wrong = next((len(v) for v in vectors if v.shape != (self.dimensions,)), None)
        if wrong is not None:
            raise fault("provider_malformed", f"vectors of {wrong}, not {self.dimensions}")
        usage = usage_of(answer.get("usage"))
        if usage is not None and self._on_usage is not None:
            self._on_usage(usage)
        return _normalise_vectors(vectors)


async def measure_dimensions(model_id: str, endpoint: Endpoint) -> int:
    """Return the length of the vectors that a model makes when nobody asks for another one.

    Asks for one. Raises ProviderError.
    """
    client = await shared_client(endpoint)
    try:
        async with asyncio.timeout(DEFAULT_RETRY_POLICY.first_token_seconds):
            body = as_json({"model": model_id, "input": ["length"]})
            response = await send(client, "/embeddings", body)
            async with response_errors(), aclosing(response):
                answer = orjson.loads(await read_body(response))
        return len(_vector(answer["data"][0]["embedding"]))
    except TimeoutError:
        raise fault("provider_timeout") from None
    except (ValueError, LookupError, TypeError):
        raise fault("provider_malformed", "It sent no vector.") from None


_unknown_fields: dict[tuple[str, str], set[str]] = {}
"""(base URL, model id) -> request fields it refused, learnt by asking once per process."""


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order, in batches that a provider takes; a longer text goes alone."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and (len(batch) == MAX_BATCH_TEXTS or chars + len(text) > MAX_BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    if batch:
        yield batch


def _vector(value: Any) -> "NDArray[np.float32]":
    """Read a vector, in base64 of little-endian float32 or as a list of numbers.

    Raises ValueError, TypeError.
    """
    import numpy as np

    if isinstance(value, str):
        try:
            return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        except binascii.Error as error:
            raise ValueError("not base64") from error
    return np.asarray(value, dtype=np.float32)


def _normalise_vectors(vectors: "list[NDArray[np.float32]]") -> "Vectors":
    import numpy as np

    stacked = np.stack(vectors).astype(np.float32)
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and norms.all()):
        raise fault("provider_malformed", "a vector without a direction")
    normalised: Vectors = (stacked / norms).astype(np.float32)
    return normalised


class OfflineEmbedder:
    """Embeds by hashed words and CJK bigrams: good enough for lexical search, without meaning.

    Deterministic over processes and versions of Python. Signed feature hashing:
    https://arxiv.org/abs/0902.2206; a word said n times weighs 1 + ln n.
    """

    model_id = "offline"

    def __init__(self, dimensions: int = OFFLINE_DIMENSIONS) -> None:
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Embed as `Embedder` says. Costs about 0.1 ms of CPU per 100 words once words are
        known."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return _normalise_vectors([self._vector(text) for text in texts])

    def _vector(self, text: str) -> "NDArray[np.float32]":
        import numpy as np

        vector = np.zeros(self.dimensions, np.float32)
        for feature, weight in (features(text) or {"": 1.0}).items():
            place, sign = _place(feature, self.dimensions)
            vector[place] += sign * (weight if weight <= 1 else 1 + math.log(weight))
        if not vector.any():  # features that cancel each other out
            vector[0] = 1.0
        return vector


@lru_cache(maxsize=50_000)
def _place(feature: str, dimensions: int) -> tuple[int, float]:
    digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
    return (digest >> 1) % dimensions, 1.0 if digest & 1 else -1.0
