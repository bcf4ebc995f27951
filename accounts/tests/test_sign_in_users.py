"""Sign-up, login and the rest of allauth's browser API, as a single-page application uses it."""

from typing import Any
from urllib.parse import unquote

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.contrib.sessions.backends.db import SessionStore
from django.core import mail
from django.test import Client

from accounts import services
from accounts.auth_pages.adapter import SocialAccountAdapter
from accounts.mail.delivery import deliver_due
from accounts.models import Invitation, Organization, OutgoingMail, User
from accounts.tests.browsers import AUTH, new_browser, post
from amber.lib.ids import new_id
from tests.fixtures.personas import api

ME = "/api/v1/me/"


@pytest.fixture(autouse=True)
def cheap_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def good() -> dict[str, str]:
    return {"email": f"{new_id().hex}@example.com", "password": "a quite long sentence"}


@pytest.fixture
def browser(db: None) -> Client:
    return new_browser()


@pytest.fixture
def opened(settings):
    """As AMBER_OPEN_SIGNUP and AMBER_SMTP_URL make it."""
    settings.AMBER_OPEN_SIGNUP = settings.AMBER_SENDS_MAIL = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


@pytest.fixture
def mailing(settings):
    """Closed, with a mail server."""
    settings.AMBER_SENDS_MAIL = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


def key_in_mail(path: str) -> str:
    """What follows this path in the latest mail."""
    deliver_due()
    return unquote(str(mail.outbox[-1].body.split(f"/{path}/")[1].split()[0]))


def pending(answer: Any) -> list[str]:
    assert answer.status_code == 401
    return [flow["id"] for flow in answer.json()["data"]["flows"] if flow.get("is_pending")]


def test_who_signs_up_proves_their_address_before_anything_else(browser, opened, good):
    assert pending(post(browser, "signup", good)) == ["verify_email"]
    assert browser.get(ME).status_code == 401
    assert browser.post("/api/v1/chats/", {}, "application/json").status_code == 401
    assert browser.post("/api/v1/api-keys/", {"name": "x"}, "application/json").status_code == 401
    assert pending(post(browser, "login", good)) == ["verify_email"]
    assert browser.get(ME).status_code == 401
    key = key_in_mail("verify-email")
    assert post(browser, "email/verify", {"key": f"{key}x"}).status_code == 400
    assert pending(post(new_browser(), "login", good)) == ["verify_email"]
    assert post(browser, "email/verify", {"key": key}).status_code in (200, 401)
    assert post(browser, "login", good).status_code == 200
    me = browser.get(ME).json()
    assert me["email"] == good["email"]
    assert (me["organization"]["personal"], me["organization"]["role"]) == (True, "owner")
    assert Organization.objects.count() == 1


def test_sign_up_needs_the_csrf_token_and_says_so_in_json(db, opened, good):
    client = new_browser(enforce_csrf_checks=True)
    refused = post(client, "signup", good)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "csrf_failed"
    client.get(f"{AUTH}/session")
    token = client.cookies["csrftoken"].value
    assert pending(post(client, "signup", good, **{"X-CSRFToken": token})) == ["verify_email"]


@pytest.mark.parametrize("wrong", [{"password": "1234"}, {"email": "x"}, {"email": None}])
def test_a_bad_sign_up_is_400_and_makes_nobody(browser, opened, good, wrong):
    assert post(browser, "signup", good | wrong).status_code == 400
    assert not User.objects.exists()


def test_one_account_per_address(browser, opened, good):
    services.sign_up(good["email"])
    again = {**good, "email": good["email"].upper()}
    assert pending(post(browser, "signup", again)) == ["verify_email"]
    assert User.objects.count() == 1


def test_login_of_an_account_made_by_an_operator_rotates_the_session(browser, good):
    services.sign_up(**good)
    browser.get(f"{AUTH}/session")
    browser.session.save()
    before = browser.session.session_key
    assert post(browser, "login", good).status_code == 200
    assert browser.session.session_key != before
    assert browser.get(ME).status_code == 200


