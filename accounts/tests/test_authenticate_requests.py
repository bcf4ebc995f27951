"""Every form of credential, good and bad, through a real endpoint."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiKey, Scope, User
from accounts.sign_in.authentication import authenticate
from amber.lib.errors import Forbidden
from amber.lib.secrets import new_api_key
from tests.fixtures.personas import Persona, api

ME = "/api/v1/me/"


def with_header(value: str, persona: Persona | None = None) -> Any:
    client = api(persona)
    client.credentials(HTTP_AUTHORIZATION=value)
    return client.get(ME)


def test_a_key_and_a_session_are_the_same_person(alice):
    _, secret = alice.new_key()
    by_key = api(key=secret).get(ME).json()
    by_session = api(alice).get(ME).json()
    assert by_key["id"] == by_session["id"]
    assert by_key["organization"] == by_session["organization"]


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {} "])
def test_the_scheme_is_case_insensitive(alice, form):
    _, secret = alice.new_key()
    assert with_header(form.format(secret)).status_code == 200


@pytest.mark.parametrize(
    "form",
    ["", " ", "Bearer", "Bearer ", "{}", "Basic {}", "Token {}", "Bearer Bearer {}", "Bearer {}x"],
)
def test_any_other_form_is_401_even_with_a_good_session(alice, form):
    _, secret = alice.new_key()
    answer = with_header(form.format(secret), alice)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_credential"


def test_a_wrong_checksum_costs_no_query(alice, django_assert_num_queries):
    _, secret = alice.new_key()
    mistyped = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    with django_assert_num_queries(0):
        assert with_header(f"Bearer {mistyped}").status_code == 401


def test_an_unknown_key_is_401(db):
    assert api(key=new_api_key()).get(ME).status_code == 401


@pytest.mark.parametrize("value", ["Bearer \N{SNOWMAN}", "Bearer " + "a" * 100_000])
def test_rubbish_is_401(db, value):
    assert with_header(value).status_code == 401


def test_an_expired_key_is_401(alice):
    _, secret = alice.new_key(expires_at=timezone.now() - timedelta(seconds=1))
    assert api(key=secret).get(ME).status_code == 401


def test_a_revoked_key_is_401(alice):
    key, secret = alice.new_key()
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    assert api(key=secret).get(ME).status_code == 401


def test_a_deactivated_user_is_out_at_once(alice):
    _, secret = alice.new_key()
    client = api(alice)
    assert client.get(ME).status_code == 200
    User.objects.filter(pk=alice.user.pk).update(is_active=False)
    assert client.get(ME).status_code == 401
    assert api(key=secret).get(ME).status_code == 401


def test_the_key_of_someone_who_is_no_member_is_401(bob):
    _, secret = bob.new_key()
    bob.organization.memberships.filter(user=bob.user).delete()
    assert api(key=secret).get(ME).status_code == 401


def test_a_session_without_any_organization_is_401(alice):
    client = api(alice)
    alice.user.memberships.all().delete()
    assert client.get(ME).status_code == 401


def test_a_new_password_ends_the_sessions(alice):
    client = api(alice)
    alice.user.set_password("another")
    alice.user.save()
    assert client.get(ME).status_code == 401


def test_unsafe_requests_of_a_session_need_the_csrf_token(alice):
    client = api(alice, check_csrf=True)
    refused = client.patch(ME, {"name": "x"})
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "csrf_failed"
    token = client.get(ME).cookies["csrftoken"].value
    assert client.patch(ME, {"name": "x"}, headers={"X-CSRFToken": token}).status_code == 200
    assert client.patch(ME, {"name": "y"}, headers={"X-CSRFToken": "x" * 32}).status_code == 403


def test_keys_need_no_csrf_token(alice):
    """The endpoint's own refusal, not that of the token."""
    _, secret = alice.new_key()
    answer = api(key=secret, check_csrf=True).patch(ME, {"name": "x"})
    assert answer.json()["error"]["code"] == "forbidden"


def test_a_key_costs_one_query(alice, django_assert_num_queries):
    _, secret = alice.new_key()
    api(key=secret).get(ME)  # the first use of a minute also writes `last_used_at`
    request = RequestFactory().get(ME, HTTP_AUTHORIZATION=f"Bearer {secret}")
    with django_assert_num_queries(1):
        principal = authenticate(request)
    assert principal is not None
    assert principal.user == alice.user


def test_a_session_costs_two_queries_and_its_own_row(alice):
    client = api(alice)
    with CaptureQueriesContext(connection) as seen:
        client.get(ME)
    tables = [query["sql"].split(" FROM ")[1].split()[0] for query in seen.captured_queries]
    assert tables[:3] == ['"django_session"', '"accounts_user"', '"accounts_membership"']
    assert len(tables) == 4  # the last shows the organization


def test_notes_when_a_key_was_last_used_once_a_minute(alice):
    key, secret = alice.new_key()
    api(key=secret).get(ME)
    key.refresh_from_db()
    first = key.last_used_at
    assert first is not None
    api(key=secret).get(ME)
    key.refresh_from_db()
    assert key.last_used_at == first


@pytest.mark.parametrize(
    ("scopes", "method", "allowed"),
    [
        ([], "GET", True),
        ([], "POST", True),
        (["read"], "GET", True),
        (["read"], "POST", False),
        (["write"], "GET", False),
        (["write"], "DELETE", True),
        (["public"], "GET", False),
    ],
)
def test_scopes_limit_a_key(alice, rf, scopes, method, allowed):
    _, secret = alice.new_key(scopes=scopes)
    request = rf.generic(method, "/", HTTP_AUTHORIZATION=f"Bearer {secret}")
    if allowed:
        assert authenticate(request) is not None
    else:
        with pytest.raises(Forbidden):
            authenticate(request)


def test_the_public_api_asks_for_its_own_scope(alice, rf):
    _, secret = alice.new_key(scopes=["public"])
    request = rf.post("/", HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert authenticate(request, scope=Scope.PUBLIC) is not None
    _, secret = alice.new_key(scopes=["read", "write"])
    request = rf.post("/", HTTP_AUTHORIZATION=f"Bearer {secret}")
    with pytest.raises(Forbidden):
        authenticate(request, scope=Scope.PUBLIC)


@pytest.mark.parametrize(
    ("origin", "status"), [(None, 200), ("https://a.example", 200), ("https://b.example", 403)]
)
def test_origins_limit_where_a_key_is_used(alice, origin, status):
    _, secret = alice.new_key(origins=["https://a.example"])
    headers = {"Origin": origin} if origin else {}
    assert api(key=secret).get(ME, headers=headers).status_code == status


@pytest.mark.django_db(transaction=True)
def test_sessions_work_under_asgi(alice):
    """Views run in threads there, and `request.user` is not read on the event loop."""
    cookies = api(alice).cookies
    client = AsyncClient()
    client.cookies = cookies

    async def ask() -> list[Any]:
        try:
            return await asyncio.gather(*(client.get(ME) for _ in range(3)))
        finally:
            await sync_to_async(connections.close_all)()  # the one in the views' thread

    assert [answer.status_code for answer in asyncio.run(ask())] == [200, 200, 200]
