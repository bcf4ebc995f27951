"""A person in front of the web page: what they do and see, in Debian's Chromium."""

import base64
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from tests.e2e.kit.axe import assert_accessible
from tests.e2e.kit.browser import PATIENCE_MS, expect
from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import send

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Locator, Page

ROOT = Path(__file__).resolve().parents[3]
LOOK_MS = 50
"""How often a window is looked at. Playwright would look at each frame, and so have all of them drawn."""
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (refused) =>
  console.error(`refused: ${refused.violatedDirective} ${refused.blockedURI} ${refused.sourceFile}`));
window.longFrames = [];
new PerformanceObserver((list) => window.longFrames.push(...list.getEntries().map((each) => each.duration)))
  .observe({ entryTypes: ["longtask"] });
"""


def say(text: str, **marks: object) -> str:
    """What makes the fake model answer with this text."""
    told = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return mark(say=told, **marks)


def call(name: str, arguments: dict[str, Any], **marks: object) -> str:
    """What makes the fake model call this tool, and then answer."""
    told = base64.urlsafe_b64encode(json.dumps(arguments).encode()).decode().rstrip("=")
    return mark(call=name, args=told, **marks)


def mark(**marks: object) -> str:
    return f"[[fake {' '.join(f'{name}={value}' for name, value in marks.items())}]]"


@dataclass
class Person:
    """Somebody with an account, and a session beside the browser's, to see what is stored."""

    platform: Platform
    email: str
    http: httpx2.Client
    assistants: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        answer = self.http.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any) -> Any:
        return send(self.http, "POST", f"/api/v1/{path}", body)

    def patch(self, path: str, body: Any) -> Any:
        return send(self.http, "PATCH", f"/api/v1/{path}", body)

    def put(self, path: str, body: Any) -> Any:
        return send(self.http, "PUT", f"/api/v1/{path}", body)

    def assistant(self, name: str, model: str = "fake-model", **fields: Any) -> str:
        """The id of the one with this name; made if it is not there."""
        if name not in self.assistants:
            made = self.post("assistants/", {"name": name, "model": model, **fields})
            self.assistants[name] = made["id"]
        return self.assistants[name]

    def new_chat(self, assistant: str = "Marie", **fields: Any) -> str:
        return str(self.post("chats/", {"assistant_id": self.assistant(assistant), **fields})["id"])

    def import_chat(self, name: str, *contents: str) -> str:
        """A chat in which question and answer follow each other."""
        messages = [
            {"id": str(i), "parent_id": str(i - 1) if i else None, "content": content}
            | {"role": "assistant" if i % 2 else "human"}
            for i, content in enumerate(contents)
        ]
        body = {"assistant_id": self.assistant("Marie"), "chat": {"name": name}}
        return str(self.post("chats/import/", body | {"messages": messages})["id"])

    def stored(self, chat_id: str, role: str = "assistant") -> list[str]:
        """The texts of this role in the branch that is shown."""
        messages = self.get(f"chats/{chat_id}/messages/?limit=200")["results"]
        return [each["content"] for each in messages if each["role"] == role]


def new_page(context: "BrowserContext") -> "Page":
    """Return a page that complains of what the policy refused."""
    page = context.new_page()
    page.add_init_script(TELL_VIOLATIONS)
    return page


