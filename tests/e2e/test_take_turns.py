"""Two tenants at once, with real processes: one asks forty questions, the other one, and that is next."""

import threading
from collections.abc import Iterator

import pytest

from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform

pytestmark = pytest.mark.e2e

MANY = 40
AT_ONCE, LIMIT = 4, 3
SLOW = "[[fake tokens=30 itl=20]]"
STARTED_BETWEEN = """
SELECT count(*) FROM chats_turn many, chats_turn one
WHERE one.id = %s AND many.organization_id <> one.organization_id
AND many.started_at > one.created_at AND many.started_at < one.started_at
"""
MOST_RUNNING = """
SELECT max(turns) FROM (
    SELECT count(*) AS turns FROM chats_turn begun JOIN chats_turn other USING (organization_id)
    WHERE begun.organization_id = (SELECT organization_id FROM chats_turn WHERE id = %s)
    AND other.started_at <= begun.started_at AND other.ended_at > begun.started_at GROUP BY begun.id
) at_a_time
"""


@pytest.fixture
def few_places(platform: Platform) -> Iterator[None]:
    limits = {"AMBER_CHAT_CONCURRENCY": str(AT_ONCE), "AMBER_TURNS_PER_ORGANIZATION": str(LIMIT)}
    platform.restore(chat=limits)
    yield
    platform.restore()


def ask_many(client: Client) -> list[str]:
    chats = [client.new_chat() for _ in range(MANY)]
    asked: list[str] = []
    threads = [
        threading.Thread(
            target=lambda chat_id=chat_id: asked.append(client.ask(SLOW, chat_id=chat_id).turn_id)
        )
        for chat_id in chats
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return asked


def test_forty_questions_of_one_tenant_do_not_delay_anothers(platform, few_places):
    loud = platform.new_person("loud", "Loud")
    quiet = platform.new_person("quiet", "Quiet")
    chat_id = quiet.new_chat()
    asked = ask_many(loud)
    waiting = [turn for turn in map(loud.turn, asked) if turn["status"] == "queued"]
    assert {turn["queue"]["reason"] for turn in waiting} <= {"organization_limit", "workers_busy"}
    one = quiet.ask("Hello", chat_id=chat_id)
    assert quiet.ended(one.turn_id)["status"] == "completed"
    ((between,),) = platform.query(STARTED_BETWEEN, one.turn_id)
    assert between <= AT_ONCE, "a place was free, or the next that became free was taken"
    for turn_id in asked:
        assert loud.ended(turn_id)["status"] == "completed"
    ((most,),) = platform.query(MOST_RUNNING, asked[0])
    assert most <= LIMIT
