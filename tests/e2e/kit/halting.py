"""Ingest workers that stand still at a chosen moment, so that a test can kill one right there.

E2E_HALT_FOLDER is where they meet: a test `arms` a moment (MOMENTS), the worker that comes to it
says so by a file, and goes on once that is gone. As long as a moment is armed batches are small,
so that a document of a test has several of each.
"""

import os
import time
from importlib import import_module
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

SIZES = ("libraries.ingestion.stages.WINDOW_CHUNKS", "libraries.ingestion.publication.PIECE_ROWS")
BATCH = 16


class Halt:
    """Both sides of the folder: `arm` and `disarm` are the test's."""

    def __init__(self, folder: Path) -> None:
        self.armed = folder / "armed"
        self.halted = folder / "halted"

    def arm(self, moment: str) -> None:
        self.halted.unlink(missing_ok=True)
        draft = self.armed.with_suffix(".draft")
        draft.write_text(moment)
        draft.replace(self.armed)

    def disarm(self) -> None:
        self.armed.unlink(missing_ok=True)

    @property
    def moment(self) -> str:
        try:
            return self.armed.read_text()
        except FileNotFoundError:
            return ""

    def stand_still(self) -> None:
        self.halted.touch()
        while self.halted.exists():
            time.sleep(0.05)


def install() -> None:
    """For a process that was told to; nothing happens in others."""
    if folder := os.environ.get("E2E_HALT_FOLDER"):
        halt = Halt(Path(folder))
        usual = {place: _get(place) for place in SIZES}
        for moment in MOMENTS:
            _install(moment, halt, usual)


def _install(moment: str, halt: Halt, usual: dict[str, int]) -> None:
    target, call, side = MOMENTS[moment]
    real, calls = _get(target), 0

    def halting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        armed = halt.moment
        for place, size in usual.items():
            _set(place, BATCH if armed else size)
        calls = calls + 1 if armed == moment else 0
        is_now = armed == moment and calls == call
        if is_now and side == "before":
            halt.stand_still()
        result = real(*args, **kwargs)
        if is_now and side == "after":
            halt.stand_still()
        return result

    _set(target, halting)


def _get(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)


def _set(place: str, value: object) -> None:
    module, _, name = place.rpartition(".")
    setattr(import_module(module), name, value)
