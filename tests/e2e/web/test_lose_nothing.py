"""Answers are neither lost nor mixed up: by reloads, closed windows, second tabs, lost networks, switches
of chats, killed processes, ended sessions. What is shown in the end is what is stored."""

import random
import re
from typing import Any

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.kit.sessions import PASSWORD, SESSION, new_account, signed_in
from tests.e2e.web.visitor import Person, mark
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

LONG = f"Tell me. {mark(tokens=40, itl=20)}"
"""0.8 seconds of text."""
MOMENTS_MS = [int(800 * random.Random(11).random()) for _ in range(10)]
BREAKS = ("reload", "close", "offline", "switch", "tab")


@pytest.mark.parametrize("how", BREAKS)
def test_an_answer_survives_at_random_moments(visit, person, how):
    here = visit()
    for number, moment_ms in enumerate(MOMENTS_MS, start=1):
        chat_id = person.new_chat()
        here.open_chat(chat_id)
        here.ask(LONG)
        here.questions.first.wait_for()
        here.page.wait_for_timeout(moment_ms)
        if how == "reload":
            here.page.reload()
        elif how == "close":
            here.page.close()
            here = visit(beside=here)
            here.open_chat(chat_id)
        elif how == "offline":
            here.context.set_offline(True)
            here.page.wait_for_timeout(300)
            here.sees("You are offline.")
            here.context.set_offline(False)
        elif how == "switch":
            here.link("New chat").first.click()  # not the chat, which has no other name yet
            here.sees("What would you like to know?")
            here.page.go_back()
        else:
            other = visit(beside=here)
            other.open_chat(chat_id)
            other.wait_for_end()
            other.shows_what_is_stored()
            other.page.close()
        here.wait_for_end()
        here.shows_what_is_stored()
        assert here.shown() == [answer_text(40).strip()], number
        expect(here.questions).to_have_count(1)


def test_two_chats_that_are_answered_at_once_are_not_mixed_up(visit, person):
    here = visit()
    first, second = person.new_chat(name="First"), person.new_chat(name="Second")
    here.open_chat(first)
    here.ask(f"One {mark(tokens=40, itl=40)}")
    here.wait_for_words()
    here.link("Second").click()
    here.ask(f"Two {mark(tokens=22, itl=40)}")
    here.wait_for_words()
    here.link("First").click()
    here.wait_for_end()
    assert here.shown() == [answer_text(40).strip()]
    here.link("Second").click()
    here.wait_for_end()
    assert here.shown() == [answer_text(22).strip()]
    for chat_id, tokens in ((first, 40), (second, 22)):
        assert [text.strip() for text in person.stored(chat_id)] == [answer_text(tokens).strip()]


def test_the_network_goes_before_a_question_is_sent(visit):
    here = visit().open()
    here.button("Assistant: Marie").wait_for()
    here.context.set_offline(True)
    here.sees("You are offline.")
    question = f"Still there? {mark(tokens=5)}"
    here.ask(question)
    here.sees("Could not connect.")
    here.wait_for_draft(question)
    here.context.set_offline(False)
    here.composer.press("Enter")
    here.wait_for_end()
    here.shows_what_is_stored()


