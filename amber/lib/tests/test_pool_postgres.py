"""The pool of connections and a Postgres that goes away: through a link that is cut."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connections

from amber.lib.postgres import base
from amber.lib.postgres.base import DatabaseWrapper, ReconnectingPool
from tests.e2e.kit.link import Link

OUTAGE_SECONDS = 17.0
"""Pauses that double from 1 s on would let the next attempt follow 11 s after it, or later."""


@pytest.fixture
def link() -> Iterator[Link]:
    database = settings.DATABASES["default"]
    port = database["PORT"] or "5432"
    folder = str(database["HOST"])
    at_socket = f"{folder}/.s.PGSQL.{port}"
    made = Link(at_socket if folder.startswith("/") else (folder, int(port)))
    yield made
    made.close()


@pytest.fixture
def pool(link: Link) -> Iterator[ReconnectingPool]:
    database = settings.DATABASES["default"]
    login = {"user": database["USER"], "password": database["PASSWORD"], "dbname": "postgres"}
    where = {"host": "127.0.0.1", "port": link.port, "autocommit": True}
    with ReconnectingPool(kwargs={**login, **where}, open=False, min_size=1, max_size=8) as made:
        yield made


def use(pool: ReconnectingPool, hold_seconds: float = 0.0, timeout: float = 30.0) -> None:
    with pool.connection(timeout=timeout) as conn:
        conn.execute("SELECT 1")
        time.sleep(hold_seconds)


def test_who_waits_is_served_soon_after_a_long_outage(pool, link):
    """Though nobody else asks, who would make the pool grow again."""
    use(pool)
    link.cut()
    with ThreadPoolExecutor(1) as waiting:
        served = waiting.submit(use, pool, timeout=60)
        time.sleep(OUTAGE_SECONDS)
        link.restore()
        served.result(6)


def test_of_many_dead_connections_one_is_noticed(pool, link):
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: use(pool, hold_seconds=0.5), range(8)))
    assert pool.get_stats()["pool_available"] > 4
    link.cut()
    link.restore()
    use(pool, timeout=10)


def test_a_connection_is_asked_only_where_it_has_not_answered_of_late(pool, monkeypatch):
    asked: list[object] = []
    pool.resize(1, 1)  # or another one, which was never asked, might be handed out
    monkeypatch.setattr(pool, "check_connection", asked.append)
    monkeypatch.setattr(base, "CHECK_SECONDS", 60.0)
    with pool.connection():
        pool._asked_at.clear()  # as if that were long ago: it is given back as one that answered
    asked.clear()
    use(pool)
    assert asked == []
    monkeypatch.setattr(base, "CHECK_SECONDS", 0.0)
    use(pool)
    assert len(asked) == 1


def test_the_connection_that_came_back_last_is_handed_out_first(pool):
    """Else each of those that a busy moment opened is used in turn, and asked each time."""
    pool.resize(2, 2)
    pool.wait()
    with pool.connection() as first, pool.connection() as second:
        pass  # the second comes back before the first
    for _ in range(3):
        with pool.connection() as conn:
            assert conn is first
    assert second is not first


def test_django_uses_it():
    connection = connections["default"]
    assert isinstance(connection, DatabaseWrapper)
    assert isinstance(connection.pool, ReconnectingPool)
