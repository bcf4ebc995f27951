"""Read a stranger's OpenAPI document in a process of its own, with limits of time and memory.

A document of 10 MB can take a second of work and hundreds of megabytes, and a hostile one as much
as it is given; neither may cost a worker that serves others. The child imports no Django, opens
nothing and gets no environment, so it holds no secret.

    description = read_in_child(content, FunctionsRequest(...))  # blocks: call it in a thread

If the child dies, the owner is not told why: the size of the document is all that can be changed.
"""

import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from tools.openapi.functions import Description, FunctionsRequest, describe

CPU_SECONDS: Final = 20
WALL_SECONDS: Final = 30
MEMORY_BYTES: Final = 1_000_000_000
MAX_ANSWER_BYTES: Final = 10_000_000

_ROOT: Final = Path(__file__).resolve().parents[2]
# Postgres' jsonb holds no NUL; an even number of backslashes before it is text of its own.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_TOO_MUCH: Final = "Reading the document takes too long or too much memory. Use a smaller document."

logger = structlog.get_logger(__name__)


def read_in_child(content: bytes, request: FunctionsRequest) -> Description:
    """Describe the document within WALL_SECONDS. Never raises for what is in the document."""
    head = orjson.dumps(asdict(request))
    try:
        child = subprocess.run(
            [sys.executable, "-m", "tools.openapi.reader"],
            input=head + b"\n" + content,
            capture_output=True,
            cwd=_ROOT,
            env={},
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        logger.warning("openapi_reader_timeout", document_bytes=len(content))
        return Description(problems={"document": _TOO_MUCH})
    if child.returncode != 0 or len(child.stdout) > MAX_ANSWER_BYTES:
        logger.warning(
            "openapi_reader_failed",
            returncode=child.returncode,
            document_bytes=len(content),
            answer_bytes=len(child.stdout),
            stderr=child.stderr[-1_000:].decode("utf-8", "replace"),
        )
        return Description(problems={"document": _TOO_MUCH})
    return Description(**orjson.loads(child.stdout))


def _limit_self() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _answer(head: bytes, content: bytes) -> bytes:
    fields: dict[str, Any] = orjson.loads(head)
    return _NUL.sub(rb"\1", orjson.dumps(asdict(describe(content, FunctionsRequest(**fields)))))


def main() -> None:
    _limit_self()
    head = sys.stdin.buffer.readline()
    sys.stdout.buffer.write(_answer(head, sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