def test_without_mail_nobody_takes_an_address_that_nobody_can_prove(browser, good, settings):
    services.sign_up(**good)
    post(browser, "login", good)
    url, boss = AUTH.replace("/auth", "/account/email"), {"email": "boss@example.com"}
    for method, more in (("post", {}), ("patch", {"primary": True}), ("put", {}), ("delete", {})):
        answer = getattr(browser, method)(url, boss | more, "application/json")
        assert answer.status_code == 403, method
    assert [each["email"] for each in browser.get(url).json()["data"]] == [good["email"]]
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    assert browser.post(url, boss, "application/json").status_code == 200
    primary = browser.patch(url, boss | {"primary": True}, "application/json")
    assert primary.status_code == 400, "it is proved first"


def test_only_so_many_mails_go_to_addresses_that_one_person_adds(browser, mailing, good, settings):
    settings.AMBER_RATE_INVITATION_MAIL = 2
    services.sign_up(**good)
    post(browser, "login", good)
    url = AUTH.replace("/auth", "/account/email")
    stranger = {"email": "stranger@example.com"}
    for method, status in (("post", 200), ("delete", 200), ("post", 200), ("delete", 200)):
        answer = getattr(browser, method)(url, stranger, "application/json")
        assert answer.status_code == status, answer.content
    mails = OutgoingMail.objects.count()
    for method in ("post", "put"):
        refused = getattr(browser, method)(url, stranger, "application/json")
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "rate_limited"
    assert OutgoingMail.objects.count() == mails
    assert [each["email"] for each in browser.get(url).json()["data"]] == [good["email"]]


def test_logout(browser, good):
    services.sign_up(**good)
    post(browser, "login", good)
    assert browser.delete(f"{AUTH}/session").status_code == 401
    assert browser.get(ME).status_code == 401


def test_a_wrong_password_is_400_and_too_many_are_refused(browser, good):
    services.sign_up(**good)
    wrong = {**good, "password": "wrong"}
    assert [post(browser, "login", wrong).status_code for _ in range(5)] == [400] * 5
    refused = post(browser, "login", good)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["code"] == "too_many_login_attempts"


def test_a_deactivated_user_does_not_sign_in(browser, good):
    services.sign_up(**good)
    User.objects.update(is_active=False)
    assert post(browser, "login", good).status_code == 401
    assert browser.get(ME).status_code == 401


def test_whom_an_operator_made_need_not_prove_their_address(browser, mailing, good):
    services.sign_up(**good)
    assert post(browser, "login", good).status_code == 200
    assert browser.get(ME).status_code == 200


def test_an_operator_vouches_for_whom_they_made_without_an_address(browser, mailing, good):
    user = User.objects.create_superuser(**good)
    assert post(browser, "login", good).status_code == 200
    address = EmailAddress.objects.get(user=user)
    assert (address.email, address.verified, address.primary) == (good["email"], True, True)


def test_who_was_made_without_organization_gets_one_at_login(browser, good):
    User.objects.create_superuser(**good)
    assert post(browser, "login", good).status_code == 200
    assert browser.get(ME).json()["organization"]["personal"] is True


def test_an_installation_is_closed_to_strangers_unless_it_is_opened(browser, good):
    assert post(browser, "signup", good).status_code == 403
    assert not User.objects.exists()
    flows = browser.get(f"{AUTH}/session").json()["data"]["flows"]
    assert "signup" not in [flow["id"] for flow in flows]


@pytest.fixture
def token(alice, good):
    """Of an invitation to that address."""
    path = f"/api/v1/organizations/{alice.organization.pk}/invitations/"
    return api(alice).post(path, {"email": good["email"]}).json()["token"]


