"""Let services that hang hold few threads of a web process, and one organization only half."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.fixtures.personas import api
from tools.connections.places import RETRY_AFTER_SECONDS, place_for
from tools.models import Tool
from tools.services import create_tool

pytestmark = pytest.mark.django_db(transaction=True)

ALL = "/api/v1/tools/"


@pytest.fixture
def tool(bob, weather):
    given = {"kind": "discovery", "discovery_url": weather.url}
    return create_tool(bob.principal, given=given)


@contextmanager
def waiting(*personas: Any) -> Iterator[None]:
    """Hold a place for a request of each of these people."""
    with ExitStack() as places:
        for persona in personas:
            places.enter_context(place_for(persona.organization.pk))
        yield


def requests_that_ask(tool: Tool, url: str) -> list[tuple[str, str, dict[str, Any]]]:
    mine = f"{ALL}{tool.pk}/"
    return [
        ("post", ALL, {"kind": "discovery", "discovery_url": url}),
        ("patch", mine, {"discovery_url": f"{url}?new"}),
        ("post", f"{mine}refresh/", {}),
        ("post", f"{mine}call/", {"function": "forecast", "arguments": {"city": "Rome"}}),
    ]


@pytest.mark.parametrize("number", range(4), ids=["add", "change", "refresh", "call"])
def test_an_organization_has_half_of_the_places(bob, tool, weather, number):
    method, address, body = requests_that_ask(tool, weather.url)[number]
    asked = len(weather.server.requests)
    with waiting(bob, bob):
        answer = getattr(api(bob), method)(address, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limited")
        assert answer.headers["Retry-After"] == str(RETRY_AFTER_SECONDS)
        assert len(weather.server.requests) == asked
    assert getattr(api(bob), method)(address, body).status_code in (200, 201)


def test_others_have_the_other_half_and_then_it_is_503(bob, mallory, carol, tool, weather):
    body = {"kind": "discovery", "discovery_url": weather.url}
    with waiting(bob, bob):
        assert api(mallory).post(ALL, body).status_code == 201
        with waiting(mallory, mallory):
            third = api(in_their_own(carol)).post(ALL, body)
    assert (third.status_code, third.json()["error"]["code"]) == (503, "unavailable")
    assert third.headers["Retry-After"] == str(RETRY_AFTER_SECONDS)


def in_their_own(persona: Any) -> Any:
    """Return the same person, acting in an organization of their own."""
    own = persona.user.memberships.get(organization__personal=True)
    return type(persona)(persona.user, own.organization, own.role)


def test_what_asks_nobody_needs_no_place(bob, tool):
    with waiting(bob, bob):
        assert api(bob).patch(f"{ALL}{tool.pk}/", {"name": "Mine"}).status_code == 200
        assert api(bob).get(ALL).status_code == 200


def test_a_service_that_hangs_holds_its_place_until_it_answers(bob, tool, weather):
    """A service that breaks gives its place back, too."""
    begun, may_answer = threading.Event(), threading.Event()

    def hang(_: Any) -> dict[str, str]:
        begun.set()
        may_answer.wait(30)
        return {"content": "late"}

    weather.reply = hang
    call = {"function": "forecast", "arguments": {"city": "Rome"}}
    statuses: list[int] = []
    client = api(bob)
    hanging = threading.Thread(
        target=lambda: statuses.append(client.post(f"{ALL}{tool.pk}/call/", call).status_code)
    )
    hanging.start()
    try:
        assert begun.wait(30)
        with waiting(bob):
            assert api(bob).post(f"{ALL}{tool.pk}/refresh/").status_code == 429
    finally:
        may_answer.set()
        hanging.join()
    assert statuses == [200]
    with waiting(bob):
        assert api(bob).post(f"{ALL}{tool.pk}/refresh/").status_code == 200
