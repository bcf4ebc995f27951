"""Record when the parts of a turn begin and end, in the processes of an Amber that is measured.

`bench/anatomy/site` on the path of a process makes it record: the functions of SPANS are replaced as
their modules are imported, so a process that is not measured pays nothing. Each call becomes a line
of JSON in the folder AMBER_ANATOMY; times are CLOCK_MONOTONIC in nanoseconds, which all processes of
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

FOLDER: Final = "AMBER_ANATOMY"

SPANS: Final = {
    "amber.web.single_thread_handler": {"SingleThreadHandler._respond": "web: the request"},
    "accounts.sign_in.authentication": {"authenticate": "web: who asks"},
    "chats.services": {"post_message": "web: store the question, and its turn"},
    "chats.queue": {"enqueue_turn": "web: enqueue"},
    "chats.running.runner": {
        "run_next": "chat: the turn's task",
        "TurnRun.prepare": "chat: gather and compose",
        "TurnRun.drive": "chat: ask the model, store the answer",
    },
    "chats.turns.claims": {"claim_next": "chat: claim"},
    "chats.context.gathering": {
        "load_claimed_turn": "chat: read the turn",
        "gather": "chat: gather",
        "prepare": "chat: compose",
    },
    "chats.messages.turn_messages": {"first_events": "chat: first events"},
    "engine.provider.openai_model": {"send": "chat: until the provider's headers"},
    "chats.running.writer": {"TurnWriter.store_reply": "chat: store the answer"},
    "amber.lib.postgres.base": {"TenantCursor.execute": "statement"},
    "psycopg": {"Connection.commit": "commit"},
}
"""By module: the functions that are recorded, and what a reader calls them."""


def start(folder: str) -> None:
    """Record from now on, whatever of SPANS is imported."""
    sys.meta_path.insert(0, _Finder(_Journal(folder)))


class _Journal:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[int, int] = {}

    def write(self, part: str, began: int, about: str) -> None:
        line = json.dumps([part, began, time.monotonic_ns(), threading.get_ident(), about]) + "\n"
        pid = os.getpid()
        if pid not in self._files:
            path = os.path.join(self._folder, f"{pid}.jsonl")  # noqa: PTH118  (before pathlib)
            self._files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._files[pid], line.encode())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of SPANS as Python does, and replaces their functions once they are there."""

    def __init__(self, journal: _Journal) -> None:
        self._journal = journal

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in SPANS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for name, part in SPANS[fullname].items():
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
