"""allauth's addresses, walked with right bodies and with rubbish, by strangers and by people: none fails."""

import json
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from accounts import services
from accounts.models import User
from accounts.tests.browsers import AUTH, new_browser
from tests.rest.routes import auth_routes

PASSWORD = "a quite long sentence"
DEEP = b'{"email": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NOT_OURS = {
    "deep": DEEP,
    "deep and never closed": b'{"email": ' + b"[" * 100_000,
    "a number that Python does not read": b'{"email": ' + b"1" * 5_000 + b"}",
    "a number beyond all floats": b'{"email": 1e400}',
    "not a number": b'{"email": NaN}',
    "half a pair of surrogates": b'{"email": "\\ud800", "password": "x"}',
    "a null character": b'{"email": "a\\u0000@example.com", "password": "a\\u0000"}',
    "no JSON": b"email=x",
    "no UTF-8": b'{"email": "\xff"}',
    "no object": b'["email"]',
}
FIELDS = (
    *(
        "email",
        "password",
        "key",
        "code",
        "current_password",
        "new_password",
        "provider",
        "account",
    ),
    *("token", "process", "primary", "phone", "invitation"),
)
ODD: list[Any] = [None, True, -1, 10**18, 1e300, "", "x" * 10_000, [], {}, ["a"], {"a": {"b": 1}}]
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")

ROUTES = {route.address({}): route.methods for route in reversed(auth_routes())}
"""Each with its methods."""


@pytest.fixture(autouse=True)
def unlimited(settings):
    """Rates, which are counted by address, would hide what comes after them."""
    settings.ACCOUNT_RATE_LIMITS = False
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.AMBER_OPEN_SIGNUP = True


def right_bodies(email: str) -> list[dict[str, Any]]:
    return [
        {"email": email, "password": PASSWORD},
        {"email": "new@example.com", "password": PASSWORD},
        {"email": email, "primary": True},
        {"key": "MQ:1abc:def", "password": PASSWORD},
        {"current_password": PASSWORD, "new_password": "another long sentence"},
        {"password": "another long sentence"},
        {"code": "ABC123"},
        {
            "provider": "openid_connect",
            "process": "login",
            "token": {"client_id": "x", "id_token": "x"},
        },
        {"provider": "openid_connect", "account": "42"},
        {"phone": "+4912345678"},
    ]


def browser(email: str) -> Client:
    """Of nobody without an address."""
    client = new_browser()
    if email:
        client.force_login(User.objects.get(email=email))
    return client


@pytest.mark.parametrize("signed_in", [False, True])
@pytest.mark.parametrize("path", ROUTES)
def test_no_body_makes_it_fail(db, path, signed_in):
    known = services.sign_up("eve@example.com", password=PASSWORD).email
    rubbish = [json.dumps(dict.fromkeys(FIELDS, value)).encode() for value in ODD]
    right = [json.dumps(body).encode() for body in right_bodies(known)]
    odd_keys = {"X-Email-Verification-Key": "\u00e9:x:y", "X-Password-Reset-Key": "-"}
    for method in METHODS:
        is_taken = method in ROUTES[path] and method != "get"
        bodies = [b"", *NOT_OURS.values(), *rubbish, *right] if is_taken else [b"", DEEP]
        client = browser(known if signed_in else "")
        for body in bodies:
            sent = client.generic(method.upper(), path, body, "application/json", headers=odd_keys)
            assert sent.status_code < 500, (method, body[:80])


@pytest.mark.parametrize("name", NOT_OURS)
@pytest.mark.parametrize("path", ["login", "signup", "password/request", "password/reset"])
def test_what_is_not_strict_json_is_refused_in_our_form(db, path, name):
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        answer = new_browser().generic("POST", f"{AUTH}/{path}", NOT_OURS[name], kind)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] in ("malformed_json", "invalid")
    assert not mail.outbox


def test_off_to_an_identity_provider_goes_a_form(db):
    form = {"provider": "nobody", "callback_url": "/", "process": "login"}
    for client in (new_browser(), browser(services.sign_up("eve@example.com").email)):
        answer = client.post(f"{AUTH}/provider/redirect", form)
        assert answer.status_code == 302


@pytest.mark.parametrize("path", [path for path in ROUTES if "phone" in path])
def test_there_are_no_telephones(db, path):
    known = services.sign_up("eve@example.com").email
    for client in (new_browser(), browser(known)):
        for method in ("get", "post"):
            answer = client.generic(method.upper(), path, b"{}", "application/json")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
