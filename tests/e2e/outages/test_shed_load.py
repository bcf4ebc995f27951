"""More is asked than can be answered: who asks too much is told when to come again, all else is served."""

from collections.abc import Iterator

import pytest

from tests.e2e.kit.client import Answer, Asked, Client
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import new_account, signed_in
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.e2e

LONG = "Tell me. [[fake tokens=4000 itl=50]]"
SHARE = "SELECT count(*) FROM chats_turn WHERE status IN ('queued', 'running')"
MADE = "SELECT count(*) FROM chats_turn"
STAFF = (
    "UPDATE accounts_user SET is_staff = true, is_superuser = true WHERE email = %s RETURNING id"
)
MOST_ASKED = 200


@pytest.fixture
def shedding(platform: Platform) -> Iterator[int]:
    """A web process that calls a queue of a second old; one turn at once."""
    platform.restore(chat={"AMBER_CHAT_CONCURRENCY": "1"})
    port = free_port()
    web = platform.start_web(port, AMBER_QUEUE_SECONDS="1")
    yield port
    platform.stop_member(web)
    platform.restore()


def test_who_asks_too_much_is_refused_and_everything_else_answers(platform, shedding):
    loud = platform.new_person("loud2", "Loud2").at(shedding)
    quiet = platform.new_person("quiet2", "Quiet2").at(shedding)
    chats = [loud.new_chat() for _ in range(20)]
    asked = [loud.ask(LONG, chat_id=chat_id) for chat_id in chats[:5]]
    refused = ask_until_refused(loud, chats[5:], asked)

    assert (refused.status, refused.error["code"]) == (429, "queue_full")
    assert int(refused.headers["retry-after"]) > 0
    assert refused.error["retryable"] is True
    ((before,),) = platform.query(MADE)
    again = loud.post(f"chats/{chats[-1]}/messages/", {"content": LONG})
    assert again.status == 429
    assert platform.query(MADE) == [(before,)], "what is refused leaves nothing behind"

    anonymous = Client(shedding)
    assert {anonymous.get(path).status for path in ("/healthz", "/readyz", "/metrics")} == {200}
    assert loud.get("chats/").status == 200
    assert loud.turn(asked[-1].turn_id)["queue"]["position"] >= 1
    email = new_account(platform, "olga")
    platform.query(STAFF, email)
    with signed_in(platform, email) as operator:
        for page in ("/admin/", "/admin/chats/turn/"):
            assert operator.get(f"http://127.0.0.1:{shedding}{page}").status_code == 200
    one = quiet.ask("Hello", chat_id=quiet.new_chat())
    assert quiet.turn(one.turn_id)["status"] in ("queued", "running", "completed")
    for each in asked:
        assert loud.post(f"turns/{each.turn_id}/cancel/").status == 200
    assert quiet.ended(one.turn_id)["status"] == "completed"


def ask_until_refused(loud: Client, chats: list[str], asked: list[Asked]) -> Answer:
    """Ask on and on: the web process looks at the queue once in several questions, and it must be old by then."""
    for number in range(MOST_ASKED):
        chat_id = chats[number % len(chats)]
        answer = loud.post(f"chats/{chat_id}/messages/", {"content": LONG})
        if answer.status == 429:
            return answer
        if answer.status == 201:
            turn_id = answer.body["turn"]["id"]
            loud.post(f"turns/{turn_id}/cancel/")
    raise AssertionError("nobody was refused")
