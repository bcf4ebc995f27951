"""Tell whether a worker of this container consumes its queue: `python -m amber.worker_health chat`.

Ends with 0 if one showed so in the last 20 seconds, else with 1. Needs neither Django nor the worker's
interpreter, so it answers also while that is busy.
"""

import os
import socket
import sys

import psycopg

_SHOWN_SQL: str = """
SELECT EXISTS (
    SELECT FROM chats_workerheartbeat
    WHERE queue = %s AND starts_with(worker, %s) AND beat_at > now() - interval '20 seconds'
)
"""


def consumes(queue: str, *, database_url: str) -> bool:
    """Return whether a worker of this host consumes the queue. Raises psycopg.Error."""
    with psycopg.connect(database_url, connect_timeout=5) as connection:
        row = connection.execute(_SHOWN_SQL, (queue, f"{socket.gethostname()[:60]}:")).fetchone()
    return bool(row and row[0])


if __name__ == "__main__":
    address = os.environ.get("AMBER_SYSTEM_DATABASE_URL") or os.environ["DATABASE_URL"]
    sys.exit(0 if consumes(sys.argv[1], database_url=address) else 1)
