"""An operator at the admin of a platform whose tables hold rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kit.axe import AXE
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import new_account, signed_in
from tests.e2e.web.conftest import cookies_of
from tests.e2e.web.visitor import Person, Visitor, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def operator(running_platform: Platform) -> Iterator[Person]:
    """Somebody who asked about a document, and whose tables hold a row each."""
    running_platform.restore()
    email = new_account(running_platform, "olive")
    running_platform.command("-m", "tests.e2e.admin.world", email)
    with signed_in(running_platform, email) as http:
        person = Person(running_platform, email, http)
        _ask_about_a_document(running_platform, person)
        yield person


@pytest.fixture(scope="module")
def desk(browser: "Browser", operator: Person) -> Iterator[Visitor]:
    """The operator's window. At the end it was refused nothing, and asked nobody else."""
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 800})
    context.add_cookies(cookies_of(operator))
    window = Visitor(operator, new_page(context))
    window.page.set_default_navigation_timeout(60_000)
    if AXE.exists():
        window.page.add_init_script(path=AXE)
    yield window
    context.close()
    assert not window.said
    assert not window.asked


def _ask_about_a_document(platform: Platform, person: Person) -> None:
    """Leave behind what only happens: chunks, a chat, a turn with its manifest, calls, a thumb."""
    fields = {"name": "Pump station", "embedding_model": "fake-embedding"}
    library = person.post("libraries/", fields)["id"]
    text = "The relief valve opens at 12 bar. Turn it to the left to close it."
    document = person.post(f"libraries/{library}/documents/", {"name": "valve.txt", "text": text})
    at = f"documents/{document['id']}/"
    platform.wait_for(lambda: person.get(at)["status"] == "ready", "a document")
    person.assistant("Engineer of the pump station", library_id=library)
    chat = person.new_chat("Engineer of the pump station")
    asked = {"role": "human", "content": "At how many bar does the relief valve open?"}
    turn = person.post(f"chats/{chat}/messages/", asked)["turn"]["id"]
    ended = ("completed", "failed", "incomplete")
    platform.wait_for(lambda: person.get(f"turns/{turn}/")["status"] in ended, "an answer")
    answer = person.get(f"chats/{chat}/messages/?limit=200")["results"][-1]["id"]
    person.put(f"messages/{answer}/feedback/", {"value": "down", "comment": "Too short."})
