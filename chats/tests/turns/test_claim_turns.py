"""Who is next: fairness between organizations and their people, limits, weights, and what a claim costs."""

import json
import re
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Organization
from accounts.sign_in.guest_tokens import GUEST_PREFIX
from amber.lib.database.tenant import across_tenants
from amber.lib.ids import new_id
from chats.models import Turn
from chats.turns import claims, congestion
from engine.events import TurnStatus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(claims, "_order", claims._Order())


def wait(persona: Any, number: int, **fields: Any) -> list[Turn]:
    """Queue turns without a chat, oldest first."""
    turns = [
        Turn(
            id=new_id(),
            organization=persona.organization,
            **{"user": persona.user, "input": {"messages": []}, **fields},
        )
        for _ in range(number)
    ]
    return Turn.objects.bulk_create(turns)


def served(number: int) -> list[UUID]:
    found = [claims.claim_next("w1") for _ in range(number)]
    return [each[0] for each in found if each]


def organizations_of(ids: list[UUID]) -> Counter[str]:
    names = Turn.objects.filter(pk__in=ids).values_list("organization__name", flat=True)
    return Counter(names)


def test_a_thousand_turns_of_one_organization_delay_anothers_by_one(alice, mallory):
    wait(alice, 1000)
    (hers,) = wait(mallory, 1)
    assert hers.pk in served(2)


def test_organizations_are_served_in_turn_however_their_turns_end(alice, mallory):
    """They end at once, so that nobody has more running turns than others: then it is the ring's turn."""
    wait(alice, 20)
    wait(mallory, 20)
    got = []
    for _ in range(10):
        got += served(1)
        Turn.objects.filter(pk__in=got).update(status=TurnStatus.COMPLETED)
    assert sorted(organizations_of(got).values()) == [5, 5]


def test_people_of_one_organization_are_served_in_turn_and_each_in_their_order(alice, bob):
    hers = wait(alice, 10)
    his = wait(bob, 2)
    order = served(12)
    assert {each.pk for each in his} <= set(order[:4])
    assert [pk for pk in order if pk in {t.pk for t in hers}] == [t.pk for t in hers]
    assert len(set(order)) == 12


def guests_wait(persona: Any, guests: int, each: int = 1) -> list[str]:
    """Queue turns of guests of the organization's page, and return the guests in order of their ids."""
    ids = sorted(f"{GUEST_PREFIX}{new_id().hex[::-1]}" for _ in range(guests))
    for guest_id in ids:
        wait(persona, each, user=None, guest_id=guest_id)
    return ids


def test_guests_are_one_person_together_so_that_members_wait_for_one_of_them(alice, bob):
    guests_wait(alice, 500)
    hers, his = wait(alice, 3), wait(bob, 3)
    named = wait(alice, 3, guest_id="zoe")  # whom a program of theirs names
    order = served(12)
    for people in (hers, his, named):
        places = [order.index(turn.pk) for turn in people]
        assert places == sorted(places)
        assert places[0] < 4 and places[-1] < 12
    assert len(set(order)) == 12


def test_guests_are_served_in_turn_among_themselves(alice):
    guests = guests_wait(alice, 5, each=3)
    order = [Turn.objects.get(pk=pk).guest_id for pk in served(15)]
    assert order == guests * 3


def test_a_weight_of_three_brings_three_turns_for_anothers_one(alice, mallory):
    Organization.objects.filter(pk=alice.organization.pk).update(turn_weight=3)
    wait(alice, 30)
    wait(mallory, 30)
    got = organizations_of(served(16))
    assert got[alice.organization.name] == 12


def test_a_weight_of_nothing_stops_nobodys_turns(alice, mallory, settings):
    """The form refuses it. A script may not, and a division by zero would stop all tenants."""
    Organization.objects.filter(pk=alice.organization.pk).update(turn_weight=0)
    wait(alice, 2)
    wait(mallory, 2)
    settings.AMBER_QUEUE_SECONDS = -1  # the queue is old
    assert len(congestion._find_over_share()) == 2
    assert len(served(4)) == 4


