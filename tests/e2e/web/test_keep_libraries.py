"""Libraries, by what a person does in them: make one, fill it, find in it, see what went wrong."""

import re
from pathlib import Path

import pytest

from amber.processes import wait_until
from tests.e2e.kit.browser import expect

pytestmark = pytest.mark.e2e

PUMP = "# Bleeding\n\nOpen the brass valve by half a turn until water comes without bubbles.\n"
SMALL = {"width": 390, "height": 800}


@pytest.fixture
def library(person):
    return person.post("libraries/", {"name": "Manuals"})["id"]


def ready(person, library, count):
    """Wait until so many documents are ready."""
    at = f"libraries/{library}/"
    assert wait_until(lambda: person.get(at)["documents"]["ready"] == count, timeout_seconds=60)


def test_somebody_makes_a_library_and_adds_a_text(visit, person):
    here = visit().open("/libraries")
    here.sees("Documents that assistants search and cite")
    here.is_accessible()
    here.button("New library").click()
    expect(here.dialog.get_by_label("Name")).to_be_focused()
    here.page.keyboard.type("House rules")
    here.is_accessible()
    here.button("Create").dblclick()
    here.page.get_by_role("heading", name="House rules").wait_for()
    here.sees("No documents here yet.")
    here.is_accessible()
    here.button("Text").click()
    here.dialog.get_by_label("Name").fill("Quiet hours")
    here.dialog.get_by_label("Content").fill("The house is quiet from ten in the evening.")
    here.is_accessible()
    here.button("Add").click()
    row = here.page.locator(".list-row", has_text="Quiet hours")
    row.locator(".state.ready").wait_for()
    named = [each for each in person.get("libraries/")["results"] if each["name"] == "House rules"]
    assert len(named) == 1


def test_an_empty_file_is_called_so(visit, library, tmp_path):
    (tmp_path / "nothing.md").touch()
    here = visit().open(f"/libraries/{library}")
    files = here.page.locator("input[type=file]:not([webkitdirectory])")
    files.set_input_files([tmp_path / "nothing.md"])
    expect(here.page.locator(".list-row .error")).to_have_text("The file is empty.")


def test_fifty_files_are_uploaded_and_followed_to_their_end(visit, person, library, tmp_path):
    for number in range(50):
        (tmp_path / f"page-{number}.md").write_text(
            f"# Page {number}\n\nPump {number} wants oil.\n"
        )
    here = visit().open(f"/libraries/{library}")
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    here.page.locator("input[type=file]:not([webkitdirectory])").set_input_files(files)
    here.page.get_by_text("50 of 50 uploaded").wait_for(timeout=60_000)
    here.page.wait_for_function(
        "() => document.querySelectorAll('.list-row .state.ready').length >= 50", timeout=90_000
    )
    assert person.get(f"libraries/{library}/")["documents"]["ready"] == 50
    here.is_accessible()


def test_a_folder_keeps_its_paths(visit, person, library, tmp_path):
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.md").write_text("One.")
    (folder / "deep" / "two.md").write_text("Two.")
    here = visit().open(f"/libraries/{library}")
    here.page.locator("input[webkitdirectory]").set_input_files(str(folder))
    here.sees("2 of 2 uploaded")
    paths = {each["path"] for each in person.get(f"libraries/{library}/documents/")["results"]}
    assert paths == {"docs/one.md", "docs/deep/two.md"}


def test_what_cannot_be_read_says_why_and_can_be_tried_again(visit, person, library, tmp_path):
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing more")
    here = visit().open(f"/libraries/{library}")
    here.page.locator("input[type=file]:not([webkitdirectory])").set_input_files(str(broken))
    row = here.page.locator(".list-row.failed", has_text="broken.pdf")
    row.locator(".error").wait_for()
    here.is_accessible()
    here.button("Try again: broken.pdf").click()
    here.sees("Trying again.")
    row.locator(".error").wait_for()
    here.page.get_by_label("Show").select_option("ready")
    here.sees("No documents here yet.")


def test_a_refused_file_is_named_and_stays_to_be_sent_again(visit, person, library, tmp_path):
    picture = Path(tmp_path / "picture.png")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    here = visit().open(f"/libraries/{library}")
    here.page.locator("input[type=file]:not([webkitdirectory])").set_input_files(str(picture))
    failed = here.page.locator(".sent .list-row", has_text="picture.png")
    assert failed.locator(".error").inner_text()
    here.button("Try again: picture.png").focus()
    here.press("Enter")
    failed.locator(".error").wait_for()


