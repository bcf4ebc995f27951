"""Ask at every address with all of Amber's own doors open: Postgres alone keeps others' rows.

Generated from the URLconf like tests/tenancy/test_tenancy.py. Each call names rows of alice's, in its
address, its query and its body. Whatever the answer is, it is none that fails (below 500), it shows
nothing of hers, and her rows are as they were. The last tests take the wall away too: then her rows
do come through, so these calls would find a hole.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction

from amber.lib.postgres.base import TENANT_ROLE
from assistants.models import Assistant
from chats.models import ChatMessage, Turn
from libraries.models import Document, File
from memory.models import Memory
from public_api.models import WebhookDelivery
from tests.fixtures.personas import Persona, api, visit
from tests.rest.routes import Route, all_routes, openai_routes
from tests.tenancy.test_guest_tenancy import guest, guest_rows, standing_guest
from tests.tenancy.test_tenancy import (
    alice,
    bob,
    mallory,
    named,
    no_rates,
    standing,
    standing_people,
    standing_rows,
)
from tests.wall.open_doors import MARK, Stored, open_all, shown, stored, text_of, written

__all__ = [
    "alice",
    "bob",
    "guest",
    "guest_rows",
    "mallory",
    "no_rates",
    "standing",
    "standing_guest",
    "standing_people",
    "standing_rows",
]

ROUTES = [*all_routes(), *openai_routes()]
CALLS = [(route, method) for route in ROUTES for method in route.methods]
OF_PERSONS = {"chat_id", "message_id", "turn_id", "file_id", "memory_id", "response_id"}
PERSONAL_CALLS = [(r, m) for r, m in CALLS if OF_PERSONS & set(r.parameters)]
CALLS_OF_GUESTS_ROWS = [(r, m) for r, m in PERSONAL_CALLS if not {"memory_id"} & set(r.parameters)]
GUEST_CALLS = [(r, m) for r, m in CALLS if r.is_for_guests]
STREAMS = {"api/v1/audit/export/", "api/v1/me/export/", "api/v1/memories/export/"}
"""Lists that are read by connections of their own, which see what is committed alone."""
SHARED = {"user_id"}
"""Ids of what no tenant owns."""
TRIED: dict[str, Any] = {
    "name": "N",
    "content": "Hi",
    "role": "human",
    "query": "secret",
    "question": "secret",
}
TRIED |= {"message": "Hi", "q": "secret", "text": "Hi", "label": "N", "slug": "n", "owner": "user"}
TRIED |= {"limit": 5, "period": "day", "unit": "tokens", "scope": "user", "right": "edit"}
TRIED |= {"input": "Hi", "model": "auto", "messages": [{"role": "user", "content": "Hi"}]}
TRIED |= {"function": "f", "functions": ["f"], "git_url": "https://git.example/r"}
ALSO_CALLED = {
    "leaf_id": "message_id",
    "parent_id": "message_id",
    "pinned_scene_id": "scene_id",
    "default_library_id": "library_id",
    "subject": "user_id",
    "previous_response_id": "response_id",
}
"""Names that bodies have for what addresses call otherwise."""


@pytest.fixture
def hers(standing_rows: Any, alice: Persona) -> dict[str, Any]:
    """Alice's ids as addresses name them, of rows that have something to show."""
    ids = standing_rows(alice)
    ChatMessage.objects.filter(pk=ids["message_id"]).update(content=MARK)
    Memory.objects.filter(pk=ids["memory_id"]).update(content=MARK)
    Document.objects.filter(pk=ids["document_id"]).update(name=MARK, text=MARK, pages=[0])
    echo = {"echo": {"response": {"model": "x"}}}
    Turn.objects.filter(pk=ids["turn_id"]).update(options=echo, status="completed")
    WebhookDelivery.objects.filter(pk=ids["delivery_id"]).update(status="failed")
    default_storage.save(File.objects.get(pk=ids["file_id"]).path, ContentFile(MARK.encode()))
    of_openai = {"model_name": f"assistant:{ids['assistant_id']}"}
    return {**ids, **of_openai, "response_id": f"resp_{ids['turn_id'].hex}"}


