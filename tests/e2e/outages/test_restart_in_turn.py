"""Two of each process, restarted one after the other under load: no request fails, no turn is lost or doubled."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest

from tests.e2e.conftest import leaves_no_trace
from tests.e2e.kit.balancer import BalancedClient, Balancer, balancing
from tests.e2e.kit.client import Asked, Viewer
from tests.e2e.kit.platform import Member, Platform, started_platform
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text
from tests.fixtures.ports import free_port
from tests.fixtures.provider import RunningProvider

pytestmark = pytest.mark.e2e

SETTINGS = {
    "AMBER_DRAIN_SECONDS": "2",
    "AMBER_SHUTDOWN_GRACE_SECONDS": "3",
    "AMBER_RATE_USER": "0",
    "AMBER_STREAM_HEARTBEAT_SECONDS": "5",
}
SHORT_TOKENS, LONG_TOKENS = 5, 200
SHORT = f"Tell me. [[fake tokens={SHORT_TOKENS}]]"
LONG = f"Tell me. [[fake tokens={LONG_TOKENS} itl=40]]"
"""8 seconds of text: more than the grace of a worker that stops."""
ASKERS = 2
LEDGER = (
    "SELECT turn_id::text, count(*) FROM providers_usagerecord WHERE kind = 'chat' GROUP BY turn_id"
)


@dataclass
class Load:
    """People who ask and read all the time; what went wrong is kept."""

    person: BalancedClient
    asked: list[tuple[Asked, Viewer | None]] = field(default_factory=list)
    completions: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> list[threading.Thread]:
        jobs = [self._ask] * ASKERS + [self._complete, self._look_around]
        threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        return threads

    def _repeat(self, job: Callable[[int], None]) -> None:
        for number in count():
            if self.is_over.is_set():
                return
            try:
                job(number)
            except (OSError, AssertionError) as fault:
                self.faults.append(f"{job.__name__}: {fault!r}")
            self.is_over.wait(0.1)

    def _ask(self, number: int) -> None:
        asked = self.person.ask(SHORT)
        viewer = self.person.watch(asked) if number % 3 == 0 else None
        self.asked.append((asked, viewer))
        if viewer:
            viewer.to_the_end()

    def _complete(self, _: int) -> None:
        """As OpenAI's client does it: the answer cannot be resumed."""
        question = {"role": "user", "content": "Tell me. [[fake tokens=20 itl=40]]"}
        body = {"model": "fake-model", "messages": [question]}
        answer = self.person.post("/v1/chat/completions", body)
        assert answer.status == 200, answer
        self.completions.append(answer.body["choices"][0]["message"]["content"])

    def _look_around(self, _: int) -> None:
        assert self.person.get("chats/?limit=5").status == 200


@dataclass
class Pairs:
    """A platform with two of each, and what restarts one of them."""

    platform: Platform
    balancer: Balancer
    ports: dict[Member, int]

    def restart(self, member: Member) -> None:
        """As systemd does it: stop, wait for the end, start."""
        port = self.ports.pop(member, None)
        self.platform.stop_member(member)
        if port is None:
            self.platform.start_member(member.role)
        else:
            self.ports[self.platform.start_web(port)] = port


@pytest.fixture
def pairs(fake_provider: RunningProvider) -> Iterator[Pairs]:
    with started_platform(fake_provider.base_url, **SETTINGS) as platform:
        second = free_port()
        platform.start_member("chat")
        platform.start_member("ingest")
        ports = {platform.web: platform.port, platform.start_web(second): second}
        with leaves_no_trace(platform), balancing(*ports.values()) as balancer:
            yield Pairs(platform, balancer, ports)


def test_each_process_is_replaced_and_nobody_notices(pairs):
    platform = pairs.platform
    person = BalancedClient(pairs.balancer, platform.new_person("ann", "Acme").key)
    person.assistant("fake-model")
    library_id = person.post("libraries/", {"name": "Papers"}).body["id"]
    load = Load(person)
    threads = load.begin()
    documents = []
    long_ones: list[tuple[Asked, Viewer]] = []
    for member in [m for role in ("web", "chat", "ingest") for m in platform._of(role)]:
        asked = person.ask(LONG)
        long_ones.append((asked, person.watch(asked).wait_for_text()))
        text = {"name": f"{member.pid}.md", "text": f"# Number {member.pid}\n\nResin.\n" * 200}
        documents.append(person.post(f"libraries/{library_id}/documents/", text))
        pairs.restart(member)
    load.is_over.set()
    for thread in threads:
        thread.join()

    assert load.faults == []
    assert len(load.asked) > ASKERS and load.completions
    assert set(load.completions) == {answer_text(20)}
    for asked, viewer in long_ones:
        [answer] = check_stored(person, asked, viewer.to_the_end())
        assert answer["content"] == answer_text(LONG_TOKENS)
    check_answered_once(platform, person, [a for a, _ in load.asked], answer_text(SHORT_TOKENS))
    assert {answer.status for answer in documents} == {201}
    platform.wait_for(
        lambda: (
            {person.get(f"documents/{each.body['id']}/").body["status"] for each in documents}
            == {"ready"}
        ),
        "documents",
    )


def check_answered_once(
    platform: Platform, person: BalancedClient, asked: list[Asked], text: str
) -> None:
    """Each question has one turn and one answer, and each call of the model is in the ledger once."""
    for each in asked:
        turn = person.ended(each.turn_id)
        assert (turn["status"], turn["attempts"]) == ("completed", 1)
        question, answer = person.messages(each.chat_id, all_branches=True)
        assert (question["id"], answer["content"]) == (each.message_id, text)
    calls = dict(platform.query(LEDGER))
    assert {calls[each.turn_id] for each in asked} == {1}