def test_a_search_says_why_each_passage_is_where_it_is(visit, person, library):
    person.post(f"libraries/{library}/documents/", {"name": "pump.md", "text": PUMP})
    ready(person, library, 1)
    here = visit().open(f"/libraries/{library}")
    here.page.get_by_label("Question or keywords").fill("brass valve")
    here.press("Enter")
    found = here.page.locator(".found").first
    expect(found.locator("blockquote")).to_contain_text("Open the brass valve")
    expect(found.locator("mark")).to_have_text(["brass", "valve"])
    expect(found).to_contain_text(re.compile(r"no\. \d+ by words"))
    expect(found).to_contain_text(re.compile(r"relevance \d"))
    here.hears("1 passage found")
    here.is_accessible()
    found.get_by_role("link", name="pump.md").click()
    here.page.get_by_role("heading", name="pump.md").wait_for()
    here.sees("Chunk 1")
    here.button("Show text").click()
    expect(here.page.locator(".document-text")).to_contain_text(PUMP.strip())
    here.is_accessible()


def test_a_found_passage_is_plain_text(visit, person, library):
    text = "## Sump\n\n| Part | **Size** |\n|---|---|\n| `gasket` | *wide* |\n"
    person.post(f"libraries/{library}/documents/", {"name": "sump.md", "text": text})
    ready(person, library, 1)
    here = visit().open(f"/libraries/{library}")
    here.page.get_by_label("Question or keywords").fill("gasket")
    here.press("Enter")
    found = here.page.locator(".found").first.locator("blockquote")
    expect(found.locator("mark")).to_have_text("gasket")
    assert not set(found.inner_text()) & set("#*`|")
    expect(found).to_contain_text("gasket · wide")


@pytest.mark.parametrize(
    ("question", "text", "marks"),
    [
        ("How is the pump bled?", "The PUMPS are bled; a pumpkin is not.", ["PUMPS", "bled"]),
        ("storing batteries", "Store each battery dry.", ["Store", "battery"]),
        ("水泵如何放气", "水泵放气：打开阀门。如何关闭？", ["水泵放气"]),
        ("ポンプの弁", "弁とポンプです。", ["ポンプ"]),
        ("<b>P1</b>", "<b>P1</b> & P2", ["P1"]),
        ("Who are you?", "You are who you are.", []),
    ],
)
def test_the_words_of_a_question_are_marked(visit, question, text, marks):
    here = visit().open("/libraries")
    found = here.page.evaluate(
        """async ({ question, text }) => {
            const [{ Marked, questionWords }, { html }, { render }] = await Promise.all(
                ["/static/web/components/marked.js", "/static/web/app/html.js", "preact"].map((each) => import(each)));
            const shown = document.createElement("div");
            render(html`<${Marked} text=${text} words=${questionWords(question)} />`, shown);
            return { text: shown.textContent, marks: [...shown.querySelectorAll("mark")].map((each) => each.textContent) };
        }""",
        {"question": question, "text": text},
    )
    assert found == {"text": text, "marks": marks}


def test_a_document_and_its_library_are_deleted_by_keyboard(visit, person, library):
    person.post(f"libraries/{library}/documents/", {"name": "pump.md", "text": PUMP})
    here = visit(viewport=SMALL).open(f"/libraries/{library}")
    here.button("Actions for pump.md").focus()
    for key in ("Enter", "End", "Enter"):
        here.press(key)
    here.dialog.get_by_role("button", name="Delete").focus()
    here.press("Enter")
    here.sees("No documents here yet.")
    here.is_accessible()
    here.button("Actions for the library Manuals").focus()
    for key in ("Enter", "End", "Enter"):
        here.press(key)
    here.dialog.get_by_role("button", name="Delete").focus()
    here.press("Enter")
    here.page.wait_for_url("**/libraries")
    assert library not in [each["id"] for each in person.get("libraries/")["results"]]


def test_an_address_that_leads_nowhere_is_told_in_the_form(visit, person, library):
    here = visit().open(f"/libraries/{library}")
    here.button("Web address").click()
    here.dialog.get_by_label("Address").fill("http://192.168.0.1/secret")
    here.button("Add").click()
    here.dialog.get_by_role("alert").or_(here.dialog.locator(".error")).first.wait_for()
    here.is_accessible()
    here.press("Escape")
    assert here.focus() == "Web address"


def test_hostile_names_and_texts_are_only_text(visit, person):
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    library = person.post("libraries/", {"name": hostile, "description": hostile})["id"]
    given = {"name": f"{hostile}.md", "text": f"{hostile} brass"}
    document = person.post(f"libraries/{library}/documents/", given)["id"]
    ready(person, library, 1)
    here = visit()
    for path in (
        "/libraries",
        f"/libraries/{library}",
        f"/libraries/{library}/documents/{document}",
    ):
        here.open(path).sees(hostile)
        expect(here.page.locator("main img, main script")).to_have_count(0)
