"""Commands of a platform's operator, each in a copy of a process that has loaded Amber already.

What a new process costs is a second of imports; a copy's cost is the command's own. Both sides are
here: `Commands` is the test's, `main` that of the process, which connects as the owner.
"""

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent
STREAMS = ("typed", "printed", "complained")
"""Files that a command has as its standard input, output and error."""


class Commands:
    """A process that waits for commands, with this environment; it ends when this one does."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = {**environ, "AMBER_CONNECT_AS": "owner"}
        self.channel, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.commands", str(other.fileno())],
                cwd=ROOT,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )

    def run(self, *arguments: str, typed: str = "") -> str:
        """Run `manage.py …` or `-m module …`, given this input; what it printed."""
        with tempfile.TemporaryDirectory() as folder, self.channel.makefile("rw") as talk:
            paths = {name: Path(folder, name) for name in STREAMS}
            for name, path in paths.items():
                path.write_text(typed if name == "typed" else "")
            talk.write(json.dumps([arguments, folder]) + "\n")
            talk.flush()
            status = talk.readline()
            assert status == "0\n", paths["complained"].read_text()[-3_000:] or status
            return paths["printed"].read_text()

    def close(self) -> None:
        self.channel.close()
        self.process.wait()


def main(descriptor: int) -> None:
    """Run in copies of this process what is asked for, until nobody asks any more."""
    import django

    django.setup()
    gc.freeze()
    with socket.socket(fileno=descriptor) as channel, channel.makefile("rw") as talk:
        for line in talk:
            if (pid := os.fork()) == 0:
                _become(*json.loads(line))
            talk.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
            talk.flush()


def _become(arguments: list[str], folder: str) -> NoReturn:
    """Be this command, with the files of its folder as streams."""
    for number, name in enumerate(STREAMS):
        flags = os.O_WRONLY if number else os.O_RDONLY
        os.dup2(os.open(Path(folder, name), flags), number)
    _run(*arguments)
    sys.stdout.flush()
    os._exit(0)  # to take apart all that was imported would cost more than most commands


def _run(first: str, *others: str) -> None:
    """Run a script or a module; raises SystemExit if it failed."""
    try:
        if first == "-m":
            sys.argv = list(others)
            runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [first, *others]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    main(int(sys.argv[1]))
