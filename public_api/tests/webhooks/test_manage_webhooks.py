"""Webhooks over REST: whoever makes one sees its secret once, and what became of each delivery."""

import pytest

from public_api.models import Webhook
from public_api.tests.webhooks.hooks import enqueued, hook, receiver, turn_of
from public_api.webhooks.delivery import deliver_due
from tests.fixtures.personas import api

__all__ = ["enqueued", "hook", "receiver"]

pytestmark = pytest.mark.django_db(transaction=True)

ALL = "/api/v1/webhooks/"


def test_the_secret_is_shown_once(alice):
    client = api(alice)
    made = client.post(ALL, {"url": "https://example.com/hook"})
    assert made.status_code == 201, made.content
    said = made.json()
    assert said["secret"].startswith("whsec_")
    assert said["events"] == [
        "turn.completed",
        "turn.incomplete",
        "turn.failed",
        "turn.cancelled",
        "turn.waiting",
    ]
    again = client.get(f"{ALL}{said['id']}/").json()
    assert "secret" not in again
    assert client.get(ALL).json()["results"] == [again]
    assert said["secret"] not in Webhook.objects.get().secret_sealed


def test_the_same_key_twice_makes_one_and_tells_no_secret_again(alice):
    client = api(alice)
    ask_for = {"url": "https://example.com/hook"}
    first = client.post(ALL, ask_for, headers={"Idempotency-Key": "k"})
    second = client.post(ALL, ask_for, headers={"Idempotency-Key": "k"})
    assert first.json() | {"secret": None} == second.json()
    assert Webhook.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "http://127.0.0.1/"}, "url"),
        ({"url": "https://example.com/", "events": ["turn.begun"]}, "events.0"),
        ({"url": "https://example.com/", "events": []}, "events"),
        (
            {"url": "https://example.com/", "whole_organization": True, "include_output": True},
            "include_output",
        ),
    ],
    ids=["none", "scheme", "at home", "event", "no events", "texts of others"],
)
def test_bad_webhooks_are_400(alice, body, field):
    answer = api(alice).post(ALL, body)
    assert answer.status_code == 400
    assert field in answer.json()["error"]["fields"]
    assert not Webhook.objects.exists()


def test_members_may_not_hear_of_everybody(bob):
    body = {"url": "https://example.com/", "whole_organization": True}
    assert api(bob).post(ALL, body).status_code == 403


def test_admins_see_those_of_the_whole_organization(alice, carol, bob):
    body = {"url": "https://example.com/", "whole_organization": True}
    made = api(alice).post(ALL, body).json()
    assert api(carol).get(f"{ALL}{made['id']}/").status_code == 200
    assert api(bob).get(f"{ALL}{made['id']}/").status_code == 404


def test_keys_may_not_touch_webhooks(alice):
    assert api(key=alice.new_key()[1]).get(ALL).status_code == 403


def test_changes_rotates_and_deletes(alice):
    client = api(alice)
    made = client.post(ALL, {"url": "https://example.com/hook"}).json()
    place = f"{ALL}{made['id']}/"
    changed = client.patch(place, {"enabled": False, "name": "Mine"}).json()
    assert (changed["enabled"], changed["disabled_reason"]) == (False, "Switched off.")
    rotated = client.post(f"{place}rotate/", {"overlap_hours": 1})
    assert rotated.status_code == 201
    assert rotated.json()["secret"] not in ("", made["secret"])
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404


def test_the_log_shows_how_it_went_and_sends_again(alice, new_model, receiver, hook):
    new_model(default=True)
    webhook, _ = hook(alice)
    turn = turn_of(alice)
    client = api(alice)
    log = f"{ALL}{webhook.pk}/deliveries/"
    (waiting,) = client.get(log).json()["results"]
    assert (waiting["status"], waiting["attempts"]) == ("queued", 0)
    again = f"{log}{waiting['id']}/redeliver/"
    assert client.post(again).status_code == 409
    deliver_due()
    (done,) = client.get(log).json()["results"]
    assert (done["status"], done["attempts"], done["http_status"]) == ("delivered", 1, 200)
    assert done["turn_id"] == str(turn.pk)
    repeated = client.post(again)
    assert repeated.status_code == 201
    assert repeated.json()["event_id"] == done["event_id"]
    assert len(client.get(log).json()["results"]) == 2