class Visitor:
    """One window. `said` is what the browser complained of, `asked` what was fetched from elsewhere."""

    def __init__(self, person: Person, page: "Page") -> None:
        self.person, self.page = person, page
        self.context: BrowserContext = page.context
        self.base = f"http://127.0.0.1:{person.platform.port}"
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", self._note_failure)
        self.page.on("request", self._ask)

    def stop_listening(self) -> None:
        self.page.remove_listener("console", self._note)
        self.page.remove_listener("pageerror", self._note_failure)
        self.page.remove_listener("request", self._ask)

    def _note_failure(self, error: "Error") -> None:
        self.said.append(f"failed: {error}")

    def _note(self, message: "ConsoleMessage") -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.said.append(message.text)

    def _ask(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.asked.append(request.url)

    # -- Doing --

    def open(self, path: str = "/") -> "Visitor":
        self.page.goto(self.base + path)
        return self

    def open_chat(self, chat_id: str) -> "Visitor":
        self.open(f"/chats/{chat_id}")
        self.page.locator(".timeline").wait_for()
        return self

    def ask(self, text: str) -> None:
        self.composer.fill(text)
        self.composer.press("Enter")

    def press(self, keys: str) -> None:
        self.page.keyboard.press(keys)

    def menu_of_chat(self, name: str) -> None:
        self.button(f"Actions for {name}").click()

    def select(self, name: str) -> None:
        self.page.get_by_role("menuitem", name=name).click()

    # -- Seeing --

    @property
    def composer(self) -> "Locator":
        return self.page.locator("#composer")

    def button(self, name: str) -> "Locator":
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> "Locator":
        return self.page.get_by_role("link", name=name, exact=True)

    @property
    def dialog(self) -> "Locator":
        return self.page.get_by_role("dialog")

    @property
    def answers(self) -> "Locator":
        return self.page.locator("article.answer")

    @property
    def answer(self) -> "Locator":
        return self.answers.last

    @property
    def questions(self) -> "Locator":
        return self.page.locator("article.question")

    @property
    def chats(self) -> "Locator":
        return self.page.locator(".chat-link a")

    @property
    def chat_id(self) -> str:
        self.page.wait_for_url(re.compile("/chats/[0-9a-f-]{36}"))
        return str(self.page.url).rpartition("/")[2].partition("?")[0]

    def _wait_until(self, holds: str, argument: object) -> None:
        self.page.wait_for_function(holds, arg=argument, polling=LOOK_MS)

    def sees(self, words: str) -> "Locator":
        found = self.page.get_by_text(words).first
        found.wait_for()
        return found

    def wait_for_draft(self, text: str) -> None:
        """Until this is what is written, and not sent. A page that has just begun has no composer yet."""
        self._wait_until("(text) => document.getElementById('composer')?.value === text", text)

    def wait_for_words(self, count: int = 3) -> None:
        """Until so many words of the answer under way are there."""
        self._wait_until(
            "(count) => (document.querySelector('.answer.live .markdown')?.textContent ?? '')"
            ".trim().split(/\\s+/).length >= count",
            count,
        )

    def wait_for_end(self, answers: int = 1) -> None:
        """Until so many answers are there, all of them whole."""
        self._wait_until(
            "(count) => document.querySelectorAll('.answer').length >= count"
            " && !document.querySelector('.answer.live')",
            answers,
        )
        self.button("Send").wait_for()

    def reads(self, text: str) -> None:
        """Until the last answer is whole and says this."""
        self._wait_until(
            "(text) => { const last = [...document.querySelectorAll('.answer:not(.live) .markdown')].at(-1);"
            " return last?.innerText.split(/\\s+/).join(' ').trim() === text; }",
            " ".join(text.split()),
        )

    def shown(self) -> list[str]:
        """The texts of the answers, as far as they are drawn."""
        texts: list[str] = self.page.locator(".answer .markdown").all_inner_texts()
        return [" ".join(text.split()) for text in texts]

    def shows_what_is_stored(self) -> None:
        stored = [" ".join(text.split()) for text in self.person.stored(self.chat_id)]
        assert self.shown() == stored

    def focus(self) -> str:
        """What has focus: its accessible name, or its text or id."""
        return str(
            self.page.evaluate(
                "(() => { const at = document.activeElement; return at.getAttribute('aria-label')"
                " || at.innerText?.slice(0, 60) || at.id || at.tagName; })()"
            )
        )

    def has_focus(self, element_id: str) -> None:
        self._wait_until("(id) => document.activeElement.id === id", element_id)

    def focus_id(self) -> str:
        return str(self.page.evaluate("document.activeElement.id"))

    def hears(self, text: str) -> None:
        """Wait until this is what a screen reader was told last."""
        expect(self.page.locator("#said")).to_have_text(text)

    def is_accessible(self) -> None:
        assert_accessible(self.page)
