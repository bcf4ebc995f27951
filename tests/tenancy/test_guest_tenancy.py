"""Guests at every address, generated from the URLconf: at their own they see their own, elsewhere nothing;
and nobody else sees what is theirs.
"""

from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest

from assistants.models import Assistant
from assistants.services import dismiss_guests
from chats import services
from chats.messages import transcript
from chats.models import Chat, ChatMessage, Turn
from libraries.models import File
from tests.fixtures.personas import Guest, api, visit
from tests.rest.routes import METHODS, all_routes
from tests.tenancy.test_tenancy import (
    PERSONAL,
    Standing,
    alice,
    call,
    mallory,
    named,
    no_rates,
    standing,
    standing_people,
    standing_rows,
)

__all__ = ["alice", "mallory", "no_rates", "standing", "standing_people", "standing_rows"]

ROUTES = all_routes()
FOR_ANYBODY = (
    ("api/v1/public/assistants/<uuid:assistant_id>/", "get"),
    (
        "api/v1/public/assistants/<uuid:assistant_id>/token/",
        "post",
    ),
)
GUEST_ROUTES = [route for route in ROUTES if route.is_for_guests]
CALLS = [
    (route, method)
    for route in GUEST_ROUTES
    for method in route.methods
    if (route.template, method) not in FOR_ANYBODY
]
CALLS_WITH_ROWS = [(r, m) for r, m in CALLS if PERSONAL & set(r.parameters)]
MEMBER_CALLS = [(r, m) for r in ROUTES if not r.is_for_guests for m in r.methods]
OF_GUESTS_TOO = {"chat_id", "message_id", "turn_id", "file_id"}
MEMBER_CALLS_WITH_ROWS = [(r, m) for r, m in MEMBER_CALLS if OF_GUESTS_TOO & set(r.parameters)]
ANONYMOUS_CALLS = [
    (route, method)
    for route in GUEST_ROUTES
    for method in route.methods
    if (route.template, method) in FOR_ANYBODY
]
KINDS = (Chat, ChatMessage, Turn, File)


def rows_of_guest(guest: Guest) -> dict[str, UUID]:
    """A row of this guest's for every kind of id in a guest's address."""
    chat = services.create_chat(guest.principal, assistant=guest.assistant)
    message = transcript.append(chat, None, role="human", content="secret of the guest")
    transcript.move_leaf(chat, message)
    mine = {"organization_id": chat.organization_id, "guest_id": chat.guest_id}
    turn = Turn.objects.create(
        **mine, chat=chat, assistant=guest.assistant, question=message, tip=message
    )
    file = File.objects.create(
        **mine, name="f", file_hash="0" * 64, mime_type="text/plain", path=f"{turn.pk}", size=1
    )
    return {
        "assistant_id": guest.assistant.pk,
        "chat_id": chat.pk,
        "message_id": message.pk,
        "turn_id": turn.pk,
        "file_id": file.pk,
    }


@pytest.fixture(scope="module")
def standing_guest(standing: Standing) -> tuple[Guest, dict[str, UUID]]:
    """A guest of alice's assistant and a row of each kind, made once like the rows of members."""
    alice = standing.people["alice"]
    assistant = Assistant.objects.create(
        organization=alice.organization, user=alice.user, name="Open", slug="open", public=True
    )
    guest = visit(assistant)
    return guest, rows_of_guest(guest)


@pytest.fixture
def guest(standing_guest: tuple[Guest, dict[str, UUID]], db: None) -> Guest:
    return deepcopy(standing_guest[0])


@pytest.fixture
def guest_rows(standing_guest: tuple[Guest, dict[str, UUID]]) -> dict[str, UUID]:
    return dict(standing_guest[1])


def bearing(token: str) -> Any:
    return api(key=token)


def state() -> list[list[dict[str, Any]]]:
    """All that guests could have changed."""
    return [list(kind.objects.order_by("pk").values()) for kind in KINDS]


def test_there_are_guests_addresses():
    assert len(CALLS) > 10
    assert len(ANONYMOUS_CALLS) == len(FOR_ANYBODY)


# -- At their addresses ------------------------------------------------------------------------


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_anonymous_is_401(guest_rows, guest, route, method):
    answer = call(api(), method, route.address(guest_rows))
    assert answer.status_code == 401, answer.content
    assert answer.json()["error"]["code"] == "not_authenticated"


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_member_s_session_is_not_looked_at(guest_rows, alice, guest, route, method):
    """Also of the assistant's creator: no page that embeds it acts with their cookies."""
    answer = call(api(alice), method, route.address(guest_rows))
    assert answer.status_code == 401, answer.content


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_member_s_key_is_403(guest_rows, alice, guest, route, method):
    _, secret = alice.new_key()
    answer = call(api(key=secret), method, route.address(guest_rows))
    assert answer.status_code == 403, answer.content


