"""A conversation, by what a person does in it."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import call, mark, say
from tests.fakes.answers import answer_text
from tools.tests.tool_service import ToolService, function, serving

pytestmark = pytest.mark.e2e


def test_a_first_question_makes_a_chat_and_its_answer_streams(visit):
    here = visit().open()
    here.has_focus("composer")
    here.ask(f"Tell me of rivers {mark(tokens=40, itl=30)}")
    here.wait_for_words()
    assert here.button("Stop").is_visible(), "before the end"
    assert here.focus_id() == "composer"
    here.wait_for_end()
    here.shows_what_is_stored()
    expect(here.chats.filter(has_text="Tell me of rivers")).to_have_count(1)


def test_stop_keeps_what_was_shown(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=200, itl=30)}")
    here.wait_for_words()
    expect(here.answer.locator(".author")).to_have_text("Marie")
    here.button("Stop").click()
    here.wait_for_end()
    here.shows_what_is_stored()
    assert 0 < len(here.shown()[0]) < len(answer_text(200)) / 2
    assert here.focus_id() == "composer"
    here.hears("Stopped.")
    here.sees("This answer was stopped.")
    here.is_accessible()
    here.page.reload()
    here.sees("This answer was stopped.")
    here.ask(f"And now? {mark(tokens=5)}")
    here.wait_for_end(answers=2)
    expect(here.page.get_by_text("This answer was stopped.")).to_have_count(0)


def test_an_answer_that_was_stopped_before_its_first_word_can_be_asked_for_again(visit, person):
    silent = person.assistant("Silent", model="fake-hang-first")
    here = visit()
    here.open_chat(person.new_chat("Silent"))
    here.ask(f"Tell me. {mark(tokens=5)}")
    here.button("Stop").click()
    here.sees("This answer was stopped.")
    person.patch(f"assistants/{silent}/", {"model": "fake-model"})
    here.button("Try again").click()
    here.wait_for_end()
    here.shows_what_is_stored()


def test_an_answer_is_heard_once_when_it_is_complete(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.page.evaluate(
        "() => { window.told = []; new MutationObserver(() => window.told.push("
        "document.getElementById('said').textContent)).observe(document.getElementById('said'),"
        " { childList: true }); }"
    )
    here.ask(f"Tell me. {mark(tokens=20, itl=30)}")
    here.wait_for_end()
    here.page.wait_for_function("() => window.told.some(Boolean)")
    told = [text for text in here.page.evaluate("() => window.told") if text]
    assert told == [f"The answer is complete. {answer_text(20)}"]


def test_editing_makes_a_branch_and_arrows_lead_between_them(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"First wording {mark(tokens=6)}")
    here.wait_for_end()
    here.ask(f"What followed {mark(tokens=7)}")
    here.wait_for_end(2)
    here.questions.first.hover()
    here.questions.first.get_by_role("button", name="Edit").click()
    box = here.page.get_by_role("textbox", name="Edit your message")
    box.fill(f"Second wording {mark(tokens=9)}")
    box.press("Enter")
    here.page.wait_for_function("() => document.querySelectorAll('article.question').length === 1")
    here.wait_for_end()
    assert here.shown() == [answer_text(9).strip()]
    assert here.focus_id() == "composer"
    here.questions.first.get_by_role("button", name="Previous version").click()
    here.page.wait_for_function("() => document.querySelectorAll('.answer').length === 2")
    assert here.shown() == [answer_text(6).strip(), answer_text(7).strip()], "the whole branch"
    here.questions.first.get_by_role("button", name="Next version").click()
    here.page.wait_for_function("() => document.querySelectorAll('.answer').length === 1")
    here.shows_what_is_stored()


def test_escape_leaves_a_question_as_it_was(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Kept", "A question", "An answer"))
    here.questions.first.hover()
    here.questions.first.get_by_role("button", name="Edit").click()
    here.press("Escape")
    here.questions.first.locator(".bubble").wait_for()
    here.page.wait_for_function("() => document.activeElement.ariaLabel === 'Edit'")


def test_answering_again_makes_a_sibling(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=6)}")
    here.wait_for_end()
    here.answer.get_by_role("button", name="Regenerate").dblclick()
    here.answer.get_by_role("group", name="Version 2 of 2").wait_for()
    here.wait_for_end()
    expect(here.page.locator(".note")).to_have_count(0)
    assert here.focus_id() == "composer"
    here.answer.get_by_role("button", name="Previous version").click()
    here.answer.get_by_role("group", name="Version 1 of 2").wait_for()
    here.shows_what_is_stored()


def test_another_version_stands_where_the_one_before_did(visit, person):
    texts = [
        text for n in range(20) for text in (f"Question {n}?", f"Answer {n}. " + "Much. " * 90)
    ]
    here = visit()
    here.open_chat(person.import_chat("Versions", *texts))
    first = here.questions.filter(has_text="Question 15?")
    first.hover()
    first.get_by_role("button", name="Edit").click()
    here.page.get_by_label("Edit your message").fill(f"Otherwise? {mark(tokens=300)}")
    here.button("Send as a new version").click()
    second = here.questions.filter(has_text="Otherwise?")
    second.wait_for()
    here.wait_for_end()
    for name, left, shown in (("Previous", second, first), ("Next", first, second)):
        left.get_by_role("button", name=f"{name} version").focus()
        top = left.bounding_box()["y"]
        here.press("Enter")
        expect(shown.locator(".siblings :enabled")).to_be_focused()
        assert shown.bounding_box()["y"] == pytest.approx(top, abs=3)


def test_of_a_long_question_the_beginning_is_shown_until_all_of_it_is_wanted(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Log", "A line of a log.\n" * 300, "I see."))
    bubble = here.questions.locator(".bubble")
    assert bubble.bounding_box()["height"] < 400
    here.is_accessible()
    here.button("Show more").click()
    assert bubble.bounding_box()["height"] > 4_000
    here.button("Show less").click()
    assert bubble.bounding_box()["height"] < 400


def test_the_way_back_to_the_end_goes_once_it_was_taken(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Far", *(f"Number {n}. " + "Much. " * 60 for n in range(30))))
    here.page.locator(".timeline").evaluate("(box) => box.scrollTop -= 900")
    here.button("Jump to the latest message").press("Enter")
    here.button("Jump to the latest message").wait_for(state="detached")
    assert here.focus() == "Conversation"


def test_what_a_browser_forbids_to_copy_is_copied_otherwise_or_told(visit, person):
    here = visit()
    here.open_chat(person.import_chat("Copied", "Hi?", "Hello."))
    here.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new DOMException('no')); }"
    )
    here.answer.get_by_role("button", name="Copy text").press("Enter")
    here.sees("Copied")
    assert here.page.evaluate("() => navigator.clipboard.readText()") == "Hello."
    assert here.focus() == "Copy text"
    here.page.evaluate("() => { document.execCommand = () => false; }")
    here.answer.get_by_role("button", name="Copy text").press("Enter")
    here.sees("This browser does not allow copying.")


def test_an_answer_that_is_made_again_survives_a_reload(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=40, itl=30)}")
    here.wait_for_end()
    here.answer.get_by_role("button", name="Regenerate").click()
    here.wait_for_words()
    here.page.reload()
    here.answer.get_by_role("group", name="Version 2 of 2").wait_for()
    here.wait_for_end()
    here.shows_what_is_stored()


def test_another_assistant_is_asked_with_an_at(visit, person):
    person.assistant("Boris the bear")
    here = visit()
    here.open_chat(person.new_chat())
    here.composer.press_sequentially("@bor")
    here.page.get_by_role("option", name="Boris the bear").wait_for()
    here.is_accessible()
    here.press("Enter")
    here.sees("Asks Boris the bear")
    here.ask(f"Hello {mark(tokens=5)}")
    here.wait_for_end()
    expect(here.answer).to_contain_text("Boris the bear")
    here.ask(f"And you? {mark(tokens=5)}")
    here.wait_for_end(2)
    expect(here.answer).to_contain_text("Marie")


def test_a_tools_call_is_a_card_with_arguments_result_and_time(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Work it out. {call('calculate', {'expression': '6 * 7'}, tokens=6)}")
    here.wait_for_end()
    card = here.page.locator(".tool")
    expect(card).to_contain_text(re.compile(r"calculate\s+\d+"), use_inner_text=True)
    expect(card, "folded").not_to_contain_text("6 * 7", use_inner_text=True)
    card.locator("summary").click()
    here.sees('"expression": "6 * 7"')
    expect(card.locator(".result")).to_have_text("42")
    here.is_accessible()
    here.page.reload()
    here.wait_for_end()
    expect(here.page.locator(".tool")).to_have_count(1)


@pytest.fixture
def service() -> Iterator[ToolService]:
    with serving() as tool:
        tool.functions = [function("send", requires_approval=True)]
        tool.reply = lambda body: {"content": f"{body['function']} done"}
        yield tool


@pytest.mark.parametrize("choice", ["Allow", "Decline"])
def test_a_call_waits_for_permission(visit, person, service, choice):
    made = person.post("tools/", {"kind": "discovery", "discovery_url": service.url})
    assistant = person.post("assistants/", {"name": "Careful", "model": "fake-model"})
    person.post(f"assistants/{assistant['id']}/tools/", {"tool_id": made["id"]})
    chat = person.post("chats/", {"assistant_id": assistant["id"]})
    here = visit()
    here.open_chat(chat["id"])
    here.ask(f"Do it. {call('send', {}, tokens=4)}")
    here.sees("The assistant wants to call send.")
    here.page.wait_for_function(
        "() => document.getElementById('said').textContent.includes('permission')"
    )
    here.is_accessible()
    here.page.reload()
    here.sees("The assistant wants to call send.")
    here.button(choice).focus()
    here.press("Enter")
    here.wait_for_end()
    assert here.focus_id() == "composer"
    here.page.locator(".tool summary").click()
    said = here.page.locator(".tool .result").inner_text()
    assert ("send done" in said) == (choice == "Allow")


def test_citations_open_the_passage_with_its_words_marked(visit, person):
    library = person.post("libraries/", {"name": "Manuals", "embedding_model": "fake-embedding"})
    about = f"libraries/{library['id']}/documents/"
    for number in range(5):
        person.post(
            about, {"name": f"{number}.md", "text": f"A garden of {number} roses and herbs."}
        )
    text = "The pump is bled by opening the valve on its left side.\n\nPainting comes later."
    document = person.post(about, {"name": "pump.md", "text": text})
    person.platform.wait_for(
        lambda: person.get(f"documents/{document['id']}/")["status"] == "ready", "the document"
    )
    told = say("By the left valve [1], not [77].")
    named = {"name": "Librarian", "model": "fake-model", "library_id": library["id"]}
    assistant = person.post("assistants/", named | {"prompt": told})
    chat = person.post("chats/", {"assistant_id": assistant["id"]})
    here = visit()
    here.open_chat(chat["id"])
    here.ask("How is the pump bled?")
    here.wait_for_end()
    cite = here.answer.get_by_role("button", name="Source 1: pump.md")
    expect(here.answer, "no source has this number").to_contain_text("[77]")
    cite.click()
    here.dialog.get_by_role("heading", name="Source 1").wait_for()
    here.dialog.locator("mark").wait_for()
    assert here.dialog.locator("mark").inner_text().strip() in text
    here.is_accessible()
    here.press("Escape")
    here.dialog.wait_for(state="detached")
    assert here.focus() == "Source 1: pump.md"
    here.answer.locator(".sources summary").click()
    here.answer.get_by_role("button", name="pump.md", exact=True).click()
    here.dialog.locator("mark").wait_for()


@pytest.mark.parametrize("model", ["fake-500", "fake-401", "fake-cut-mid", "fake-hang-mid"])
def test_a_failure_is_told_in_plain_words_with_try_again(visit, person, model):
    assistant = person.assistant(model, model=model)
    chat = person.post("chats/", {"assistant_id": assistant})
    here = visit()
    here.open_chat(chat["id"])
    here.ask("Tell me.")
    here.page.locator(".failure.turn").wait_for()
    words = here.page.locator(".failure.turn p").inner_text()
    assert words.endswith(".")
    assert "Error" not in words
    here.is_accessible()
    here.page.reload()
    here.page.locator(".failure.turn").wait_for()
    person.patch(f"assistants/{assistant}/", {"model": "fake-model"})
    here.button("Try again").click()
    here.reads(answer_text(64))
    expect(here.page.locator(".failure.turn")).to_have_count(0)


def test_why_this_answer_shows_what_went_in(visit, person):
    here = visit()
    here.open_chat(
        person.new_chat(
            "Careful Clara" if person.assistant("Careful Clara", prompt="Be very careful.") else ""
        )
    )
    here.ask(f"Why? {mark(tokens=5)}")
    here.wait_for_end()
    here.answer.get_by_role("button", name="Why this answer?").click()
    here.dialog.get_by_text("fake-model").first.wait_for()
    here.dialog.locator("summary", has_text="Prompt").click()
    here.sees("Be very careful.")
    here.dialog.locator("summary", has_text="Available tools").click()
    here.dialog.get_by_text("calculate").wait_for()
    here.dialog.get_by_role("button", name="Show the request").click()
    here.dialog.get_by_role("heading", name="You", exact=True).wait_for()
    here.is_accessible()
    here.press("Escape")
    assert here.focus() == "Why this answer?"


WHY = {
    "en": (
        ("Why this answer?", "Left out"),
        ["Messages from this chat", "Prompt", "Tools"],
        "Contains text from outside sources: files",
        "Most of a long file: only its beginning",
    ),
    "de": (
        ("Warum diese Antwort?", "Weggelassen"),
        ["Nachrichten aus diesem Chat", "Prompt", "Werkzeuge"],
        "Enthält Text aus fremden Quellen: Dateien",
        "Der größte Teil einer langen Datei: Verwendet wurden",
    ),
    "zh": (
        ("为何这样回答", "未提供的内容"),
        ["工具", "提示词", "此对话的消息"],
        "其中包含外部文本：文件",
        "1 个长文件的大部分内容",
    ),
}


@pytest.mark.parametrize("language", WHY)
def test_why_this_answer_names_its_parts_in_plain_words(visit, person, language):
    person.assistant("Worded Will", prompt="Be very careful.")
    chat_id = person.new_chat("Worded Will")
    form = {"file": ("long.txt", "Resin drips. " * 90_000, "text/plain")}
    token = {"X-CSRFToken": person.http.cookies["csrftoken"]}
    stored = person.http.post("/api/v1/files/", files=form, headers=token).json()
    body = {"content": mark(tokens=5), "file_ids": [stored["id"]]}
    person.post(f"chats/{chat_id}/messages/", body)
    (button, left_out), parts, untrusted, reason = WHY[language]
    here = visit(locale=language)
    here.open_chat(chat_id)
    here.page.locator(".answer:not(.live)").get_by_role("button", name=button).click()
    shown = here.dialog.locator("table th[scope=row]")
    expect(shown.first).to_be_visible()
    assert sorted(shown.all_inner_texts()) == parts
    expect(here.dialog.get_by_text(untrusted)).to_be_visible()
    here.dialog.locator("summary", has_text=left_out).click()
    expect(here.dialog.get_by_text(reason)).to_be_visible()


def test_thumbs_are_kept_with_a_reason(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=5)}")
    here.wait_for_end()
    here.button("Bad answer").click()
    here.dialog.get_by_label("Wrong", exact=True).check()
    here.dialog.get_by_label("Comment").fill("It is not so.")
    here.is_accessible()
    here.dialog.get_by_role("button", name="Send").click()
    here.dialog.wait_for(state="detached")
    here.page.reload()
    here.wait_for_end()
    assert here.button("Bad answer").get_attribute("aria-pressed") == "true"
    (message,) = [
        each
        for each in person.get(f"chats/{here.chat_id}/messages/")["results"]
        if each["role"] == "assistant"
    ]
    assert (message["feedback"]["reason"], message["feedback"]["comment"]) == (
        "wrong",
        "It is not so.",
    )
    here.button("Bad answer").click()
    here.page.locator("[aria-pressed=true]").wait_for(state="detached")
