"""`python -m tests.cluster up` starts the cluster, and looks after it until Ctrl-C.

Kill what you like: what dies is started again after a while, and a standby takes a primary's place.
"""

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tests.cluster.cluster import Cluster, started_cluster
from tests.cluster.programs import ProgramsMissing

USAGE: Final = "python -m tests.cluster up"
MENDED_SECONDS: Final = 10.0
"""So long stays dead what somebody has killed."""
PAUSE_SECONDS: Final = 0.2


def main(arguments: Sequence[str]) -> int:
    if list(arguments) != ["up"]:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), started_cluster() as cluster:
            say(describe(cluster))
            watch(cluster)
    except ProgramsMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    say("Stopped.")
    return 0


def watch(cluster: Cluster) -> None:
    """Look after it for ever, and tell what changes."""
    told = ""
    while True:
        cluster.tend()
        cluster.mend_all(MENDED_SECONDS)
        state = state_of(cluster)
        if state != told:
            say(f"{time.strftime('%H:%M:%S')}  {state}")
            told = state
        time.sleep(PAUSE_SECONDS)


def state_of(cluster: Cluster) -> str:
    dead = [member.name for member in cluster.members if not member.is_alive]
    primary = cluster.postgres.primary.name
    redis = cluster.redis.primary_name()
    return f"primaries: {primary}, {redis}; dead: {', '.join(dead) or 'nothing'}"


def describe(cluster: Cluster) -> str:
    """Return where everything is: pids to kill, addresses to look at."""
    rows = "\n".join(f"  {member.pid:>8}  {member.name}" for member in cluster.members)
    return f"""
{rows}

The page      {cluster.url}/  admin@localhost, {cluster.admin_password}
Logs          {cluster.folder}/*.log
Postgres      {cluster.postgres.primary.url}
Redis         {cluster.redis.url}
Try           kill -9 of any of them. It is started again after {MENDED_SECONDS:.0f} seconds.
Ctrl-C ends everything and deletes the folder.
"""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
