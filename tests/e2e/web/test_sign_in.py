"""Signing in, up and out; organizations and invitations."""

from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import httpx2
import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import PASSWORD, new_account, signed_in
from tests.e2e.web.visitor import Person, Visitor

pytestmark = pytest.mark.e2e


def sign_in(here: Visitor, email: str, password: str = PASSWORD) -> None:
    here.page.get_by_label("Email").fill(email)
    here.page.get_by_label("Password").fill(password)
    here.page.get_by_label("Password").press("Enter")


def test_a_wrong_password_is_told_and_a_right_one_leads_on(visit, person):
    here = visit(is_signed_in=False)
    chat_id = person.new_chat(name="Deep")
    here.open(f"/chats/{chat_id}")
    here.page.get_by_role("heading", name="Sign in").wait_for()
    here.is_accessible()
    sign_in(here, person.email, "not the password")
    here.page.get_by_role("alert").get_by_text("not correct").wait_for()
    here.is_accessible()
    sign_in(here, person.email)
    here.page.locator(".timeline").wait_for()
    assert here.chat_id == chat_id, "where they were going"


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example/x", "https://evil.example/x", "/\\evil.example"]
)
def test_signing_in_never_leads_to_another_site(visit, person, elsewhere):
    here = visit(is_signed_in=False)
    here.open(f"/sign-in?next={quote(elsewhere)}")
    sign_in(here, person.email)
    here.composer.wait_for()
    assert here.page.url == f"{here.base}/"


def test_signing_out_leaves_nothing_behind(visit, platform):
    email = new_account(platform, "otto")
    here = visit(is_signed_in=False).open()
    sign_in(here, email)
    here.composer.fill("a secret draft")
    here.page.locator(".account button").click()
    here.select("Sign out")
    here.page.get_by_role("heading", name="Sign in").wait_for()
    assert "secret" not in here.page.evaluate("() => JSON.stringify(localStorage)")
    here.page.go_back()
    here.page.get_by_role("heading", name="Sign in").wait_for()


def test_what_the_browser_kept_for_the_way_back_is_read_anew(visit):
    here = visit().open()
    here.composer.wait_for()
    with here.page.expect_navigation():
        here.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    here.composer.wait_for()


@pytest.fixture
def owner(platform: Platform) -> Iterator[Person]:
    with signed_in(platform, new_account(platform, "olive")) as http:
        yield Person(platform, "", http)


def invite(owner: Person, email: str) -> dict[str, str]:
    organization = owner.post("organizations/", {"name": f"Club {uuid4().hex[:6]}"})
    made = owner.post(f"organizations/{organization['id']}/invitations/", {"email": email})
    return {"token": made["token"], "name": organization["name"]}


def test_somebody_who_is_invited_signs_up_and_joins(visit, owner):
    email = f"new-{uuid4().hex[:8]}@example.com"
    given = invite(owner, email)
    here = visit(is_signed_in=False).open(f"/invitation/{quote(given['token'])}")
    here.is_accessible()
    here.link("Sign up").click()
    here.page.get_by_role("heading", name="Sign up").wait_for()
    here.is_accessible()
    here.page.get_by_label("Email").fill(email)
    here.page.get_by_label("Password").fill("short")
    here.button("Create account").click()
    assert here.page.get_by_label("Password").evaluate("(box) => !box.validity.valid")
    here.page.get_by_label("Password").fill("a quite long sentence")
    here.button("Create account").click()
    here.sees(f"invites you to join the organization “{given['name']}”.")
    here.is_accessible()
    here.button("Accept").click()
    here.composer.wait_for()
    expect(here.page.locator(".account")).to_contain_text(given["name"])


def test_nobody_signs_up_uninvited(visit):
    here = visit(is_signed_in=False).open("/sign-up")
    here.page.get_by_label("Email").fill("stranger@example.com")
    here.page.get_by_label("Password").fill("a quite long sentence")
    here.button("Create account").click()
    here.sees("You need an invitation to sign up")


def test_an_invitation_is_declined(visit, platform, owner):
    email = new_account(platform, "ida")
    given = invite(owner, email)
    here = visit(is_signed_in=False).open("/sign-in?next=/invitation/enter")
    sign_in(here, email)
    here.page.get_by_label("Invitation").fill(f"{here.base}/invitation/{quote(given['token'])}")
    here.button("Continue").click()
    here.sees(f"invites you to join the organization “{given['name']}”.")
    here.button("Decline").click()
    here.composer.wait_for()
    expect(here.page.locator(".account")).not_to_contain_text(given["name"])


def test_organizations_are_switched(visit, owner):
    owner.post("organizations/", {"name": "Second home"})
    here = visit(who=owner).open()
    here.page.locator(".account button").click()
    here.select("Switch organization")
    here.is_accessible()
    here.dialog.get_by_role("button", name="Second home").click()
    here.page.wait_for_function(
        "() => document.querySelector('.account')?.textContent.includes('Second home')"
    )
    here.sees("You have no assistants yet.")
    here.page.locator("main").get_by_role("link", name="New assistant").click()
    here.page.get_by_role("heading", name="New assistant").wait_for()


def test_a_link_that_is_not_good_any_more_says_so(visit):
    here = visit(is_signed_in=False).open("/verify-email/nonsense")
    here.button("Confirm").click()
    here.sees("This link has expired or was already used.")
    here.open("/reset-password/nonsense")
    here.page.get_by_label("New password").fill("a quite long sentence")
    here.button("Set password").click()
    here.sees("This link has expired or was already used.")
    here.open("/reset-password")
    here.sees("This installation sends no email.")
    here.open("/login-error")
    here.sees("refused to sign you in")
    here.is_accessible()


def test_a_guests_chats_are_taken_over(visit, person, platform):
    assistant = person.post("assistants/", {"name": "Public", "public": True, "shared": True})
    public = f"/api/v1/public/assistants/{assistant['id']}"
    with httpx2.Client(base_url=str(person.http.base_url), trust_env=False) as http:
        token = http.post(f"{public}/token/").json()["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        assert (
            http.post(f"{public}/chats/", json={"name": "As a guest"}, headers=bearer).status_code
            == 201
        )
    here = visit().open("/claim")
    here.page.get_by_label("Guest token").fill("nonsense")
    here.button("Claim chats").click()
    here.page.locator(".failure[role=alert]").wait_for()
    here.is_accessible()
    here.page.get_by_label("Guest token").fill(token)
    here.button("Claim chats").click()
    here.sees("1 chat was moved to your account.")
    here.chats.filter(has_text="As a guest").wait_for()
