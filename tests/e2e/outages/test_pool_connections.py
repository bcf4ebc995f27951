"""Everything works through PgBouncer in transaction mode: few sessions of Postgres, shared by all processes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.client import Client
from tests.e2e.kit.pgbouncer import SESSIONS, PgBouncer, direct_url, pooling
from tests.e2e.kit.platform import ROOT, Platform, pooled_platform
from tests.e2e.kit.transcripts import check_stored
from tests.e2e.test_ingest_documents import chunks, give, new_library, text_of, wait_until_ready
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

PEOPLE = 6
ROUNDS = 3


@pytest.fixture(scope="module")
def bouncers() -> list[PgBouncer]:
    return []


@pytest.fixture(scope="module")
def platform(fake_provider: RunningProvider, bouncers: list[PgBouncer]) -> Iterator[Platform]:
    @contextlib.contextmanager
    def pooled(database_url: str) -> Iterator[Mapping[str, str]]:
        with pooling(database_url) as bouncer:
            bouncers.append(bouncer)
            yield {
                "DATABASE_URL": bouncer.url("amber_app"),
                "AMBER_SYSTEM_DATABASE_URL": bouncer.url("amber_system"),
                "AMBER_OWNER_DATABASE_URL": bouncer.url("amber"),
                "AMBER_DATABASE_DIRECT_URL": direct_url(database_url),
                "AMBER_PREPARED_STATEMENTS": "0",
            }

    with pooled_platform(fake_provider.base_url, pooled) as made:
        yield made


def test_many_people_share_few_sessions(platform: Platform, bouncers: list[PgBouncer]) -> None:
    """Turns, lists, documents and searches of several organizations at once: each sees its own rows alone."""
    people = [platform.new_person(f"person{n}", f"Company {n}") for n in range(PEOPLE)]
    with leaves_no_trace(platform), ThreadPoolExecutor(PEOPLE) as working:
        found = list(working.map(live, people, [platform] * PEOPLE))
    for mine in found:
        assert len(mine) == ROUNDS
        assert not any(mine & others for others in found if others is not mine)
    [bouncer] = bouncers
    sessions = [each for each in bouncer.show("SERVERS") if each["user"] != "amber"]
    assert 0 < len(sessions) <= 2 * SESSIONS
    assert len(sessions) < len(bouncer.show("CLIENTS"))
    assert {each["type"] for each in sessions} == {"S"}


def live(who: Client, platform: Platform) -> set[str]:
    """What a person does in an hour; their chats."""
    library = new_library(who)
    document = give(who, library, text_of(1))
    for _ in range(ROUNDS):
        asked = who.ask("Tell me. [[fake tokens=20 itl=5]]")
        check_stored(who, asked, who.watch(asked).to_the_end())
    wait_until_ready(platform, who, document)
    assert chunks(who, document)
    hits = who.post(f"libraries/{library}/search/", {"query": "the valve of a pump"})
    assert hits.status == 200 and hits.body["results"]
    return {chat["id"] for chat in who.get("chats/?owner=api").body["results"]}


def test_commands_go_straight_to_postgres(
    platform: Platform, bouncers: list[PgBouncer], tmp_path: Path
) -> None:
    """Although the owner's address leads to PgBouncer: nothing of theirs went through it."""
    platform.run("manage.py", "bootstrap")
    platform.run("manage.py", "backup", str(tmp_path))
    assert len(list(tmp_path.glob("*.dump"))) == 1
    users = {each["user"] for each in bouncers[0].show("SERVERS")}
    assert "amber" not in users


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"AMBER_DATABASE_DIRECT_URL": ""}, "set AMBER_DATABASE_DIRECT_URL to the address"),
        ({"AMBER_PREPARED_STATEMENTS": "1"}, "set AMBER_PREPARED_STATEMENTS=0"),
        ({"AMBER_DATABASE_DIRECT_URL": "postgresql://me@host/amber"}, "without a user"),
    ],
)
def test_wrong_settings_are_one_sentence(
    platform: Platform, wrong: dict[str, str], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "bootstrap"],
        cwd=ROOT,
        env={**os.environ, **platform.environ, **wrong},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
