"""Webhooks: turns of keys are told to an address that a test listens at, signed, and tried
again."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Membership, Role, User
from chats.models import Chat, Turn
from chats.services import cancel_turn, start_stateless_turn
from chats.tests.runs import ask
from public_api.models import DeliveryStatus, Webhook, WebhookDelivery
from public_api.tests.webhooks.hooks import (
    OK,
    SIX,
    answer_with,
    enqueued,
    hook,
    receiver,
    turn_of,
    with_key,
)
from public_api.webhooks import delivery as webhook_delivery
from public_api.webhooks import outbox
from public_api.webhooks.delivery import deliver_due, forget_deliveries
from public_api.webhooks.services import deliver_again, edit_webhook, rotate_secret

__all__ = ["enqueued", "hook", "receiver"]

pytestmark = pytest.mark.django_db(transaction=True)


def status(code):
    return f"HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n".encode()


def sent(receiver):
    return [json.loads(request.body) for request in receiver.requests]


def make_due():
    WebhookDelivery.objects.update(due_at=timezone.now())


# -- What is told ----------------------------------------------------------------------------------


def test_an_ended_turn_of_a_key_is_told_and_signed(alice, new_model, receiver, hook, enqueued):
    new_model(default=True)
    _, secret = hook(alice)
    turn = turn_of(alice)
    assert enqueued == [1]
    deliver_due()
    (request,) = receiver.requests
    told = json.loads(request.body)
    assert told["type"] == "turn.completed"
    assert told["turn"]["id"] == str(turn.pk)
    assert told["turn"]["status"] == "completed"
    assert told["turn"]["api_key_id"] == str(turn.api_key_id)
    assert told["turn"]["usage"]["completion_tokens"] == 6
    assert "river" not in request.body.decode()
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["amber-event"] == "turn.completed"
    parts = dict(part.split("=", 1) for part in headers["amber-signature"].split(","))
    signed = parts["t"].encode() + b"." + request.body
    assert parts["v1"] == hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert abs(int(parts["t"]) - timezone.now().timestamp()) < 60
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempt, delivery.http_status) == ("delivered", 1, 200)
    assert delivery.latency_ms is not None
    assert delivery.ended_at is not None


def test_what_was_written_is_sent_only_to_those_who_asked(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice, include_output=True)
    turn_of(alice)
    deliver_due()
    (told,) = sent(receiver)
    assert [message["role"] for message in told["output"]] == ["assistant"]


def test_an_output_that_is_erased_is_null(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice, include_output=True)
    turn_of(alice)
    Turn.objects.update(output=None)
    deliver_due()
    assert sent(receiver)[0]["output"] is None


def test_turns_without_a_key_of_others_and_of_other_tenants_are_not_told(
    alice, bob, mallory, new_model, hook
):
    new_model(default=True)
    hook(alice)
    turn_of(alice, by_key=False)
    turn_of(bob)
    turn_of(mallory)
    assert not WebhookDelivery.objects.exists()


def test_an_admins_webhook_may_hear_of_everybody(alice, bob, mallory, new_model, hook):
    new_model(default=True)
    hook(alice, whole_organization=True)
    turn = turn_of(bob)
    turn_of(mallory)
    assert [d.turn_id for d in WebhookDelivery.objects.all()] == [turn.pk]


def test_whoever_is_no_admin_any_more_or_has_left_hears_nothing(alice, carol, new_model, hook):
    new_model(default=True)
    hook(carol, whole_organization=True)
    hook(carol)
    memberships = Membership.objects.filter(user=carol.user, organization=carol.organization)
    memberships.update(role=Role.MEMBER)
    turn_of(alice)
    assert not WebhookDelivery.objects.exists()
    turn_of(carol)
    assert WebhookDelivery.objects.count() == 1
    memberships.delete()
    turn_of(carol)
    assert WebhookDelivery.objects.count() == 1


def left(carol):
    Membership.objects.filter(user=carol.user, organization=carol.organization).delete()


def demoted(carol):
    Membership.objects.filter(user=carol.user).update(role=Role.MEMBER)


def deactivated(carol):
    User.objects.filter(pk=carol.user.pk).update(is_active=False)


def deleted_chat(_):
    Chat.objects.update(expired_at=timezone.now())


def deleted_turn(_):
    Turn.objects.all().delete()


NOT_ANY_MORE = "The webhook's user no longer has access to this turn."


@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (left, NOT_ANY_MORE),
        (demoted, NOT_ANY_MORE),
        (deactivated, NOT_ANY_MORE),
        (deleted_chat, "The turn was deleted."),
        (deleted_turn, "The turn was deleted."),
    ],
)
def test_who_may_not_know_any_more_is_not_sent_what_waits(
    alice, carol, receiver, hook, happens, reason, attempts
):
    webhook, _ = hook(carol, whole_organization=True)
    turn = ask(alice)
    Turn.objects.filter(pk=turn.pk).update(api_key=alice.new_key()[0], status="completed")
    turn.refresh_from_db()
    outbox.note_turn(turn)
    answer_with(receiver, status(500))
    for _ in range(attempts):
        deliver_due()
        make_due()
    assert len(receiver.requests) == attempts
    happens(carol)
    deliver_due()
    make_due()
    deliver_due()
    assert len(receiver.requests) == attempts
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.error) == ("failed", reason)
    assert delivery.ended_at is not None
    webhook.refresh_from_db()
    assert webhook.failures == attempts, "that is not the address's fault"


def test_only_events_that_were_asked_for(alice, new_model, hook):
    new_model(default=True)
    new_model("fake-400")
    hook(alice, events=["turn.failed", "turn.cancelled"])
    turn_of(alice)
    assert not WebhookDelivery.objects.exists()
    cancelled = start_stateless_turn(with_key(alice), messages=[{"role": "human", "content": SIX}])
    cancel_turn(cancelled)
    assert [d.event for d in WebhookDelivery.objects.all()] == ["turn.cancelled"]


def test_a_turn_that_waits_tells_which_calls_and_not_what_they_say(
    alice, new_model, receiver, hook, monkeypatch
):
    hook(alice, events=["turn.waiting"])
    turn = ask(alice)
    Turn.objects.filter(pk=turn.pk).update(api_key=alice.new_key()[0])
    turn.refresh_from_db()
    turn.status = "waiting"
    turn.waiting_calls = [{"call_id": "c", "name": "pay", "arguments": "secret", "approved": None}]
    outbox.note_turn(turn)
    deliver_due()
    (told,) = sent(receiver)
    assert told["turn"]["waiting_calls"] == [{"call_id": "c", "name": "pay"}]


def test_organizations_without_webhooks_cost_no_query(
    alice, new_model, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(outbox, "KNOWN_SECONDS", 60.0)
    new_model(default=True)
    turn = turn_of(alice)
    with django_assert_num_queries(0):
        outbox.note_turn(turn)


def test_what_one_organization_has_is_not_taken_for_anothers(
    alice, mallory, new_model, hook, monkeypatch
):
    """A worker runs turns of all tenants within these seconds, and each sees its own webhooks only."""
    monkeypatch.setattr(outbox, "KNOWN_SECONDS", 60.0)
    new_model(default=True)
    for persona in (alice, mallory):
        hook(persona)
    outbox.forget_known()
    for persona in (alice, mallory):
        turn_of(persona)
    told = WebhookDelivery.objects.values_list("organization_id", flat=True)
    assert set(told) == {alice.organization.pk, mallory.organization.pk}


# -- Trying again ----------------------------------------------------------------------------------


def test_a_failure_is_tried_again_later_and_then_given_up(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    answer_with(receiver, status(500))
    deliver_due()
    deliver_due()
    delivery = WebhookDelivery.objects.get()
    assert len(receiver.requests) == 1, "not at once"
    assert (delivery.status, delivery.http_status) == ("queued", 500)
    assert "500" in delivery.error
    assert delivery.due_at > timezone.now()
    for _ in webhook_delivery.RETRY_SECONDS:
        make_due()
        deliver_due()
    delivery.refresh_from_db()
    assert delivery.status == "failed"
    assert len(receiver.requests) == len(webhook_delivery.RETRY_SECONDS) + 1
    assert len({told["id"] for told in sent(receiver)}) == 1
    assert 23 * 3600 < sum(webhook_delivery.RETRY_SECONDS) <= 24 * 3600


def test_a_success_after_failures_forgets_them(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    answer_with(receiver, status(503))
    deliver_due()
    assert Webhook.objects.get().failures == 1
    answer_with(receiver, OK)
    make_due()
    deliver_due()
    webhook = Webhook.objects.get()
    assert (webhook.failures, webhook.failing_since) == (0, None)
    assert WebhookDelivery.objects.get().attempt == 2


def test_many_failures_for_a_day_disable_it_with_a_reason(alice, new_model, receiver, hook):
    new_model(default=True)
    webhook, _ = hook(alice)
    turn_of(alice)
    turn_of(alice)
    answer_with(receiver, status(500))
    Webhook.objects.update(failures=30, failing_since=timezone.now() - timedelta(hours=1))
    deliver_due()
    assert Webhook.objects.get().is_enabled
    Webhook.objects.update(failing_since=timezone.now() - timedelta(hours=25))
    make_due()
    deliver_due()
    webhook.refresh_from_db()
    assert not webhook.is_enabled
    assert "500" in webhook.disabled_reason
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"failed"}
    turn_of(alice)
    assert WebhookDelivery.objects.count() == 2
    edit_webhook(webhook, alice.principal, changes={"enabled": True})
    turn_of(alice)
    assert WebhookDelivery.objects.count() == 3


def test_an_address_that_is_gone_is_disabled_at_once(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    answer_with(receiver, status(410))
    deliver_due()
    assert not Webhook.objects.get().is_enabled
    assert WebhookDelivery.objects.get().status == "failed"


def test_a_redirect_is_a_failure(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    answer_with(receiver, b"HTTP/1.1 302 X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
    deliver_due()
    assert WebhookDelivery.objects.get().status == "queued"
    assert [request.target for request in receiver.requests] == ["/hook"]


def test_what_a_lost_worker_held_is_sent_again(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    WebhookDelivery.objects.update(
        status=DeliveryStatus.RUNNING, worker="dead", lease_until=timezone.now(), fence=4
    )
    deliver_due()
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_worker_that_was_too_slow_writes_nothing(alice, new_model, receiver, hook):
    new_model(default=True)
    hook(alice)
    turn_of(alice)

    def take_over(connection, _):
        WebhookDelivery.objects.update(fence=99)
        connection.sendall(OK)

    receiver.routes["/hook"] = take_over
    deliver_due()
    assert WebhookDelivery.objects.get().status == "running"


def test_one_webhook_does_not_hold_up_the_others(alice, new_model, receiver, hook):
    new_model(default=True)
    first, _ = hook(alice)
    turn = turn_of(alice)
    delivery = WebhookDelivery.objects.get()
    second, _ = hook(alice)
    for webhook in [first] * 30 + [second]:
        WebhookDelivery.objects.create(
            organization=alice.organization,
            webhook=webhook,
            turn_id=turn.pk,
            event=delivery.event,
            payload=delivery.payload,
            due_at=timezone.now(),
        )
    taken = webhook_delivery._claim_due()
    assert {d.webhook_id for d in taken} == {first.pk, second.pk}


def test_old_log_entries_are_forgotten(alice, new_model, hook, settings):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    forget_deliveries()
    assert WebhookDelivery.objects.exists()
    long_ago = timezone.now() - timedelta(days=settings.AMBER_WEBHOOK_LOG_DAYS + 1)
    WebhookDelivery.objects.update(created_at=long_ago)
    forget_deliveries()
    assert not WebhookDelivery.objects.exists()


# -- Secrets and redelivery ------------------------------------------------------------------------


def test_both_secrets_sign_while_one_is_changed(alice, new_model, receiver, hook):
    new_model(default=True)
    webhook, old = hook(alice)
    _, new = rotate_secret(webhook, overlap=timedelta(hours=1))
    turn_of(alice)
    deliver_due()
    (request,) = receiver.requests
    given = request.headers.get("amber-signature") or request.headers["Amber-Signature"]
    stamp, *marks = given.split(",")
    signed = stamp.removeprefix("t=").encode() + b"." + request.body
    assert marks == [
        "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest() for key in (new, old)
    ]
    assert old not in Webhook.objects.get().secret_sealed


def test_a_delivery_is_sent_again_as_the_same_event(alice, new_model, receiver, hook, enqueued):
    new_model(default=True)
    hook(alice)
    turn_of(alice)
    deliver_due()
    deliver_again(WebhookDelivery.objects.get())
    assert enqueued == [1, 1]
    deliver_due()
    first, second = sent(receiver)
    assert first == second
    assert WebhookDelivery.objects.filter(status="delivered").count() == 2