def test_an_organization_at_its_limit_is_passed_over_until_a_turn_of_its_ends(
    alice, mallory, settings
):
    settings.AMBER_TURNS_PER_ORGANIZATION = 2
    Organization.objects.filter(pk=mallory.organization.pk).update(turns_at_once=0)
    wait(alice, 4)
    wait(mallory, 4)
    first = served(10)
    assert organizations_of(first) == {alice.organization.name: 2, mallory.organization.name: 4}
    assert claims.are_some_waiting(), "whoever ends a turn looks for another"
    Turn.objects.filter(pk__in=first).update(status=TurnStatus.COMPLETED)
    assert len(served(10)) == 2
    Turn.objects.filter(status=TurnStatus.RUNNING).update(status=TurnStatus.COMPLETED)
    assert served(1) == []
    assert not claims.are_some_waiting()


def test_a_claim_is_one_trip_and_a_fence(alice):
    (turn,) = wait(alice, 1)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert claims.claim_next("w1") == (
            turn.pk,
            (alice.organization.pk, alice.user.pk, None),
        )
    assert [each["sql"].split()[0] for each in queries] == ["SELECT", "WITH"]
    turn.refresh_from_db()
    assert (turn.status, turn.attempt, turn.fence, turn.worker) == ("running", 1, 1, "w1")
    assert turn.lease_until is not None


def test_its_trip_is_one_transaction_by_itself(monkeypatch):
    """Or the planner would sort, and whatever borrows the connection next would not."""
    asked = "SELECT current_setting('enable_sort'), '', NULL::uuid"
    monkeypatch.setattr(claims, "CLAIM_SQL", asked)
    with across_tenants():
        assert claims._claim("w1")[0] == "off"
    with connection.cursor() as cursor:
        cursor.execute(asked)
        assert cursor.fetchone()[0] == "on"


def rows_read(number: int, *, is_known: bool = True) -> float:
    """Return how many rows the next claim's plan read of the table of turns, with so many queued."""
    given: dict[str, Any] = {
        "last": UUID(int=0),
        "window": claims.WINDOW,
        "most": 96,
        "organizations": [],
        "people": [],
        "guests": [],
        "prefix": GUEST_PREFIX,
        "after_guests": claims.AFTER_GUESTS,
    }
    given |= {"worker": "w1", "lease": 20}
    with transaction.atomic(), connection.cursor() as cursor:
        if is_known:
            cursor.execute("ANALYZE chats_turn")
        cursor.execute(claims.INDEX_ORDER_SQL)
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {claims.CLAIM_SQL}", given)
        found = cursor.fetchone()[0]
    plan = found if isinstance(found, list) else json.loads(found)
    text = json.dumps(plan)
    assert "Seq Scan" not in re.findall(
        r'"Node Type": "([^"]+)", [^{}]*"Relation Name": "chats_turn"', text
    )
    return sum(_rows(plan[0]["Plan"]))


def _rows(node: Any) -> list[float]:
    own = (
        [node["Actual Rows"] * node["Actual Loops"]]
        if node.get("Relation Name") == "chats_turn"
        else []
    )
    return own + [rows for each in node.get("Plans", ()) for rows in _rows(each)]


def test_a_claim_reads_no_more_rows_of_a_queue_of_ten_thousand(alice, mallory):
    wait(alice, 8_000)
    guests_wait(alice, 1_000)
    wait(mallory, 1_000)
    assert rows_read(10_000) <= 20


def test_nor_where_the_planner_knows_of_no_queue(alice, mallory):
    """Statistics are made when hardly a turn waits, and of no pages that other tests have left."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE chats_turn CASCADE")
        cursor.execute("ANALYZE chats_turn")
    wait(alice, 200)
    wait(mallory, 200)
    assert rows_read(400, is_known=False) <= 20