def test_a_question_that_could_not_be_sent_is_sent_by_trying_again_once(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.page.route("**/messages/", lambda route: route.abort())
    here.ask(f"Once. {mark(tokens=5)}")
    here.sees("Could not connect.")
    here.page.unroute("**/messages/")
    here.button("Try again").click()
    here.wait_for_end()
    assert len(person.stored(here.chat_id, "human")) == 1


def test_what_tells_that_one_is_offline_covers_nothing(visit):
    here = visit().open()
    here.composer.wait_for()
    here.context.set_offline(True)
    banner = here.sees("You are offline.").bounding_box()
    brand = here.page.locator(".brand").bounding_box()
    assert banner is not None
    assert brand is not None
    assert banner["y"] + banner["height"] <= brand["y"]
    assert here.page.evaluate(
        "document.querySelector('.frame').getBoundingClientRect().bottom <= innerHeight"
    )
    here.is_accessible()


def test_an_answer_to_what_was_asked_before_the_network_went_tells_nothing_of_now(visit, person):
    person.new_chat(name="Late chat", pinned=True)
    held: list[Any] = []
    asked_before: list[Any] = []
    here = visit()

    def hold(route):
        """Until the network goes; what is asked for after that finds none."""
        if asked_before:
            route.abort("internetdisconnected")
        else:
            held.append(route)

    here.page.route(re.compile("pinned=true"), hold)
    with here.page.expect_request(re.compile("pinned=true")):
        here.open()
    here.composer.wait_for()
    asked_before += held
    here.context.set_offline(True)
    banner = here.sees("You are offline.").element_handle()
    for route in asked_before:
        route.fulfill(json=person.get("chats/?limit=200&pinned=true"))
    here.sees("Late chat")
    assert banner.is_visible()


def test_a_list_that_was_asked_for_before_a_chat_was_made_does_not_hide_it(visit, person):
    held: list[Any] = []
    stale = person.get("chats/?limit=50&order=activity&archived=false")
    here = visit().open()
    here.button("Assistant: Marie").wait_for()
    here.page.wait_for_timeout(1_000)  # what is read at the start is there
    here.page.route(
        re.compile("order=activity"),
        lambda route: route.continue_() if held else held.append(route),
    )
    with here.page.expect_request(re.compile("order=activity")):
        here.context.set_offline(True)
        here.context.set_offline(False)
    here.ask(f"Raced {mark(tokens=5)}")
    made = here.chats.filter(has_text="Raced")
    made.wait_for()
    here.wait_for_end()
    gone = here.page.evaluate_handle(
        """() => { const seen = { isGone: false }; const look = () =>
          (seen.isGone ||= !document.querySelector(".chats").innerText.includes("Raced"));
          new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
          return seen; }"""
    )
    with here.page.expect_response(re.compile("order=activity")):
        held[0].fulfill(json=stale)
    here.page.wait_for_timeout(300)
    assert not gone.evaluate("(seen) => seen.isGone")


@pytest.mark.parametrize("is_reloaded", [False, True], ids=["online again", "reloaded"])
def test_a_question_that_found_no_network_is_sent_by_itself(visit, person, is_reloaded):
    here = visit()
    here.open_chat(person.new_chat())
    here.page.route("**/messages/", lambda route: route.abort())
    here.ask(f"By itself. {mark(tokens=5)}")
    here.sees("Could not connect.")
    here.page.unroute("**/messages/")
    if is_reloaded:
        here.page.reload()
    else:
        here.context.set_offline(True)
        here.context.set_offline(False)
    here.wait_for_end()
    assert len(person.stored(here.chat_id, "human")) == 1
    here.shows_what_is_stored()


def test_a_question_whose_answer_was_lost_is_not_asked_twice_after_a_reload(visit, person):
    here = visit()
    here.open_chat(person.new_chat())

    def swallow(route):
        """The server takes it, but the browser never hears so."""
        if route.request.method == "POST":
            route.fetch()
        else:
            route.continue_()

    here.page.route("**/messages/", swallow)
    here.ask(f"Once only. {mark(tokens=8)}")
    here.questions.first.wait_for()
    here.page.wait_for_timeout(500)
    here.page.unroute("**/messages/")
    here.page.reload()
    here.wait_for_end()
    assert len(person.stored(here.chat_id, "human")) == 1
    here.shows_what_is_stored()


def test_a_draft_is_kept_for_each_chat(visit, person):
    here = visit()
    first, second = person.new_chat(name="Draft one"), person.new_chat(name="Draft two")
    here.open_chat(first)
    here.composer.fill("half a thought")
    here.link("Draft two").click()
    here.wait_for_draft("")
    here.composer.fill("another")
    here.page.reload()
    here.wait_for_draft("another")
    here.link("Draft one").click()
    here.wait_for_draft("half a thought")
    assert second in here.page.evaluate("JSON.stringify(localStorage)")


def test_a_killed_worker_only_delays_the_answer(visit, person, quick_platform):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=60, itl=50)}")
    here.wait_for_words()
    quick_platform.chat_worker.kill()
    quick_platform.start_member("chat", AMBER_LEASE_SECONDS="2", AMBER_SWEEP_SECONDS="0.5")
    here.wait_for_end()
    here.shows_what_is_stored()
    assert here.shown() == [answer_text(60).strip()]


