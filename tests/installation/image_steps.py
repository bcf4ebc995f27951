"""Run the Dockerfile's steps in a folder, where no engine for containers is: `make check-image`.

Every COPY takes what an engine would (`.dockerignore`), every RUN of the first stage runs with its folders moved below
the temporary one. Then the result starts as another account would see it: nothing of it can be written, Amber's own
`manage.py bootstrap` and `up` with all roles run on the servers of the tests, and the image's own health check is asked.
What needs root and a system of its own is left out: accounts are not made.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from amber import installation
from tests.fixtures.databases import drop_database, own_database

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("/amber", "/venv", "/var/lib/amber", "/tmp/var")
"""What the steps name, and is another folder here."""
START_SECONDS: Final = 60
UID: Final = 10001

Step = tuple[str, str]


def steps(dockerfile: str) -> list[list[Step]]:
    """Return the stages, each a list of (instruction, rest of its line)."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    stages: list[list[Step]] = []
    for instruction, rest in lines:
        if instruction == "FROM":
            stages.append([])
        stages[-1].append((instruction, rest.strip()))
    return stages


def copied(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files that `COPY . .` takes, relative to the root."""
    patterns = (root / ".dockerignore").read_text().split()
    for folder, names, files in os.walk(root):
        here = Path(folder).relative_to(root)
        names[:] = [name for name in names if not is_ignored(here / name, patterns)]
        yield from (here / name for name in files if not is_ignored(here / name, patterns))


def is_ignored(path: Path, patterns: list[str]) -> bool:
    """Whether `.dockerignore` leaves the path out: `**/` stands for any folders, also for none."""
    parts = [path.as_posix(), *(path.relative_to(p).as_posix() for p in path.parents if p.name)]
    return any(
        any(fnmatch(part, pattern[3:]) for part in parts)
        if pattern.startswith("**/")
        else fnmatch(path.as_posix(), pattern)
        for pattern in patterns
    )


class Image:
    """The folder that stands for the image's root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.amber = folder / "amber"
        self.environ = {n: os.environ[n] for n in ("PATH", "PIP_INDEX_URL") if n in os.environ}
        self.environ |= {"HOME": str(folder), "LANG": "C.UTF-8"}

    def moved(self, text: str) -> str:
        for name in FOLDERS:
            text = re.sub(rf"(?<![\w/.]){name}(?![\w])", f"{self.folder}{name}", text)
        return text

    def build(self, stage: list[Step]) -> None:
        self.amber.mkdir()
        for instruction, rest in stage:
            began = time.monotonic()
            if instruction == "ENV":
                self.environ |= dict(self._settings(rest))
            elif instruction == "COPY":
                self._copy(*rest.split())
            elif instruction == "RUN":
                subprocess.run(
                    ["sh", "-euc", self.moved(rest)], cwd=self.amber, env=self.environ, check=True
                )
            say(f"{time.monotonic() - began:5.1f} s  {instruction} {rest[:80]}")

    def _settings(self, line: str) -> Iterator[tuple[str, str]]:
        for word in shlex.split(line):
            name, _, value = word.partition("=")
            yield name, self.moved(value).replace("$PATH", self.environ["PATH"])

    def _copy(self, source: str, target: str) -> None:
        for path in [Path(source)] if source != "." else copied():
            (self.amber / target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, self.amber / target / path)

    def size_mb(self) -> float:
        return sum(p.lstat().st_size for p in self.folder.rglob("*") if p.is_file()) / 2**20

    def protect(self) -> None:
        """Let nobody write the image: the account that it runs as is no root."""
        self.folder.chmod(0o755)
        (self.folder / "var/lib/amber").mkdir(parents=True)
        if _may_change_account():
            os.chown(self.folder / "var/lib/amber", UID, UID)
        subprocess.run(["chmod", "-R", "a+rX,a-w", self.amber, self.folder / "venv"], check=True)

    def files(self) -> set[tuple[str, float, int]]:
        """Return what the image consists of, to tell whether anything has been written."""
        found = [p for p in self.amber.rglob("*") if not p.is_dir()]
        return {(str(p), p.lstat().st_mtime, p.lstat().st_size) for p in found}

    def start(self, *argv: str, **settings: str) -> "subprocess.Popen[bytes]":
        """Start a command of the image, as its account where this is root."""
        account = {"user": UID, "group": UID, "extra_groups": []} if _may_change_account() else {}
        started: subprocess.Popen[bytes] = subprocess.Popen(
            [self.folder / "venv/bin/python", *argv],
            cwd=self.amber,
            env={**self.environ, **settings},
            **account,  # type: ignore[call-overload]
        )
        return started


def _may_change_account() -> bool:
    """Whether this is root, and another account may use its interpreter: not one in root's own folder."""
    python = Path(sys.executable).resolve()
    return os.geteuid() == 0 and all(folder.stat().st_mode & 0o001 for folder in python.parents)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Build the image's first stage, and let the last one's command run. The exit status is 1 if it is not well."""
    build, run = steps((ROOT / "Dockerfile").read_text())
    with tempfile.TemporaryDirectory(prefix="amber-image-") as name:
        image = Image(Path(name))
        image.build(build)
        say(f"{image.size_mb():.0f} MB beside the base image")
        image.environ |= {n: v for i, rest in run if i == "ENV" for n, v in image._settings(rest)}
        image.protect()
        before = image.files()
        try:
            status = _try(image)
            assert image.files() == before, "the image was written to"
            say("The image: no complaint.")
            return status
        finally:
            subprocess.run(["chmod", "-R", "u+w", name], check=True)


def _try(image: Image) -> int:
    database = f"amber_image_{os.getpid()}"
    port = 20_000 + os.getpid() % 20_000
    settings = {
        **installation.make_secrets(image.folder),
        **installation.addresses_of_roles(own_database(database, "template1")),
        "REDIS_URL": os.environ["REDIS_URL"],
        "AMBER_HOST": "127.0.0.1",
        "AMBER_PORT": str(port),
    }
    try:
        assert image.start("manage.py", "bootstrap", **settings).wait(120) == 0
        settings.pop("AMBER_OWNER_DATABASE_URL", None)
        running = image.start("manage.py", "up", "web", "chat", "ingest", **settings)
        try:
            return _ask(image, port, settings)
        finally:
            running.terminate()
            running.wait(90)
    finally:
        drop_database(database)


def _ask(image: Image, port: int, settings: dict[str, str]) -> int:
    deadline = time.monotonic() + START_SECONDS
    while image.start("-m", "amber.setup.container_health", **settings).wait(30) != 0:
        assert time.monotonic() < deadline, "the image's health check fails"
        time.sleep(0.5)
    for path in ("/healthz", "/", "/docs/", "/api/schema/"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            say(f"{answer.status} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