@pytest.fixture
def doors_open(standing: Any, standing_guest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    open_all(monkeypatch)


def call(client: Any, route: Route, method: str, ids: dict[str, Any]) -> Any:
    """Ask with every id also in the query and the body, under the names that fields have there."""
    named_ids = {name: str(pk) for name, pk in ids.items() if name != "model_name"}
    named_ids |= {other: named_ids[name] for other, name in ALSO_CALLED.items() if name in ids}
    plural = {f"{name}s": [pk] for name, pk in named_ids.items()}
    body = {} if method == "get" else {"data": {**TRIED, **named_ids, **plural}}
    address = route.address(ids)
    if method != "get":
        return getattr(client, method)(address, **body)
    return client.get(address, {**named_ids, "q": "secret"})


def holds(
    answer: Any,
    before: Stored,
    ids: dict[str, Any],
    organization_id: UUID,
    *,
    personal: bool = False,
) -> None:
    """The answer shows nothing of these ids' owner, and nothing of theirs has changed."""
    asked = answer.request["PATH_INFO"] + answer.request.get("QUERY_STRING", "")
    looked_for = [pk for name, pk in only_ids(ids).items() if name in OF_PERSONS or not personal]
    text = text_of(answer)
    assert answer.status_code < 500 or "No language model is enabled" in text, text
    refused = asked if answer.status_code >= 400 else ""
    assert not shown(text, looked_for, but=refused), text
    changed = written(
        before, stored(), looked_for, organization_id=organization_id, personal=personal
    )
    assert not changed, changed


def only_ids(ids: dict[str, Any]) -> dict[str, UUID]:
    """What is a row's id among them, and no name."""
    return {n: pk for n, pk in ids.items() if isinstance(pk, UUID) and n not in SHARED}


def is_streamed(answer: Any, route: Route) -> bool:
    """Such a list was asked in vain here: test_no_stream_shows_another_tenants_rows asks again."""
    return answer.streaming and not route.parameters


ENDING_CALLS = [(route, method) for route, method in CALLS if not route.is_endless]
"""The endless stream reads no rows; chats/tests/watching/test_watch_changes.py says who is told what."""


@pytest.mark.parametrize(("route", "method"), ENDING_CALLS, ids=named)
@pytest.mark.usefixtures("doors_open")
def test_a_rival_reaches_nothing(hers, alice, mallory, route, method):
    """Signed in, with a key, and with nothing at all."""
    before = stored()
    clients = [api(mallory), api(key=mallory.new_key()[1]), api()]
    for client in clients:
        answer = call(client, route, method, hers)
        assert not is_streamed(answer, route) or route.template in STREAMS
        holds(answer, before, hers, alice.organization.pk)


@pytest.mark.parametrize(("route", "method"), ENDING_CALLS, ids=named)
@pytest.mark.usefixtures("doors_open")
def test_a_rival_s_guest_reaches_nothing(hers, alice, mallory, route, method):
    """With a token for a public assistant of the rival's, named in the address or not."""
    public = Assistant.objects.create(
        organization=mallory.organization, user=mallory.user, name="P", slug="p", public=True
    )
    before = stored()
    client = api(key=visit(public).token)
    for ids in (hers, {**hers, "assistant_id": public.pk}):
        holds(call(client, route, method, ids), before, hers, alice.organization.pk)


@pytest.mark.parametrize(("route", "method"), PERSONAL_CALLS, ids=named)
@pytest.mark.usefixtures("doors_open")
def test_a_colleague_reaches_nothing_of_a_person_s(hers, alice, bob, route, method):
    before = stored()
    for client in (api(bob), api(key=bob.new_key()[1])):
        answer = call(client, route, method, hers)
        holds(answer, before, hers, alice.organization.pk, personal=True)


@pytest.mark.parametrize(("route", "method"), GUEST_CALLS, ids=named)
@pytest.mark.usefixtures("doors_open")
def test_a_guest_reaches_nothing_of_members_and_other_guests(
    hers, guest_rows, alice, guest, route, method
):
    """Of the very assistant: the rows of its creator, and those of another of its guests."""
    other = visit(guest.assistant)
    for theirs in ({**hers, "assistant_id": guest.assistant.pk}, guest_rows):
        before = stored()
        answer = call(api(key=other.token), route, method, theirs)
        seen = {name: pk for name, pk in theirs.items() if name in OF_PERSONS}
        holds(answer, before, seen, alice.organization.pk, personal=True)


@pytest.mark.parametrize(("route", "method"), CALLS_OF_GUESTS_ROWS, ids=named)
@pytest.mark.usefixtures("doors_open")
def test_members_reach_nothing_of_guests(hers, guest_rows, alice, guest, route, method):
    before = stored()
    theirs = {**hers, **guest_rows, "response_id": f"resp_{guest_rows['turn_id'].hex}"}
    seen = {name: pk for name, pk in guest_rows.items() if name in OF_PERSONS}
    answer = call(api(alice), route, method, theirs)
    holds(answer, before, seen, alice.organization.pk, personal=True)


# -- That these tests bite -----------------------------------------------------------------------

NOT_BY_THE_DOOR = {
    # Their door is a dictionary of the caller's memberships, which no test opens.
    "api/v1/organizations/<uuid:organization_id>/members/",
    "api/v1/organizations/<uuid:organization_id>/members/<uuid:member_id>/",
    "api/v1/organizations/<uuid:organization_id>/invitations/",
    # It stays open until the turn ends.
    "api/v1/turns/<uuid:turn_id>/events/",
}
READ_BY_ID = [
    (r, m)
    for r, m in CALLS
    if m == "get" and r.parameters and not r.is_for_guests and r.template not in NOT_BY_THE_DOOR
]
WRITTEN_BY_ID = [(r, m) for r, m in CALLS if m != "get" and r.parameters and not r.is_for_guests]


@pytest.fixture
def wall_down(doors_open: None) -> Iterator[None]:
    """No transaction takes the app's role: all are the superuser's, whom no policy binds."""
    role = connection.settings_dict.pop(TENANT_ROLE)
    yield
    connection.settings_dict[TENANT_ROLE] = role


@pytest.mark.usefixtures("wall_down")
def test_without_the_wall_a_rival_reads_by_every_id(hers, mallory):
    shows_hers = set()
    for route, method in READ_BY_ID:
        answers = [
            call(client, route, method, hers)
            for client in (api(mallory), api(key=mallory.new_key()[1]))
        ]
        texts = {answer.status_code: text_of(answer) for answer in answers}
        assert 200 in texts, (route.template, texts)
        if shown(texts[200], only_ids(hers).values()):
            shows_hers.add(route.template)
    assert len(shows_hers) >= 30


@pytest.mark.usefixtures("wall_down")
def test_without_the_wall_a_rival_writes_by_most_ids(hers, alice, mallory):
    """The others want a body of a form that this one body for all does not have."""
    written_by = set()
    before = stored()
    for route, method in WRITTEN_BY_ID:
        point = transaction.savepoint()
        call(api(mallory), route, method, hers)
        changed = written(
            before,
            stored(),
            only_ids(hers).values(),
            organization_id=alice.organization.pk,
            personal=False,
        )
        if changed:
            written_by.add((route.template, method))
        transaction.savepoint_rollback(point)
    assert len(written_by) >= 45
