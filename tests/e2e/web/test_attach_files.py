"""Files in a chat: chosen, pasted, dropped; shown, refused, taken back."""

import io
from typing import Any

import pytest
from PIL import Image

from tests.e2e.kit.browser import expect
from tests.e2e.web.visitor import Visitor, mark

pytestmark = pytest.mark.e2e


def picture() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (60, 40), "orange").save(made, "PNG")
    return made.getvalue()


def file(name: str, kind: str, content: bytes) -> Any:
    return {"name": name, "mimeType": kind, "buffer": content}


def attach(here: Visitor, *files: Any) -> None:
    here.page.locator("input[type=file]").set_input_files(list(files))


def test_pictures_are_shown_and_documents_listed(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    attach(here, file("sun.png", "image/png", picture()), file("notes.txt", "text/plain", b"Hello"))
    here.page.locator(".attachments img").wait_for()
    here.page.locator(".attachments progress").first.wait_for(state="detached")
    here.is_accessible()
    here.ask(f"What is this? {mark(tokens=5)}")
    here.wait_for_end()
    shown = here.questions.first
    here.page.wait_for_function("() => document.querySelector('.picture img')?.naturalWidth === 60")
    assert shown.get_by_role("link", name="notes.txt").get_attribute("download") == "notes.txt"
    here.page.reload()
    here.wait_for_end()
    expect(here.page.locator(".picture img")).to_have_count(1)
    expect(here.questions).to_have_count(1)


def test_fifty_files_go_with_one_question(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    attach(here, *(file(f"{n}.txt", "text/plain", b"Text %d" % n) for n in range(50)))
    here.page.wait_for_function(
        "() => document.querySelectorAll('.attachments li').length === 50"
        " && !document.querySelector('.attachments progress')"
    )
    here.ask(f"All of these. {mark(tokens=4)}")
    here.wait_for_end()
    here.page.reload()
    here.wait_for_end()
    here.page.locator(".timeline").evaluate("(box) => box.scrollTop = 0")
    here.page.wait_for_function("() => document.querySelectorAll('.attachment').length === 50")
    expect(here.questions).to_have_count(1)


def test_a_file_is_pasted_and_dropped(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    for event in ("paste", "drop"):
        here.page.evaluate(
            """(name) => {
              const data = new DataTransfer();
              data.items.add(new File(["Hello"], `${name}.txt`, { type: "text/plain" }));
              const event = name === "paste"
                ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true })
                : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
              document.getElementById("composer").dispatchEvent(event);
            }""",
            event,
        )
        here.page.locator(".attachments").get_by_text(f"{event}.txt").wait_for()
    here.button("Remove paste.txt").click()
    expect(here.page.locator(".attachments li")).to_have_count(1)


def test_a_picture_is_sent_without_words(visit, person):
    here = visit().open()
    here.button("Assistant: Marie").wait_for()
    expect(here.button("Send")).to_be_disabled()
    attach(here, file("sun.png", "image/png", picture()))
    here.page.locator(".attachments img").wait_for()
    here.composer.press("Enter")
    here.wait_for_end()
    here.page.wait_for_function("() => document.querySelector('.picture img')?.naturalWidth === 60")
    expect(here.page.locator(".bubble")).to_have_count(0)
    expect(here.chats.filter(has_text="sun.png")).to_have_count(1)
    here.is_accessible()
    here.page.reload()
    here.wait_for_end()
    expect(here.questions).to_have_count(1)
    expect(here.page.locator(".bubble")).to_have_count(0)
    assert person.stored(here.chat_id, "human") == [""]


def test_a_file_that_is_dropped_beside_the_box_is_attached_too(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    prevented = here.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["Hello"], "beside.txt", { type: "text/plain" }));
          const drop = (name) => {
            const event = new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true });
            document.querySelector(".timeline").dispatchEvent(event);
            return event.defaultPrevented;
          };
          return [drop("dragover"), drop("drop")];
        }"""
    )
    assert prevented == [True, True]
    here.page.locator(".attachments").get_by_text("beside.txt").wait_for()
    expect(here.page.locator(".drop-here")).to_have_count(0)


def test_a_file_that_is_refused_says_why_and_can_be_tried_again(visit, person):
    here = visit()
    here.open_chat(person.new_chat())
    attach(here, file("broken.png", "image/png", picture()[:60]))
    here.page.locator(".attachments .bad").wait_for()
    assert "broken.png could not be attached" in here.page.locator(".attachments .why").inner_text()
    here.is_accessible()
    here.button("Remove broken.png").click()
    here.page.route("**/files/", lambda route: route.abort())
    attach(here, file("later.txt", "text/plain", b"Hello"))
    here.button("Retry uploading later.txt").wait_for()
    here.page.unroute("**/files/")
    here.button("Retry uploading later.txt").click()
    here.page.locator(".attachments .bad").wait_for(state="detached")


def test_files_wait_for_whoever_comes_back_to_the_chat(visit, person, tmp_path):
    one, _ = (person.import_chat(name, "Hi", "Hello") for name in ("Files here", "No files"))
    for number in range(20):
        (tmp_path / f"page-{number}.md").write_text(f"Page {number}.")
    here = visit(viewport={"width": 390, "height": 640})
    here.open_chat(one)
    files = here.page.locator(".composer input[type=file]")
    files.set_input_files(sorted(tmp_path.iterdir()))
    expect(here.page.locator(".attachments li")).to_have_count(20)
    expect(here.page.locator(".attachments progress")).to_have_count(0)
    expect(here.button("Send")).to_be_in_viewport()
    here.is_accessible()
    here.button("Open the sidebar").click()
    here.link("No files").click()
    expect(here.page.locator(".attachments li")).to_have_count(0)
    here.page.go_back()
    expect(here.page.locator(".attachments li")).to_have_count(20)