def test_a_killed_web_process_is_waited_for(visit, person, platform):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=60, itl=50)}")
    here.wait_for_words()
    platform.web.kill()
    platform.restore()
    here.wait_for_end()
    here.shows_what_is_stored()


def test_a_session_that_ended_is_begun_again_on_the_spot(visit, person, platform):
    email = new_account(platform, "sam")
    with signed_in(platform, email) as http:
        sam = Person(platform, email, http)
        here = visit(who=sam)
        here.open_chat(sam.new_chat())
        here.ask(f"Before. {mark(tokens=5)}")
        here.wait_for_end()
        here.composer.fill(f"After. {mark(tokens=6)}")
        send_away(sam)
        here.composer.press("Enter")
        here.dialog.get_by_text("Your session has expired").wait_for()
        here.is_accessible()
        here.dialog.get_by_label("Password").fill(PASSWORD)
        here.dialog.get_by_label("Password").press("Enter")
        here.dialog.wait_for(state="hidden")
        here.page.wait_for_timeout(1_000)
        if (
            here.composer.input_value()
        ):  # word of the end came before the question was sent: it is still there
            here.composer.press("Enter")
        here.wait_for_end(2)
        assert here.shown()[-1] == answer_text(6).strip()


def send_away(person: Person) -> None:
    """End the session, which the browser and this person's requests have in common."""
    token = {"X-CSRFToken": person.http.cookies["csrftoken"]}
    assert person.http.delete(SESSION, headers=token).status_code == 401


def test_a_second_tab_sees_chats_renames_and_answers_by_itself(visit, person):
    here = visit().open()
    there = visit().open()  # of another browser, on another device
    there.composer.wait_for()
    there.page.wait_for_timeout(500)
    here.ask(f"News for both {mark(tokens=30, itl=30)}")
    chat_id = here.chat_id
    there.chats.filter(has_text="News for both").click()
    there.wait_for_end()
    assert there.shown() == [answer_text(30).strip()]
    person.patch(f"chats/{chat_id}/", {"name": "Renamed elsewhere"})
    here.chats.filter(has_text="Renamed elsewhere").wait_for()
    there.ask(f"And back {mark(tokens=12)}")
    there.wait_for_end(2)
    here.page.wait_for_function(
        "() => document.querySelectorAll('.answer:not(.live)').length === 2"
    )
    here.shows_what_is_stored()
    there.menu_of_chat("Renamed elsewhere")
    there.select("Delete")
    there.button("Delete").click()
    here.chats.filter(has_text="Renamed elsewhere").wait_for(state="detached")


def test_what_was_changed_of_an_assistant_is_there_again_until_it_is_saved_or_discarded(
    visit, person
):
    made = person.assistant("Changed")
    here = visit().open(f"/assistants/{made}")
    prompt = here.page.get_by_label("Prompt", exact=True)
    prompt.fill("Be brief.")
    here.link("New chat").first.click()
    here.composer.wait_for()
    here.page.go_back()
    expect(prompt).to_have_value("Be brief.")
    here.sees("Unsaved changes")
    here.button("Discard changes").click()
    expect(prompt).to_have_value("")
    prompt.fill("Be long.")
    here.button("Save").click()
    here.sees("Saved.")
    here.page.reload()
    expect(prompt).to_have_value("Be long.")
    expect(here.page.get_by_text("Unsaved changes")).to_have_count(0)


def test_a_draft_that_the_browser_cannot_keep_survives_another_chat(visit, person):
    one, _ = (person.import_chat(name, "Hi", "Hello") for name in ("One of two", "Two of two"))
    here = visit()
    here.open_chat(one)
    here.page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    here.composer.fill("Not sent")
    here.link("Two of two").click()
    here.wait_for_draft("")
    here.link("One of two").click()
    here.wait_for_draft("Not sent")