def test_a_closed_installation_lets_in_whom_it_invited(browser, mailing, token, good):
    assert pending(post(browser, "signup", good)) == ["verify_email"]
    assert browser.get(ME).status_code == 401
    post(browser, "email/verify", {"key": key_in_mail("verify-email")})
    assert post(browser, "login", good).status_code == 200
    accepted = browser.post("/api/v1/invitations/accept/", {"token": token}, "application/json")
    assert accepted.json()["name"] == "Acme"


def test_an_address_that_only_looks_like_the_invited_one_is_another(browser, mailing, alice, good):
    services.invite(
        alice.organization, email="Bill@wien.example", role="member", by=alice.principal
    )
    for other in ("bıll@wıen.example", "bill@wıen.example"):
        assert post(new_browser(), "signup", good | {"email": other}).status_code == 403
    invited = good | {"email": "bILL@wien.example"}
    assert pending(post(browser, "signup", invited)) == ["verify_email"]


def test_without_mail_whoever_was_invited_shows_the_token(browser, token, good):
    assert post(browser, "signup", good).status_code == 403
    for wrong in ("", "x", f"{token}x", None, [token], {"token": token}):
        assert post(new_browser(), "signup", {**good, "invitation": wrong}).status_code == 403
    other = {**good, "email": "someone@example.com", "invitation": token}
    assert post(new_browser(), "signup", other).status_code == 403
    assert post(browser, "signup", {**good, "invitation": token}).status_code == 200
    accepted = browser.post("/api/v1/invitations/accept/", {"token": token}, "application/json")
    assert accepted.json()["name"] == "Acme"


def test_an_expired_invitation_opens_nothing(browser, mailing, alice, good):
    services.invite(alice.organization, email=good["email"], role="member", by=alice.principal)
    Invitation.objects.update(expires_at=alice.user.created_at)
    assert post(browser, "signup", good).status_code == 403


def test_resets_a_forgotten_password(browser, settings, mailing, good):
    settings.HEADLESS_FRONTEND_URLS = {
        "account_reset_password_from_key": "https://app.example/reset/{key}",
        "account_signup": "https://app.example/sign-up",
    }
    services.sign_up(**good)
    assert post(browser, "password/request", {"email": good["email"]}).status_code == 200
    assert not mail.outbox, "no request waits for a mail server"
    key = key_in_mail("reset")
    assert len(mail.outbox) == 1
    body = {"key": key, "password": "another long sentence"}
    assert post(browser, "password/reset", body).status_code in (200, 401)
    assert User.objects.get().check_password("another long sentence")
    assert post(browser, "password/reset", body).status_code == 400


def oidc(email: str, *, is_proved: bool = True) -> SocialLogin:
    user = User(email=email)
    return SocialLogin(
        user=user,
        account=SocialAccount(provider="openid_connect", uid="42"),
        email_addresses=[EmailAddress(email=email, verified=is_proved, primary=True)],
    )


def test_openid_connect_gives_a_personal_organization_and_the_name(rf, db):
    adapter, login, request = SocialAccountAdapter(), oidc("eve@example.com"), rf.get("/")
    request.session = SessionStore()
    data = {"email": "eve@example.com", "name": "Eve\u200b Adams\u202e"}
    adapter.populate_user(request, login, data)
    user = adapter.save_user(request, login)
    assert user.name == "Eve Adams"
    assert user.memberships.get().organization.name == "Eve Adams"


def test_openid_connect_is_closed_to_strangers_too(rf, alice):
    adapter = SocialAccountAdapter()
    assert not adapter.is_open_for_signup(rf.get("/"), oidc("eve@example.com"))
    services.invite(alice.organization, email="eve@example.com", role="member", by=alice.principal)
    assert adapter.is_open_for_signup(rf.get("/"), oidc("Eve@example.com"))
    unproved = oidc("eve@example.com", is_proved=False)
    assert not adapter.is_open_for_signup(rf.get("/"), unproved)
