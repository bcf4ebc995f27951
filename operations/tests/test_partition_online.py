"""Cut the ledger up in processes that are killed, while others read and write it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from amber import installation
from amber.lib.ids import least_id_at, new_id
from tests.fixtures.databases import ROOT, drop_database, migrated, own_database

pytestmark = pytest.mark.e2e

OLD_ROWS = 30_000
WAIT_SECONDS = 120
LEDGER = "providers_usagerecord"
INSERT = f"""
INSERT INTO {LEDGER} (id, created_at, updated_at, organization_id, kind, model, prompt_tokens,
    completion_tokens, cached_tokens, estimated, cost, latency_ms, outcome)
VALUES (%s, now(), now(), %s, 'chat', 'm', 1, 1, 0, false, 0, 0, 'ok')
"""
LEAVE_AT = ("New rows are checked.", "Reading the table once", "The table is the partition", "Made")
"""What the command says when it is killed: once at each."""


@dataclass
class Installation:
    """`url` logs in as the superuser; `organizations` are two tenants."""

    url: str
    organizations: tuple[UUID, UUID] = field(default_factory=lambda: (uuid4(), uuid4()))

    def ask(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.url) as login:
            return login.execute(statement, values).fetchall()

    def ids(self) -> list[UUID]:
        return [pk for (pk,) in self.ask(f"SELECT id FROM {LEDGER}")]

    @contextmanager
    def command(self) -> Iterator["subprocess.Popen[str]"]:
        environ = os.environ | installation.addresses_of_roles(self.url)
        with subprocess.Popen(
            [sys.executable, "manage.py", "partition"],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def installed() -> Iterator[Installation]:
    name = f"amber_partition_{uuid4().hex[:8]}"
    made = Installation(own_database(name, migrated()))
    try:
        with psycopg.connect(made.url) as server:
            for organization_id in made.organizations:
                server.execute(
                    "INSERT INTO accounts_organization (id, created_at, updated_at, name, slug, personal, default_prompt)"
                    " VALUES (%s, now(), now(), 'Acme', %s, false, '')",
                    [organization_id, organization_id.hex],
                )
            with server.cursor() as cursor:
                cursor.executemany(INSERT, _old_rows(made.organizations[0]))
        yield made
    finally:
        drop_database(name)


def _old_rows(organization_id: UUID) -> Iterator[tuple[UUID, UUID]]:
    now = datetime.now(UTC)
    for number in range(OLD_ROWS):
        at = now - timedelta(minutes=number)
        yield UUID(int=least_id_at(at).int | uuid4().int & 0xFFFF_FFFF), organization_id


@dataclass
class Writer:
    """Writes rows of a tenant as the app does, each a transaction, and reads them back."""

    installed: Installation
    organization_id: UUID
    written: list[UUID] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    is_done: bool = False

    def run(self) -> None:
        with psycopg.connect(make_conninfo(self.installed.url, user="amber_app")) as login:
            while not self.is_done:
                try:
                    self._write(login)
                except (psycopg.Error, AssertionError) as fault:
                    self.faults.append(fault)
                    return

    def _write(self, login: "psycopg.Connection[Any]") -> None:
        said = (
            "SELECT set_config('amber.organization', %s, true), set_config('amber.user', '*', true)"
        )
        pk = new_id()
        with login.transaction():
            login.execute(said, [str(self.organization_id)], prepare=True)
            login.execute(INSERT, [pk, self.organization_id], prepare=True)
            found = login.execute(
                f"SELECT organization_id FROM {LEDGER} WHERE id >= %s", [pk], prepare=True
            ).fetchall()
        self.written.append(pk)
        assert {tenant for (tenant,) in found} == {self.organization_id}


@contextmanager
def writing(installed: Installation) -> Iterator[list[Writer]]:
    writers = [Writer(installed, each) for each in installed.organizations]
    threads = [threading.Thread(target=each.run) for each in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        for each in writers:
            each.is_done = True
        for thread in threads:
            thread.join(WAIT_SECONDS)


def wait_for_more(writers: list[Writer]) -> None:
    """Until each has written some more."""
    before = [len(each.written) for each in writers]
    until = time.monotonic() + WAIT_SECONDS
    while any(len(w.written) < seen + 5 for w, seen in zip(writers, before, strict=True)):
        assert not [fault for each in writers for fault in each.faults]
        assert time.monotonic() < until, "nobody could write"
        time.sleep(0.01)


def read_until(process: "subprocess.Popen[str]", *words: str) -> str:
    """Read what the command says until it says one of these."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if any(word in line for word in words):
            return "".join(lines)
    raise AssertionError(f"It never said {words}: {lines}")


