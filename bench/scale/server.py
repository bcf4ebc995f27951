"""Run the Postgres and the Redis that the measured installations lie in, and keep their data.

Each installation is a database of one server, so that both are measured in the same minute under the
same load. Nothing is flushed to the disk: the data can be made again, and loading takes half of the time.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from amber import embedded, installation
from amber.database_roles import APP, SYSTEM
from bench.loadgen import say
from bench.stand import ROOT

REDIS_DATABASES: Final = ("reference", "small", "medium", "full")
"""Each installation has one of the server's databases."""
FOLDER: Final = ROOT / "var" / "bench-scale"
SETTINGS: Final = {
    "shared_buffers": "2GB",
    "effective_cache_size": "12GB",
    "max_wal_size": "4GB",
    "maintenance_work_mem": "256MB",
    "autovacuum": "off",  # tables are vacuumed once they are filled; nothing else may read meanwhile
    "max_parallel_workers_per_gather": "0",
    "track_io_timing": "off",
}
"""What differs from the embedded server: as on a machine that has 16 GB for Postgres."""


@contextmanager
def servers() -> Iterator[Mapping[str, str]]:
    """Run both for the block; yield the environment of an Amber process, without its databases."""
    var = embedded.make_var(FOLDER)
    postgres = embedded.prepare_postgres(var, durable=False)
    given = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    postgres = replace(postgres, argv=[*postgres.argv, *given])
    redis = embedded.prepare_redis(var, durable=False)
    environ = {**installation.make_secrets(var), "AMBER_VAR_DIR": str(var)}
    with (
        (var / "servers.log").open("ab") as log,
        embedded.running(postgres, output=log, timeout_seconds=600),
        embedded.running(redis, output=log),
    ):
        yield {**environ, "REDIS_URL": redis.url, "POSTGRES_URL": postgres.url}


def installation_environ(environ: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the environment of an Amber process that works on this installation."""
    url = urlsplit(environ["POSTGRES_URL"])

    def as_role(role: str) -> str:
        return urlunsplit(url._replace(netloc=f"{role}@", path=f"/scale_{name}"))

    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AMBER_", "OPENAI_"))}
    return {
        **kept,
        **{k: v for k, v in environ.items() if k != "POSTGRES_URL"},
        "REDIS_URL": f"{environ['REDIS_URL'].rpartition('/')[0]}/{REDIS_DATABASES.index(name)}",
        "DATABASE_URL": as_role(APP),
        "AMBER_SYSTEM_DATABASE_URL": as_role(SYSTEM),
        "AMBER_OWNER_DATABASE_URL": as_role("amber"),
        "DJANGO_SETTINGS_MODULE": "amber.settings",
        "AMBER_QUEUE_SECONDS": "0",
    }


def is_filled(environ: Mapping[str, str], name: str) -> bool:
    """Return whether this installation was filled to its end before."""
    with psycopg.connect(environ["POSTGRES_URL"], autocommit=True) as connection:
        found = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            [f"scale_{name}"],
        ).fetchone()
    return found is not None and found[0] == "filled"


def create(environ: Mapping[str, str], name: str) -> None:
    """Create the installation anew, with what `bootstrap` makes."""
    database = sql.Identifier(f"scale_{name}")
    with psycopg.connect(environ["POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(database))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
    say(f"  {name}: migrations")
    subprocess.run(
        [sys.executable, "manage.py", "bootstrap"],
        env={**installation_environ(environ, name), "AMBER_CONNECT_AS": "owner"},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def note_filled(environ: Mapping[str, str], name: str) -> None:
    with psycopg.connect(environ["POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS 'filled'").format(sql.Identifier(f"scale_{name}"))
        )


def analyze(environ: Mapping[str, str], name: str) -> None:
    """Make statistics anew, as autovacuum would."""
    owner = installation_environ(environ, name)["AMBER_OWNER_DATABASE_URL"]
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


def data_folder() -> Path:
    """Return where Postgres keeps the data: outside of FOLDER, should its account not reach that."""
    return (FOLDER / "postgres").resolve()
