"""Read the first provider from the environment (docs/providers.md has the table).

Writes nothing: `providers.services.bootstrap_from_environment` creates the rows.
"""

from dataclasses import asdict, dataclass, replace
from typing import Final

import orjson
from django.core.exceptions import ImproperlyConfigured

from amber.lib import environment as env

OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_MODEL: Final = "gpt-4o-mini"
OPENAI_EMBEDDING_MODEL: Final = "text-embedding-3-small"

MAX_DIMENSIONS: Final = 4_000
"""The most that a halfvec HNSW index of pgvector takes."""

_DIMENSIONS: Final = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1_024,
    "bge-m3": 1_024,
}
"""From the models' own pages; others need AMBER_EMBEDDING_DIMENSIONS or get 1,536."""


@dataclass(frozen=True, slots=True)
class ProviderEnvironment:
    """What the environment says of the provider; an empty string is a value that is not set.

    With an empty `embedding_model` the built-in embedder is used.
    """

    api_key: str = ""
    base_url: str = ""
    model: str = ""
    vision_model: str = ""
    embedding_model: str = ""
    embedding_dimensions: int = 0

    @property
    def is_configured(self) -> bool:
        """Whether there is a key, or an address that needs none (Ollama, vLLM)."""
        return bool(self.api_key or self.base_url)

    def as_text(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_text(cls, text: str) -> "ProviderEnvironment":
        return cls(**orjson.loads(text)) if text else cls()


def read_environment() -> ProviderEnvironment:
    """Return the environment's values with defaults filled in.

    Raises ImproperlyConfigured for values that cannot be used.
    """
    said = ProviderEnvironment(
        api_key=env.text("OPENAI_API_KEY").strip(),
        base_url=env.text("OPENAI_BASE_URL").strip().rstrip("/"),
        model=env.text("AMBER_MODEL").strip(),
        vision_model=env.text("AMBER_VISION_MODEL").strip(),
        embedding_model=env.text("AMBER_EMBEDDING_MODEL").strip(),
        embedding_dimensions=env.integer("AMBER_EMBEDDING_DIMENSIONS", 0),
    )
    _check(said)
    return _with_defaults(said) if said.is_configured else ProviderEnvironment()


def _check(said: ProviderEnvironment) -> None:
    if said.base_url and not said.base_url.startswith(("http://", "https://")):
        raise ImproperlyConfigured("OPENAI_BASE_URL must be an address such as https://host/v1")
    if said.embedding_dimensions > MAX_DIMENSIONS:
        raise ImproperlyConfigured(
            f"AMBER_EMBEDDING_DIMENSIONS={said.embedding_dimensions} is too large:"
            f" at most {MAX_DIMENSIONS} can be indexed"
        )
    for name in ("model", "vision_model", "embedding_model"):
        value = getattr(said, name)
        if len(value) > 120 or value == "auto" or value.startswith("assistant:"):
            raise ImproperlyConfigured(f"AMBER_{name.upper()}={value!r} cannot be a model's name")


def _with_defaults(said: ProviderEnvironment) -> ProviderEnvironment:
    """Fill in what is not set. Only OpenAI itself is known to offer embeddings."""
    embedding_model = said.embedding_model or ("" if said.base_url else OPENAI_EMBEDDING_MODEL)
    return replace(
        said,
        base_url=said.base_url or OPENAI_URL,
        model=said.model or OPENAI_MODEL,
        embedding_model=embedding_model,
        embedding_dimensions=said.embedding_dimensions or _DIMENSIONS.get(embedding_model, 1_536),
    )
