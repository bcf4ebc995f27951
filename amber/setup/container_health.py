"""Tell whether what this container runs is well: `python -m amber.setup.container_health`.

The image's health check: the roles are those whose processes run here. Ends with 0 if each of them is well,
with 1 if one is not, or if none runs.
"""

import os
import sys
import urllib.request
from pathlib import Path

import psycopg

from amber.worker_health import consumes

MARKS = {
    "web": "uvicorn\0amber.asgi",
    "chat": "amber.worker\0chat",
    "ingest": "amber.worker\0ingest",
}
"""By role, what stands in the command line of its processes."""


def main() -> int:
    roles = running_roles(Path("/proc"))
    return 0 if roles and all(map(_is_well, roles)) else 1


def running_roles(processes: Path) -> list[str]:
    """Return the roles of which a process runs in this container."""
    found = [_command_line(path) for path in processes.glob("[0-9]*/cmdline")]
    return [role for role, mark in MARKS.items() if any(mark in line for line in found)]


def _command_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""


def _is_well(role: str) -> bool:
    try:
        if role == "web":
            port = os.environ.get("AMBER_PORT") or "8000"
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=3) as answer:
                return bool(answer.status == 200)
        address = os.environ.get("AMBER_SYSTEM_DATABASE_URL") or os.environ["DATABASE_URL"]
        return consumes(role, database_url=address)
    except (OSError, psycopg.Error):
        return False


if __name__ == "__main__":
    sys.exit(main())
