"""Rates: who is counted as one, what is answered, and what happens without Redis."""

import threading
import time
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from django.test import RequestFactory
from redis.exceptions import ConnectionError as RedisConnectionError

from accounts.principal import Principal
from accounts.sign_in import rates
from amber.lib.errors import RateLimited
from amber.lib.rates import Rate, take
from tests.fixtures.personas import api

ALL = "/api/v1/organizations/"


@pytest.fixture(autouse=True)
def nothing_was_away(monkeypatch):
    monkeypatch.setattr(rates, "_away_until", 0.0)


@pytest.fixture
def redis_away(monkeypatch):
    """Every count fails; how many were tried."""
    tried: list[object] = []

    def fail(*_: object, **__: object) -> None:
        tried.append(1)
        raise RedisConnectionError("refused")

    monkeypatch.setattr(rates, "take", fail)
    return tried


def statuses(client: Any, number: int) -> list[int]:
    """Of so many requests that could change something, and are refused as bad for that."""
    return [client.post(ALL, {}).status_code for _ in range(number)]


def test_a_user_gets_so_many_in_a_minute(alice, settings):
    settings.AMBER_RATE_USER = 3
    assert statuses(api(alice), 4) == [400, 400, 400, 429]
    answer = api(alice).post(ALL, {"name": "One more"})
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "rate_limited"
    assert answer.json()["error"]["retryable"] is True
    wait = int(answer.headers["Retry-After"])
    assert 0 < wait <= 60
    assert answer.headers["X-RateLimit-Limit"] == "3"
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert abs(int(answer.headers["X-RateLimit-Reset"]) - time.time() - wait) < 5


def test_reading_is_free(alice, settings):
    settings.AMBER_RATE_USER = 1
    client = api(alice)
    assert statuses(client, 2) == [400, 429]
    assert client.get(ALL).status_code == 200


def test_each_user_and_each_key_counts_for_itself(alice, bob, settings):
    settings.AMBER_RATE_USER, settings.AMBER_RATE_KEY = 1, 2
    assert statuses(api(alice), 2) == [400, 429]
    assert statuses(api(bob), 1) == [400]
    first, second = (api(key=alice.new_key()[1]) for _ in range(2))
    assert statuses(first, 3) == [403, 403, 429]
    assert statuses(second, 1) == [403]


def test_an_organization_counts_all_of_them(alice, bob, mallory, settings):
    settings.AMBER_RATE_ORGANIZATION = 2
    assert statuses(api(alice), 1) + statuses(api(bob), 2) == [400, 400, 429]
    assert statuses(api(mallory), 1) == [400]


def test_a_guest_counts_for_itself(alice, settings):
    settings.AMBER_RATE_GUEST = 1
    first, second = (
        Principal(alice.organization.pk, None, guest_id=str(uuid4())) for _ in range(2)
    )
    rates.spend_request(first)
    rates.spend_request(second)
    with pytest.raises(RateLimited):
        rates.spend_request(first)


def test_zero_is_no_limit(alice, settings):
    settings.AMBER_RATE_USER = 0
    assert statuses(api(alice), 5) == [400] * 5


def test_many_at_once_get_no_more():
    rate, who, passed = Rate("test", 10, 60), str(uuid4()), []
    start = threading.Barrier(40)

    def work() -> None:
        start.wait(30)
        try:
            take(rate, who)
            passed.append(1)
        except RateLimited:
            pass

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(passed) == 10
    connections.close_all()


# -- Without Redis -----------------------------------------------------------------------------


def test_without_redis_known_people_go_on_and_do_not_ask_it_each_time(alice, redis_away):
    assert statuses(api(alice), 3) == [400] * 3
    assert len(redis_away) == 1


def test_without_redis_nobody_guesses_passwords(client, db, redis_away):
    answer = sign_in(client, "admin@example.com", "whatever")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]


def test_without_redis_there_are_no_new_guests(redis_away):
    with pytest.raises(RedisConnectionError):
        rates.spend_guest_token(RequestFactory().post("/"))


# -- The admin's sign-in, new guests -------------------------------------------------------------


def sign_in(client: Any, email: str, password: str, address: str = "") -> Any:
    address = address or f"2001:db8::{uuid4().hex[:4]}"
    body = {"username": email, "password": password}
    return client.post("/admin/login/", body, REMOTE_ADDR=address)


@pytest.fixture
def operator(alice):
    alice.user.is_staff = alice.user.is_superuser = True
    alice.user.email = f"{uuid4()}@example.com"
    alice.user.set_password("correct horse battery")
    alice.user.save()
    return alice.user


def test_guesses_at_one_email_end_from_any_address(client, operator, settings):
    settings.AMBER_RATE_ADMIN_SIGN_IN = 3
    for _ in range(3):
        assert sign_in(client, operator.email, "wrong").status_code == 200
    answer = sign_in(client, operator.email.upper(), "correct horse battery")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 300
    assert "_auth_user_id" not in client.session


def test_guesses_from_one_address_end_at_any_email(client, operator, settings):
    settings.AMBER_RATE_ADMIN_SIGN_IN = 3
    for number in range(3):
        assert sign_in(client, f"{number}@example.com", "x", "192.0.2.9").status_code == 200
    assert sign_in(client, operator.email, "x", "192.0.2.9").status_code == 429
    assert sign_in(client, operator.email, "correct horse battery").status_code == 302


def test_new_guests_are_counted_by_address(settings):
    settings.AMBER_RATE_GUEST_TOKEN = 2
    make, address = RequestFactory(), f"2001:db8:1::{uuid4().hex[:4]}"
    for _ in range(2):
        rates.spend_guest_token(make.post("/", REMOTE_ADDR=address))
    with pytest.raises(RateLimited):
        rates.spend_guest_token(make.post("/", REMOTE_ADDR=address))
    rates.spend_guest_token(make.post("/", REMOTE_ADDR=f"2001:db8:2::{uuid4().hex[:4]}"))
