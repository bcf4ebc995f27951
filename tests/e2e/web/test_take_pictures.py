"""The pictures of docs: `make web-pictures` takes them anew, on a wide window, in light and in dark."""

import os
from pathlib import Path

import pytest

from tests.e2e.web.visitor import call, say

FOLDER = os.environ.get("WEB_PICTURES", "")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not FOLDER, reason="WEB_PICTURES names no folder"),
]

ANSWER = """Yes. Each pump holds **0.75 litres** when it is bled through its left valve [1], so your six need about
**4.5 litres**, and a little more for the pipes.

| Pump | Valve | Litres |
|---|---|---:|
| P1 to P4 | left | 3.0 |
| P5, P6 | left, long | 1.5 |

Close the main valve first, and open it slowly afterwards [2]."""
PUMP = (
    "To bleed a pump, open the valve on its left side until water comes without bubbles. "
    "Each pump holds 0.75 litres of coolant."
)
MAIN = "Before bleeding pumps close the main valve. Open it slowly afterwards, or the pumps draw air again."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chat_with_a_tool_and_sources(visit, person, scheme):
    person.patch("me/", {"name": "Paula Reyes"})
    library = person.post("libraries/", {"name": "Manuals", "embedding_model": "fake-embedding"})
    about = f"libraries/{library['id']}/documents/"
    for number in range(6):
        person.post(
            about, {"name": f"{number}.md", "text": f"A garden of {number} roses and herbs."}
        )
    made = [
        person.post(about, {"name": name, "text": text})["id"]
        for name, text in (("pumps.md", PUMP), ("main-valve.md", MAIN))
    ]
    for each in made:
        person.platform.wait_for(
            lambda each=each: person.get(f"documents/{each}/")["status"] == "ready", "a document"
        )
    order = call("calculate", {"expression": "6 * 0.75"}).replace("]]", "") + say(ANSWER)[6:]
    assistant = person.post(
        "assistants/",
        {"name": "Workshop", "model": "fake-model", "library_id": library["id"], "prompt": order},
    )
    for name in (
        "Invoice for the spring order",
        "Names for a sailing boat",
        "Why is resin sticky?",
    ):
        person.import_chat(name, name, "…")
    chat = person.post("chats/", {"assistant_id": assistant["id"], "name": "Bleeding the pumps"})
    here = visit(
        color_scheme=scheme, viewport={"width": 1280, "height": 960}, device_scale_factor=1.5
    )
    here.open_chat(chat["id"])
    here.ask(
        "Is a can of five litres of coolant enough to bleed all six pumps? Must the main valve be closed?"
    )
    here.wait_for_end()
    here.page.locator(".tool summary").click()
    here.page.mouse.move(0, 0)
    here.page.wait_for_timeout(400)
    here.page.screenshot(path=Path(FOLDER) / f"page-chat-{scheme}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["libraries", "usage"])
def test_a_page(visit, person, scheme, name):
    here = visit(
        color_scheme=scheme, viewport={"width": 1280, "height": 860}, device_scale_factor=1.5
    )
    path = f"/{name}"
    if name == "libraries":
        path += "/" + person.get("libraries/")["results"][0]["id"]
    here.open(path)
    here.page.locator("h1").first.wait_for()
    here.page.wait_for_timeout(1_000)
    here.page.screenshot(path=Path(FOLDER) / f"page-{name}-{scheme}.png")
