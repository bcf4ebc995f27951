"""Nobody learns who has an account: neither from what sign-up and password reset say, nor from the work
that they do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import services
from accounts.models import Organization, OutgoingMail, User
from accounts.tests.browsers import new_browser, post
from amber.lib.ids import new_id

PASSWORD = "a quite long sentence"
SAME_STATEMENTS = 6
"""So many statements more or less take no time that the network does not hide."""


class CountedHasher(PBKDF2PasswordHasher):
    """Cheap, and counted."""

    iterations = 1
    hashes = 0

    def encode(self, *args: Any, **kwargs: Any) -> str:
        type(self).hashes += 1
        return super().encode(*args, **kwargs)


@pytest.fixture(autouse=True)
def counted(settings, db):
    settings.PASSWORD_HASHERS = [f"{__name__}.CountedHasher"]
    settings.AMBER_OPEN_SIGNUP = settings.AMBER_SENDS_MAIL = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


@dataclass(frozen=True)
class Told:
    """What somebody who asks can see, and how long it took, in work."""

    status: int
    body: Any
    cookies: frozenset[str]
    hashes: int
    mails: int
    statements: int


def told(path: str, body: dict[str, str]) -> Told:
    browser = new_browser()
    CountedHasher.hashes, mails = 0, OutgoingMail.objects.count()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = post(browser, path, body)
    return Told(
        answer.status_code,
        answer.json(),
        frozenset(answer.cookies),
        CountedHasher.hashes,
        OutgoingMail.objects.count() - mails,
        len(queries),
    )


def new_address() -> str:
    return f"{new_id().hex}@example.com"


def existing_address() -> str:
    return services.sign_up(new_address(), password=PASSWORD).email


def unusable_address() -> str:
    """Of an account without a password."""
    return services.sign_up(new_address()).email


def deactivated_address() -> str:
    email = existing_address()
    User.objects.filter(email=email).update(is_active=False)
    return email


@pytest.mark.parametrize("known", [existing_address, unusable_address, deactivated_address])
@pytest.mark.parametrize(
    ("path", "password"), [("signup", PASSWORD), ("password/request", ""), ("login", "wrong")]
)
def test_an_address_with_an_account_is_answered_as_any_other(
    path: str, password: str, known: Callable[[], str]
) -> None:
    def asked(email: str) -> Told:
        return told(path, {"email": email} | ({"password": password} if password else {}))

    asked(new_address())  # what is read once is read now
    taken, free = asked(known()), asked(new_address())
    assert (taken.status, taken.body, taken.cookies) == (free.status, free.body, free.cookies)
    assert (taken.hashes, taken.mails) == (free.hashes, free.mails)
    assert abs(taken.statements - free.statements) <= SAME_STATEMENTS


def test_a_sign_up_that_was_only_acted_leaves_nothing() -> None:
    email = existing_address()
    told("signup", {"email": email, "password": PASSWORD})
    assert User.objects.count() == 1
    assert Organization.objects.count() == 1
    assert User.objects.get().check_password(PASSWORD)
    assert OutgoingMail.objects.get().kind == "account_exists"


def test_the_mail_is_in_the_language_of_the_page(settings: Any) -> None:
    settings.AMBER_LANGUAGE = "zh-hans"
    told("signup", {"email": existing_address(), "password": PASSWORD})
    assert OutgoingMail.objects.get().language == "zh-hans"


def test_a_closed_installation_tells_strangers_nothing(settings: Any) -> None:
    settings.AMBER_OPEN_SIGNUP = False
    for verification in ("none", "mandatory"):
        settings.ACCOUNT_EMAIL_VERIFICATION = verification
        asked = [
            told("signup", {"email": email, "password": PASSWORD})
            for email in (new_address(), existing_address(), new_address())
        ]
        assert asked[1].status == 403
        assert (asked[1].body, asked[1].hashes) == (asked[2].body, asked[2].hashes)
