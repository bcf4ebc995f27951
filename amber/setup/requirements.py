"""Install requirements with one line of progress: `python amber/setup/requirements.py requirements.txt`.

What pip says goes to .venv/pip.log, and to the terminal only if it fails. Runs before anything is installed,
so it imports nothing but Python's own.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

OLDEST = (3, 11)
EVERY = 20
"""Where nobody watches, as in CI's log, a line for so many packages."""


def main(requirements: Path) -> int:
    """Install what the file pins, and remember that in .venv. Returns pip's status."""
    venv = Path(sys.prefix)
    if sys.version_info < OLDEST:
        sys.stderr.write(
            f"{venv} is of an older Python than {OLDEST[0]}.{OLDEST[1]}. Remove it and run make again.\n"
        )
        return 1
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--progress-bar", "off", "-r", str(requirements)]
    with (venv / "pip.log").open("w+") as log:
        status = install(pip, _count(requirements), log)
        if status:
            log.seek(0)
            sys.stderr.write("\n" + "".join(log.readlines()[-30:]))
            return status
    shutil.copy(requirements, venv / requirements.name)
    return 0


def install(pip: list[str], total: int, log: IO[str]) -> int:
    """Run pip; count what it fetches, keep all it says in the log. Return its status."""
    seen = 0
    with subprocess.Popen(pip, stdout=subprocess.PIPE, stderr=log, text=True) as running:
        for line in running.stdout or ():
            log.write(line)
            if line.startswith(("Collecting ", "Requirement already satisfied")):
                seen = min(seen + 1, total)
                _show(f"Fetching requirements: {seen} of {total}", seen)
            elif line.startswith("Installing collected"):
                _show(f"Installing {total} requirements", 0)
    _show(f"Installed {total} requirements", 0, is_last=True)
    return int(running.returncode)


def _show(text: str, number: int, *, is_last: bool = False) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(f"\r{text:<60}" + ("\n" if is_last else ""))
    elif number % EVERY == 0:
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _count(requirements: Path) -> int:
    return sum("==" in line for line in requirements.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
