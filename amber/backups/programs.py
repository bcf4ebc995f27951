"""Run Postgres' own programs (pg_dump, pg_restore, psql) on the database of the settings.

Uses those on the PATH or those that come with Amber, whichever fit the server's version. The
password goes by the environment: everybody on the machine can read command lines.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import connection
from psycopg.conninfo import make_conninfo

from amber import embedded


class BackupError(Exception):
    """A backup or a restore that cannot be done; the message says why and what to do."""


def programs() -> Path:
    """Return the folder of programs that fit this server: of its own version, else of a later one.

    Raises BackupError.
    """
    wanted = _server_major()
    on_path = shutil.which("pg_dump")
    # Not resolved: on Debian it is a link to a script that goes by the name it was called by.
    candidates = [Path(on_path).parent if on_path else None, embedded.programs_folder()]
    folders = [each for each in candidates if each and (each / "psql").exists()]
    majors = {folder: _major(folder / "pg_dump") for folder in folders}
    fitting = [folder for folder in folders if majors[folder] >= wanted]
    if not fitting:
        found = ", ".join(f"{folder} (version {major})" for folder, major in majors.items())
        raise BackupError(
            f"The server is Postgres {wanted} and needs a pg_dump of that version or a later one. "
            f"Found: {found or 'none'}. Put the server's programs on the PATH."
        )
    return min(fitting, key=lambda folder: (majors[folder], folders.index(folder)))


def _server_major() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def _major(program: Path) -> int:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    number = re.search(r"\) (\d+)", done.stdout)
    return int(number[1]) if number else 0


def conninfo(database: Mapping[str, Any] | None = None) -> str:
    """Return libpq's connection string of the settings' database, or of this one, without its password."""
    given = connection.settings_dict if database is None else database
    options = {name: value for name, value in given["OPTIONS"].items() if isinstance(value, str)}
    place = {"host": given["HOST"], "port": given["PORT"], "user": given["USER"]}
    known = {name: value for name, value in place.items() if value}
    return make_conninfo(dbname=given["NAME"], **known, **options)


def environment() -> dict[str, str]:
    """Return the programs' environment: this process's, with the password."""
    password: Any = connection.settings_dict["PASSWORD"]
    return os.environ | ({"PGPASSWORD": password} if password else {})


def run(argv: list[Any]) -> str:
    """Run a program to its end; return what it printed. Raises BackupError with its message."""
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupError(f"{Path(argv[0]).name} failed: {done.stderr.strip()}")
    return done.stdout
