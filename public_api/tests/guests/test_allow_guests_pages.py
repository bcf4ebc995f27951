"""Which web pages may use a public assistant: all, or those it names; never with cookies."""

import pytest

from assistants.models import Assistant
from chats.tests.rows import error_of, fields_of
from public_api.tests.guests.visits import get, of
from tests.fixtures.personas import api

PAGE = "https://shop.example"
OTHER = "https://elsewhere.example"
ALLOWED = "Access-Control-Allow-Origin"
COOKIES = "Access-Control-Allow-Credentials"


def preflight(guest, rest="", origin=PAGE, method="GET"):
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,last-event-id",
    }
    return api().options(of(guest, rest), headers=headers)


@pytest.mark.parametrize("rest", ["", "token/", "chats/", "turns/x/events/"])
def test_any_page_may_ask_whether_it_may(guest, rest):
    answer = preflight(guest, rest, method="POST")
    assert answer.status_code == 200
    assert answer.headers[ALLOWED] == PAGE
    assert COOKIES not in answer.headers
    allowed = answer.headers["Access-Control-Allow-Headers"]
    assert {"authorization", "content-type", "last-event-id"} <= set(allowed.split(", "))


def test_any_page_may_read_the_answers_without_cookies(guest):
    for rest in ("", "chats/"):
        answer = get(guest, rest, Origin=PAGE)
        assert (answer.status_code, answer.headers[ALLOWED]) == (200, PAGE)
        assert COOKIES not in answer.headers
        assert "origin" in answer.headers["Vary"].lower()


def test_a_page_may_read_errors_too(guest):
    answer = api(key="amb_guest_x").get(of(guest, "chats/"), headers={"Origin": PAGE})
    assert (answer.status_code, answer.headers[ALLOWED]) == (401, PAGE)


def test_other_pages_than_the_assistant_s_are_refused(guest):
    Assistant.objects.update(public_origins=[PAGE])
    for rest in ("", "chats/"):
        assert get(guest, rest, Origin=PAGE).status_code == 200
        refused = get(guest, rest, Origin=OTHER)
        assert error_of(refused) == (403, "forbidden")
        assert refused.headers[ALLOWED] == OTHER, "so that the page's developer can read why"
    answer = api().post(of(guest, "token/"), headers={"Origin": OTHER})
    assert error_of(answer) == (403, "forbidden")


def test_servers_name_no_page(guest):
    Assistant.objects.update(public_origins=[PAGE])
    assert get(guest, "chats/").status_code == 200


def test_members_addresses_are_not_opened_by_it(alice, guest):
    answer = api(alice).get("/api/v1/chats/", headers={"Origin": PAGE})
    assert ALLOWED not in answer.headers


def test_a_trusted_page_signs_in_elsewhere_but_has_no_cookies_here(alice, guest, settings):
    settings.CORS_ALLOWED_ORIGINS = [PAGE]
    member = api(alice).get("/api/v1/chats/", headers={"Origin": PAGE})
    assert member.headers[COOKIES] == "true"
    assert COOKIES not in get(guest, "chats/", Origin=PAGE).headers


def test_origins_are_kept_as_browsers_write_them(alice, guest):
    address = f"/api/v1/assistants/{guest.assistant.pk}/"
    given = ["HTTPS://Shop.example:443/", PAGE, "http://localhost:3000"]
    answer = api(alice).patch(address, {"public_origins": given})
    assert answer.json()["public_origins"] == [PAGE, "http://localhost:3000"]


@pytest.mark.parametrize("origin", ["shop.example", "https://shop.example/path", "*", "null", ""])
def test_what_is_no_origin_is_400(alice, guest, origin):
    address = f"/api/v1/assistants/{guest.assistant.pk}/"
    answer = api(alice).patch(address, {"public_origins": [origin]})
    assert fields_of(answer)[0].startswith("public_origins")
