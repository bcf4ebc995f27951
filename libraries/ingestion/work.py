"""Hold what a worker knows of a document while it indexes it: text, chunks, vectors, times.

Vectors wait in a file once they are many, so that a very large document costs disk and not memory.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amber.lib.tracing import names, spans
from libraries.chunking.chunker import Chunk
from libraries.models import Document, DocumentStage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_BYTES_IN_MEMORY: Final = 8_000_000
"""Limit of one spool: 2,600 vectors of 1,536 halves."""

_ORDER: Final = list(DocumentStage)


@dataclass(slots=True)
class Work:
    """One document that is being indexed. `stage` is the last one that need not be done again."""

    document: Document
    stage: DocumentStage
    text: str = ""
    pages: tuple[int, ...] = ()
    mime_type: str = ""
    chunks: list[Chunk] = field(default_factory=list)
    embedded: int = 0
    timings: dict[str, int] = field(default_factory=dict)

    @classmethod
    def begin(cls, document: Document) -> "Work":
        """Begin the work on a document at the stage that earlier attempts reached.

        New content of a searchable document is always read from its bytes: until it is published,
        the stored text is that of the old chunks.
        """
        replaces = bool(document.progress.get("replaces"))
        stage = DocumentStage.STORED if replaces else DocumentStage(document.stage)
        return cls(document, stage, timings=dict(document.timings))

    @property
    def replaces(self) -> bool:
        return bool(self.document.progress.get("replaces"))

    def has_reached(self, stage: DocumentStage) -> bool:
        return _ORDER.index(self.stage) >= _ORDER.index(stage)

    @property
    def counts(self) -> dict[str, Any]:
        """Count the chunks, and those that have their vectors, for people to see."""
        return {"chunks": len(self.chunks), "embedded": self.embedded}

    @property
    def progress(self) -> dict[str, Any]:
        """Return the counts, and what the next attempt must know."""
        return self.counts | ({"replaces": True} if self.replaces else {})

    @contextmanager
    def time_stage(self, stage: DocumentStage) -> Iterator[None]:
        began = time.monotonic()
        with spans.span(names.INDEX_STAGE.format(stage=stage)):
            yield
        self.timings[stage] = round((time.monotonic() - began) * 1_000)


class VectorSpool:
    """Vectors in the order in which they were added, as halves, which is what the column stores."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._file = tempfile.SpooledTemporaryFile(max_size=MOST_BYTES_IN_MEMORY)  # noqa: SIM115  (see close)

    def add(self, vectors: "NDArray[np.float32]") -> None:
        """Add vectors of shape (n, dimensions)."""
        self._file.write(vectors.astype("<f2").tobytes())

    def rewind(self) -> None:
        self._file.seek(0)

    def take(self, rows: int) -> "NDArray[np.float16]":
        """Return the next vectors, of shape (rows, dimensions)."""
        import numpy as np

        data = self._file.read(rows * self._dimensions * 2)
        return np.frombuffer(data, dtype="<f2").reshape(-1, self._dimensions)

    def close(self) -> None:
        self._file.close()
