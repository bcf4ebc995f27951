"""Embed with a model that the caller of a measure names, over OpenAI's protocol."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amber.lib.workers.thread_bridge import run_on_loop
from bench.quality.options import EmbedderOption
from engine.provider.embedding import OpenAIEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class RealEmbedder:
    """Asks for each text once; a measure asks the same questions again and again."""

    def __init__(self, named: EmbedderOption) -> None:
        self._embedder = OpenAIEmbedder(
            named.model,
            named.dimensions,
            base_url=named.url,
            api_key=os.environ.get("OPENAI_API_KEY", "none"),
        )
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return (n, dimensions) float32, L2-normalised. Raises ProviderError."""
        import numpy as np

        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            vectors = run_on_loop(lambda _: self._embedder.embed(missing))
            self._known |= dict(zip(missing, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])
