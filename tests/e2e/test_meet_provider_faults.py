"""The table of faults (docs/architecture.md, "Providers") through the whole platform."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.kit.client import Asked, Client, Viewer
from tests.e2e.kit.transcripts import check_stored
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

QUESTION = "Tell me. [[fake tokens=20 itl=20]]"
SHOWN = answer_text(3)
WHOLE = answer_text(20)

# model: status, code, retryable, text that is kept, finish_reason
TABLE: dict[str, tuple[str, str, bool, str, str | None]] = {
    "fake-429": ("failed", "provider_rate_limited", True, "", None),
    "fake-429-retry-after": ("failed", "provider_rate_limited", True, "", None),
    "fake-500": ("failed", "provider_unavailable", True, "", None),
    "fake-503": ("failed", "provider_unavailable", True, "", None),
    "fake-cut-first": ("failed", "provider_unavailable", True, "", None),
    "fake-hang-first": ("failed", "provider_timeout", True, "", None),
    "fake-400": ("failed", "provider_rejected", False, "", None),
    "fake-401": ("failed", "provider_auth", False, "", None),
    "fake-403": ("failed", "provider_auth", False, "", None),
    "fake-404": ("failed", "provider_rejected", False, "", None),
    "fake-context-too-long": ("failed", "context_too_long", False, "", None),
    "fake-malformed-first": ("failed", "provider_malformed", True, "", None),
    "fake-wrong-shape": ("failed", "provider_malformed", True, "", None),
    "fake-error-event": ("failed", "provider_unavailable", True, "", None),
    "fake-no-finish-first": ("failed", "provider_lost", True, "", None),
    "fake-cut-mid": ("incomplete", "provider_lost", True, SHOWN, None),
    "fake-error-event-mid": ("incomplete", "provider_lost", True, SHOWN, None),
    "fake-hang-mid": ("incomplete", "provider_timeout", True, SHOWN, None),
    "fake-malformed-mid": ("incomplete", "provider_malformed", True, SHOWN, None),
    "fake-wrong-shape-mid": ("incomplete", "provider_malformed", True, SHOWN, None),
    "fake-no-finish": ("incomplete", "provider_lost", True, WHOLE, None),
    "fake-length": ("completed", "", False, WHOLE, "length"),
    "fake-filter": ("completed", "", False, WHOLE, "content_filter"),
    "fake-no-done": ("completed", "", False, WHOLE, "stop"),
    "fake-json": ("completed", "", False, WHOLE, "stop"),
    "fake-no-stream-options": ("completed", "", False, WHOLE, "stop"),
    "fake-no-max-tokens": ("completed", "", False, WHOLE, "stop"),
    # The fault strikes once: what comes before the first token is tried again, unseen.
    "fake-429-once": ("completed", "", False, WHOLE, "stop"),
    "fake-500-once": ("completed", "", False, WHOLE, "stop"),
    "fake-cut-first-once": ("completed", "", False, WHOLE, "stop"),
    "fake-hang-first-once": ("completed", "", False, WHOLE, "stop"),
    "fake-malformed-first-once": ("completed", "", False, WHOLE, "stop"),
    "fake-no-finish-first-once": ("completed", "", False, WHOLE, "stop"),
    "fake-400-once": ("failed", "provider_rejected", False, "", None),
    "fake-cut-mid-once": ("incomplete", "provider_lost", True, SHOWN, None),
}


@dataclass(frozen=True)
class Met:
    """A question asked of a faulty model, and who watched."""

    asked: Asked
    viewer: Viewer


@pytest.fixture(scope="module")
def met(running_platform: Any, ann: Client) -> dict[str, Met]:
    """All faults at once: the slowest one decides how long it takes."""
    running_platform.restore()
    found = {}
    for model in TABLE:
        asked = ann.ask(QUESTION, model=model)
        found[model] = Met(asked, ann.watch(asked))
    for each in found.values():
        each.viewer.to_the_end()
    return found


@pytest.mark.parametrize("model", TABLE)
def test_becomes_what_the_table_says(platform, ann, met, model):
    status, code, retryable, kept, finish_reason = TABLE[model]
    asked, viewer = met[model].asked, met[model].viewer
    turn = ann.turn(asked.turn_id)
    assert turn["status"] == status, turn["error"]
    assert turn["finish_reason"] == finish_reason
    assert turn["attempts"] == 1

    last: Any = viewer.events[-1]
    assert last.event == f"turn.{status}"
    if code:
        error = turn["error"]
        assert (error["code"], error["retryable"]) == (code, retryable)
        assert len(error["message"]) > 10
        assert (last.code, last.message) == (code, error["message"])
    else:
        assert turn["error"] is None
    if status == "failed":
        assert last.retryable is retryable

    stored = check_stored(ann, asked, viewer.events) if kept else ann.written(asked)
    assert [m["content"] for m in stored] == ([kept] if kept else [])
    assert viewer.text == kept
    assert ann.messages(asked.chat_id)[0]["content"] == QUESTION


@pytest.mark.parametrize("model", ["fake-500", "fake-401", "fake-cut-mid", "fake-no-finish"])
def test_the_question_can_be_asked_again_of_another(platform, ann, met, model):
    asked = met[model].asked
    again = ann.post(
        f"messages/{asked.message_id}/regenerate/", {"assistant_id": ann.assistant("fake-model")}
    )
    assert again.status == 201, again
    turn = ann.ended(again.body["turn"]["id"])
    assert turn["status"] == "completed"
    question, answer = ann.messages(asked.chat_id)
    assert question["id"] == asked.message_id
    assert (answer["content"], answer["turn_id"]) == (WHOLE, turn["id"])
