"""Run PostgreSQL 18 with pgvector and Redis from Python wheels, for Amber on one machine.

Prepares data under the var directory and tells how to start each server; the caller starts,
watches and stops them (`amber.up`, `tests.services`). It refuses to listen where others could
connect: Postgres has a Unix socket that only its owner may open, Redis a password on 127.0.0.1.

What is remembered, so that a second start finds everything as it was:
    var/postgres            the data directory, or a link to it
    var/postgres.sock       the socket's directory, or a link to one with a shorter path
    var/redis/              redis.conf (port and password) and the append-only file
"""

from amber.embedded.postgres import prepare_postgres, programs_folder
from amber.embedded.redis import prepare_redis
from amber.embedded.server import EmbeddedError, Server, make_var, running

__all__ = [
    "EmbeddedError",
    "Server",
    "make_var",
    "prepare_postgres",
    "prepare_redis",
    "programs_folder",
    "running",
]
