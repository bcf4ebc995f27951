"""Hostile addresses through every sink: refused without one connection, in words that tell nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpcore2
import pytest

from amber.lib.egress import EgressPolicy, UnsafeAddress
from amber.lib.tests.egress.guarded_client import Names, through_door
from amber.lib.tests.egress.hostile_urls import HOSTILE_URLS
from amber.lib.tests.local_server import LocalServer
from tests.fixtures.personas import Persona
from tests.hostile.egress_sinks import REDIRECTED, SINKS, World

# Calls are recorded on threads of their own.
pytestmark = pytest.mark.django_db(transaction=True)

URLS = [url for url in HOSTILE_URLS if url and "\0" not in url]
"""Postgres stores no NUL: such an address ends before it is one."""

SENDABLE = [url for url in URLS if not set(url) & {"\r", "\n"}]
"""In a header."""


@dataclass
class Network:
    """`attempts` are the connections that were asked of the operating system."""

    target: LocalServer
    door: LocalServer
    attempts: list[tuple[str, int]] = field(default_factory=list)

    @property
    def stray_attempts(self) -> list[tuple[str, int]]:
        return [each for each in self.attempts if each != ("127.0.0.1", self.door.port)]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """The policy permits the target's port: only the judgement of the address protects it."""
    with LocalServer() as target, LocalServer() as door:
        this = Network(target, door)
        connect = httpcore2.AnyIOBackend.connect_tcp

        async def watched(backend: Any, host: str, port: int, **more: Any) -> Any:
            this.attempts.append((host, port))
            if host != "127.0.0.1" or port not in (target.port, door.port):
                raise httpcore2.ConnectError("Tests stay at home.")
            return await connect(backend, host, port, **more)

        monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", watched)
        allow(monkeypatch, through_door(door, target))
        yield this


def allow(monkeypatch: pytest.MonkeyPatch, policy: EgressPolicy) -> None:
    """Make it the installation's."""
    monkeypatch.setattr("amber.lib.egress._policy_allowing", lambda _: policy)


@pytest.fixture
def world(alice: Persona, network: Network) -> World:
    return World(alice, network.door)


def test_there_are_enough_addresses():
    assert len(set(URLS)) >= 100
    assert len(set(SENDABLE)) >= 100


@pytest.mark.parametrize("name", SINKS)
def test_no_hostile_address_is_connected_to(name, world, network):
    for url in URLS:
        refusal = SINKS[name](world, url.format(port=network.target.port))
        assert refusal, f"{url!r} was taken"
        assert not network.stray_attempts, url
    assert not network.target.accepted


@pytest.mark.parametrize("name", REDIRECTED)
def test_no_redirect_leads_to_a_hostile_address(name, world, network):
    for url in SENDABLE:
        REDIRECTED[name](world, url.format(port=network.target.port))
        assert not network.stray_attempts, url
    assert network.door.accepted >= len(SENDABLE)
    assert not network.target.accepted


# Something listens or nothing; the name is at home, private, unknown, or without address.
SAME_TO_STRANGERS = [
    ("http://127.0.0.1:{port}/", "http://127.0.0.2/", "http://10.0.0.1/", "http://[::1]/"),
    (
        *("http://loopback.test:{port}/", "http://private.test/"),
        *("http://unknown.test/", "http://no-address.test/"),
    ),
]


@pytest.mark.parametrize("urls", SAME_TO_STRANGERS, ids=["addresses", "names"])
@pytest.mark.parametrize("name", SINKS)
def test_a_refusal_tells_nothing_of_the_target(name, urls, world, network):
    said = {SINKS[name](world, url.format(port=network.target.port)) for url in urls}
    assert len(said) == 1
    (text,) = said
    assert UnsafeAddress().message in text or text in (
        "The tool's address is not one that may be called.",
        "The speech service is not available at the moment. Go on without it.",
    )


class Moving(Names):
    """Public when it is judged first, at home from then on."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        if host != "moving.test":
            return await super().__call__(host, port)
        self.asked.append(host)
        return ["93.184.215.14" if self.asked.count(host) == 1 else "127.0.0.1"]


@pytest.mark.parametrize("name", SINKS)
def test_a_name_that_moves_is_connected_to_where_it_was_judged(name, world, network, monkeypatch):
    policy = through_door(network.door, network.target)
    names = Moving(policy.resolve.names)  # type: ignore[attr-defined]
    allow(monkeypatch, replace(policy, resolve=names))
    url = f"http://moving.test:{network.target.port}/"
    for _ in range(2):
        SINKS[name](world, url)
    assert ("127.0.0.1", network.target.port) not in network.attempts
    assert not network.target.accepted