def tampered(token: str) -> str:
    return token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]


@pytest.mark.parametrize(
    "spoil", [tampered, lambda t: t[:-1], lambda t: t + "A", lambda t: "amb_guest_"]
)
@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_bad_token_is_the_401_of_any_credential(guest_rows, guest, route, method, spoil):
    answer = call(bearing(spoil(guest.token)), method, route.address(guest_rows))
    assert answer.status_code == 401, answer.content
    assert answer.json()["error"]["code"] == "invalid_credential"


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_when_the_assistant_is_public_no_longer_its_guests_are_out(
    guest_rows, guest, route, method
):
    address = route.address(guest_rows)
    Assistant.objects.update(public=False)
    assert call(bearing(guest.token), method, address).status_code == 401


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_dismissed_guests_are_out(guest_rows, guest, route, method):
    address = route.address(guest_rows)
    dismiss_guests(guest.assistant)
    assert call(bearing(guest.token), method, address).status_code == 401


@pytest.mark.parametrize(("route", "method"), CALLS_WITH_ROWS, ids=named)
def test_another_guest_of_the_same_assistant_is_404(guest_rows, guest, route, method):
    address = route.address(guest_rows)
    answer = call(bearing(visit(guest.assistant).token), method, address)
    assert answer.status_code == 404, answer.content


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_a_guest_of_another_assistant_is_404(guest_rows, alice, mallory, guest, route, method):
    """Of the same organization's, and of another's."""
    address = route.address(guest_rows)
    for persona in (alice, mallory):
        mine = {"organization": persona.organization, "user": persona.user}
        other = Assistant.objects.create(**mine, name="Other", slug="other", public=True)
        answer = call(bearing(visit(other).token), method, address)
        assert answer.status_code == 404, answer.content


@pytest.mark.parametrize(("route", "method"), CALLS_WITH_ROWS, ids=named)
def test_what_members_have_with_the_assistant_is_404_for_guests(
    standing_rows, alice, guest, route, method
):
    ids = standing_rows(alice) | {"assistant_id": guest.assistant.pk}
    Chat.objects.update(assistant=guest.assistant)
    Turn.objects.update(assistant=guest.assistant)
    answer = call(bearing(guest.token), method, route.address(ids))
    assert answer.status_code == 404, answer.content


@pytest.mark.parametrize(("route", "method"), ANONYMOUS_CALLS, ids=named)
def test_a_private_assistant_and_none_are_the_same_404(alice, guest, route, method):
    Assistant.objects.update(public=False)
    private = call(api(alice), method, route.address({"assistant_id": guest.assistant.pk}))
    absent = call(api(alice), method, route.address({"assistant_id": alice.user.pk}))
    assert private.status_code == absent.status_code == 404
    assert private.json()["error"]["message"] == absent.json()["error"]["message"]


@pytest.mark.parametrize("route", GUEST_ROUTES, ids=named)
def test_other_methods_are_refused(guest_rows, guest, route):
    client, address = bearing(guest.token), route.address(guest_rows)
    for method in set(METHODS) - set(route.methods):
        assert call(client, method, address).status_code == 405


# -- Elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("route", "method"), MEMBER_CALLS, ids=named)
def test_a_guest_s_token_is_403_everywhere_else(
    standing_rows, guest_rows, alice, guest, route, method
):
    """Whatever it names: the guest's own rows, and those of a member."""
    before = [standing_rows(alice), guest_rows]
    ids = {**before[0], **before[1]}
    held = state()
    for rows in (before[0], ids):
        answer = call(bearing(guest.token), method, route.address(rows))
        assert answer.status_code == 403, answer.content
    assert state() == held


@pytest.mark.parametrize(("route", "method"), MEMBER_CALLS_WITH_ROWS, ids=named)
def test_members_do_not_see_what_is_a_guest_s(
    standing_rows, guest_rows, alice, guest, route, method
):
    """Not even the assistant's creator, who owns the organization."""
    address = route.address(standing_rows(alice) | guest_rows)
    held = state()
    answer = call(api(alice), method, address)
    assert answer.status_code == 404, answer.content
    assert state() == held
