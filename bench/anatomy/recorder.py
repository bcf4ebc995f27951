"""Record when the parts of a turn begin and end, in the processes of an Amber that is measured.

`bench/anatomy/site` on the path of a process makes it record: what is a span for operators
(`amber.lib.tracing.spans`), and beside it the functions of REPLACED, which are too many or too small for a trace
and are replaced as their modules are imported. A process that is not measured pays nothing. Each part becomes a
line of JSON in the folder AMBER_ANATOMY; times are CLOCK_MONOTONIC in nanoseconds, which all processes of
one machine share.
"""

import functools
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from amber.lib.tracing import spans

FOLDER: Final = "AMBER_ANATOMY"

REPLACED: Final = {
    "engine.provider.openai_model": {"send": "until the provider's headers"},
    "amber.lib.postgres.base": {"TenantCursor.execute": "statement"},
    "psycopg": {"Connection.commit": "commit"},
}
"""By module: the functions that are recorded though they are no spans, and what a reader calls them."""


def start(folder: str) -> None:
    """Record from now on, whatever of REPLACED is imported, and all spans."""
    journal = _Journal(folder)
    spans.use(journal)
    sys.meta_path.insert(0, _Finder(journal))


class _Journal:
    """Writes parts to a file, and is the recorder of spans."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[int, int] = {}

    def begin(self, beginning: spans.Beginning) -> spans.TraceSpan:
        since_ns = time.time_ns() - beginning.at_ns if beginning.at_ns else 0
        return JournalSpan(beginning.name, time.monotonic_ns() - since_ns, self.write)

    def write(self, part: str, began: int, about: str) -> None:
        line = json.dumps([part, began, time.monotonic_ns(), threading.get_ident(), about]) + "\n"
        pid = os.getpid()
        if pid not in self._files:
            path = os.path.join(self._folder, f"{pid}.jsonl")  # noqa: PTH118  (before pathlib)
            self._files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._files[pid], line.encode())


class JournalSpan:
    """A span that becomes a line when it ends."""

    is_recorded = True
    trace_parent = ""

    def __init__(self, name: str, began: int, write: Callable[[str, int, str], None]) -> None:
        self._name = name
        self._began = began
        self._write: Callable[[str, int, str], None] | None = write

    def set(self, attributes: spans.Attributes) -> None: ...

    def rename(self, name: str) -> None:
        self._name = name

    def end(self, error: str = "", *, at_ns: int | None = None) -> None:
        if self._write is not None:
            self._write(self._name, self._began, error)
            self._write = None


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of REPLACED as Python does, and replaces their functions once they are there."""

    def __init__(self, journal: _Journal) -> None:
        self._journal = journal

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in REPLACED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for name, part in REPLACED[fullname].items():
                    replace(module, name, part, self._journal.write)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def replace(module: Any, name: str, part: str, write: Callable[[str, int, str], None]) -> None:
    """Replace a function of the module, or a method of one of its classes, by one that records.

    Raises AttributeError if there is none of that name.
    """
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, module)
    original = getattr(owner, last)
    is_statement = part == "statement"

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            write(part, began, " ".join(str(args[1]).split())[:80] if is_statement else "")

    @functools.wraps(original)
    async def recorded_coroutine(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic_ns()
        try:
            return await original(*args, **kwargs)
        finally:
            write(part, began, "")

    is_coroutine = inspect.iscoroutinefunction(original)
    setattr(owner, last, recorded_coroutine if is_coroutine else recorded)
