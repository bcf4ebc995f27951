"""An ingest worker that stands still at a chosen moment, so that a test can kill it right there.

E2E_HALT_AT names the moment (MOMENTS), E2E_HALT_FILE is written when it has come. Batches are
small, so that a document of a test has several of each.
"""

import os
import time
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

MOMENTS = {
    "claimed": ("libraries.ingestion.stages.parse", 1, "before"),
    "parsed": ("libraries.ingestion.stages.chunk", 1, "before"),
    "chunked": ("libraries.ingestion.stages.embed_texts", 1, "before"),
    "embedding": ("libraries.ingestion.stages.embed_texts", 3, "before"),
    "embedded": ("libraries.ingestion.publication.publish", 1, "before"),
    "publishing": ("libraries.ingestion.publication.write_chunks", 3, "before"),
    "published": ("libraries.ingestion.publication.publish", 1, "after"),
}
"""A function, which call of it, and on which side of that call."""
BATCH = 16


def install() -> None:
    """For a process that was told to; nothing happens in others."""
    at, file = os.environ.get("E2E_HALT_AT"), os.environ.get("E2E_HALT_FILE")
    if not (at and file):
        return
    import_module("libraries.ingestion.stages").WINDOW_CHUNKS = BATCH  # type: ignore[attr-defined]
    import_module("libraries.ingestion.publication").PIECE_ROWS = BATCH  # type: ignore[attr-defined]
    target, call, side = MOMENTS[at]
    module_name, _, name = target.rpartition(".")
    module = import_module(module_name)
    real, calls = getattr(module, name), count(1)

    def halting(*args: Any, **kwargs: Any) -> Any:
        is_now = next(calls) == call
        if is_now and side == "before":
            _halt(Path(file))
        result = real(*args, **kwargs)
        if is_now and side == "after":
            _halt(Path(file))
        return result

    setattr(module, name, halting)


def _halt(file: Path) -> None:
    file.touch()
    while file.exists():
        time.sleep(0.05)