def test_nothing_is_lost_or_refused_however_often_it_is_killed(installed: Installation) -> None:
    old = set(installed.ids())
    assert len(old) == OLD_ROWS
    with writing(installed) as writers:
        wait_for_more(writers)
        for number in range(len(LEAVE_AT)):
            with installed.command() as process:
                # On a busy machine what was killed before had got further than it said.
                read_until(process, *LEAVE_AT[number:], "Verified")
                process.kill()  # as the kernel's out-of-memory killer does it
            wait_for_more(writers)
        with installed.command() as process:
            said = read_until(process, "Verified")
            assert process.wait(WAIT_SECONDS) == 0, said
        wait_for_more(writers)
    assert not [fault for each in writers for fault in each.faults]
    ids = installed.ids()
    assert len(ids) == len(set(ids))
    assert set(ids) == old | {pk for each in writers for pk in each.written}
    [(kind,)] = installed.ask("SELECT relkind::text FROM pg_class WHERE relname = %s", LEDGER)
    assert kind == "p"
    left = "SELECT conname FROM pg_constraint WHERE conname LIKE '%%_until_%%' AND contype = 'c'"
    assert installed.ask(left) == []


def test_it_waits_for_a_long_reader_without_stopping_the_writers(installed: Installation) -> None:
    with psycopg.connect(installed.url) as reader, writing(installed) as writers:
        reader.execute(
            f"SELECT count(*) FROM {LEDGER}"
        )  # its lock lasts as long as its transaction
        with installed.command() as process:
            read_until(process, "partition_lock_missed")
            wait_for_more(writers)
            read_until(process, "partition_lock_missed")
            reader.commit()
            said = read_until(process, "Verified")
            assert process.wait(WAIT_SECONDS) == 0, said
    assert len(installed.ids()) == OLD_ROWS + sum(len(each.written) for each in writers)


def test_a_backup_of_partitions_is_restored_as_partitions(
    installed: Installation, tmp_path: Path
) -> None:
    environ = os.environ | installation.addresses_of_roles(installed.url)
    environ["AMBER_VAR_DIR"] = str(tmp_path / "var")
    before = set(installed.ids())

    def manage(*arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *map(str, arguments)],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    manage("partition")
    partitions = (
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1"
    )
    made = installed.ask(partitions, LEDGER)
    manage("backup", tmp_path)
    with psycopg.connect(installed.url) as server:
        server.execute(f"DELETE FROM {LEDGER} WHERE prompt_tokens = 1")
    manage("restore", next(tmp_path.glob("*.dump")), next(tmp_path.glob("*.files.tar")))
    assert installed.ask(partitions, LEDGER) == made
    assert set(installed.ids()) == before
    assert (
        installed.ask(
            "SELECT relname FROM pg_class WHERE relname LIKE 'providers_usagerecord%%' AND relkind IN"
            " ('r', 'p') AND (NOT relrowsecurity OR pg_get_userbyid(relowner) <> 'amber_owner'"
            " OR has_table_privilege('amber_app', oid, 'SELECT') = relispartition)"
        )
        == []
    )
    assert "Verified" in manage("partition")
