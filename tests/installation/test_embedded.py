import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import psycopg
import pytest
import redis

from amber.embedded import Server, prepare_postgres, prepare_redis, running
from amber.processes import spawn, wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path every account can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="amber-embedded-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def var(folder: Path) -> Path:
    return folder / "var"


def ask(server: Server, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def write_row(server: Server) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def left_running(server: Server) -> Popen[bytes]:
    """Started, and forgotten as a killed supervisor forgets."""
    process = spawn(server.argv, env=os.environ, account=server.account)
    assert wait_until(lambda: server.is_ready(process.pid), timeout_seconds=60)
    return process


def test_a_second_start_finds_the_rows_at_the_same_address(var):
    first = prepare_postgres(var)
    with running(first):
        write_row(first)

    second = prepare_postgres(var)
    with running(second):
        assert ask(second, "SELECT answer FROM kept") == 42
    assert second.url == first.url


def test_has_vector_search_and_listens_to_nobody_else(var):
    server = prepare_postgres(var, durable=False)
    with running(server):
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE EXTENSION vector")
        assert ask(server, "SHOW listen_addresses") == ""
        assert (var / "postgres.sock" / ".s.PGSQL.5432").stat().st_mode & 0o077 == 0


def test_does_not_lose_what_is_committed_unless_told_that_it_may(var):
    server = prepare_postgres(var)
    with running(server):
        assert (ask(server, "SHOW fsync"), ask(server, "SHOW synchronous_commit")) == ("on", "on")


def test_keeps_rows_when_everything_is_killed(var):
    server = prepare_postgres(var)
    process = left_running(server)
    write_row(server)
    process.kill()
    process.wait()

    server = prepare_postgres(var)
    with running(server):
        assert ask(server, "SELECT answer FROM kept") == 42


def test_starts_although_the_old_pid_belongs_to_another_program_now(var):
    server = prepare_postgres(var, durable=False)
    (var / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{var / 'postgres'}\n")
    lock = var / "postgres.sock" / ".s.PGSQL.5432.lock"
    lock.write_text(f"{os.getpid()}\n{var / 'postgres'}\n")

    server = prepare_postgres(var, durable=False)
    with running(server):
        assert ask(server, "SELECT 1") == 1


@pytest.mark.parametrize("prepare", [prepare_postgres, prepare_redis])
def test_stops_a_server_that_was_left_running(var, prepare):
    process = left_running(prepare(var, durable=False))

    server = prepare(var, durable=False)

    assert process.wait(30) == 0
    with running(server):
        pass


def test_starts_over_after_an_interrupted_first_start(var):
    (var / "postgres.unfinished").mkdir(parents=True)
    (var / "postgres.unfinished" / "PG_VERSION").write_text("18")
    var.chmod(0o711)

    server = prepare_postgres(var, durable=False)
    with running(server):
        assert ask(server, "SELECT 1") == 1


def test_works_in_a_folder_too_deep_for_a_socket(folder):
    var = folder / ("deep" * 30) / "var"
    var.parent.mkdir()

    first = prepare_postgres(var, durable=False)
    with running(first):
        write_row(first)
    second = prepare_postgres(var, durable=False)
    with running(second):
        assert ask(second, "SELECT answer FROM kept") == 42
    assert second.url == first.url

    shutil.rmtree((var / "postgres.sock").resolve())  # as a reboot does
    third = prepare_postgres(var, durable=False)
    with running(third):
        assert ask(third, "SELECT answer FROM kept") == 42
    shutil.rmtree((var / "postgres.sock").resolve())


@as_root
def test_works_in_a_folder_that_only_root_can_reach(folder):
    folder.chmod(0o700)
    var = folder / "var"

    server = prepare_postgres(var, durable=False)
    with running(server):
        write_row(server)
    assert folder.stat().st_mode & 0o777 == 0o700

    server = prepare_postgres(var, durable=False)
    with running(server):
        assert ask(server, "SELECT answer FROM kept") == 42
    elsewhere = (var / "postgres").resolve().parent
    shutil.rmtree(elsewhere)
    with contextlib.suppress(OSError):  # another installation's data lies there
        elsewhere.parent.rmdir()


def test_redis_keeps_what_it_held_behind_the_same_password(var):
    first = prepare_redis(var)
    with running(first), redis.Redis.from_url(first.url) as client:
        client.set("kept", "42")

    second = prepare_redis(var)
    with running(second), redis.Redis.from_url(second.url) as client:
        assert client.get("kept") == b"42"
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert second.url == first.url


def test_redis_refuses_strangers(var):
    server = prepare_redis(var)
    with running(server):
        address = server.url.partition("@")[2]
        stranger = redis.Redis.from_url(f"redis://{address}")
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
    assert (var / "redis" / "redis.conf").stat().st_mode & 0o077 == 0


def test_redis_moves_when_its_port_is_taken(var):
    first = prepare_redis(var)
    with running(first), redis.Redis.from_url(first.url) as client:
        client.set("kept", "42")
    port = int(first.url.rpartition(":")[2].partition("/")[0])

    with socket.create_server(("127.0.0.1", port)):
        second = prepare_redis(var)
    with running(second), redis.Redis.from_url(second.url) as client:
        assert client.get("kept") == b"42"
    assert second.url != first.url
