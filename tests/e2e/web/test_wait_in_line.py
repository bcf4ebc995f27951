"""A question that has to wait: the page says how many are before it and why, until the answer begins."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kit.browser import expect
from tests.e2e.kit.platform import Platform
from tests.e2e.web.visitor import Person, Visitor, mark

pytestmark = pytest.mark.e2e

LIMITED = "UPDATE accounts_organization SET turns_at_once = %s WHERE id = %s RETURNING id"


@pytest.fixture
def single_place(platform: Platform) -> Iterator[None]:
    platform.restore(chat={"AMBER_CHAT_CONCURRENCY": "1"})
    yield
    platform.restore()


def ask(person: Person) -> str:
    body = {"content": f"Tell me. {mark(tokens=4_000, itl=50)}"}
    posted = person.post(f"chats/{person.new_chat()}/messages/", body)
    return str(posted["turn"]["id"])


def test_the_place_in_the_queue_is_told_and_gone_when_it_starts(
    visit, person, platform, single_place
):
    running, *before = [ask(person) for _ in range(3)]
    platform.wait_for(
        lambda: person.get(f"turns/{running}/")["status"] == "running", "the first turn"
    )
    here = visit()
    here.open_chat(person.new_chat())
    here.ask(f"Tell me. {mark(tokens=5)}")
    here.sees("Waiting: 2 questions from your organization are ahead of yours.")
    here.page.wait_for_function(
        "() => document.getElementById('said').textContent.startsWith('Waiting: 2')"
    )
    here.is_accessible()
    take_pictures(here, "place-in-queue")
    narrow = visit(viewport={"width": 390, "height": 800}, color_scheme="dark", locale="zh-CN")
    narrow.open_chat(here.chat_id)
    narrow.sees("正在排队：您的组织还有 2 个问题排在前面。")
    narrow.is_accessible()
    take_pictures(narrow, "place-in-queue-narrow")

    person.post(f"turns/{before[0]}/cancel/", {})
    here.sees("Waiting: 1 question from your organization is ahead of yours.")
    [(organization_id,)] = platform.query(
        "SELECT organization_id FROM chats_turn WHERE id = %s", running
    )
    platform.query(LIMITED, 1, organization_id)
    here.sees("has reached its limit of answers at the same time. 1 question is ahead of yours.")
    person.post(f"turns/{before[1]}/cancel/", {})
    here.sees("has reached its limit of answers at the same time. Your question is next.")
    person.post(f"turns/{running}/cancel/", {})
    here.wait_for_end()
    expect(here.page.get_by_text("Waiting:")).to_have_count(0)
    here.shows_what_is_stored()
    platform.query(LIMITED, None, organization_id)


def take_pictures(here: Visitor, name: str) -> None:
    """To look at, where somebody wants to: AMBER_LOOK names a folder."""
    if folder := os.environ.get("AMBER_LOOK"):
        here.page.screenshot(path=Path(folder) / f"{name}.png")
