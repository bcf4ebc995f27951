"""Test a turn from its claim to its end: what is stored, streamed and accounted for."""

import gc
import json
import weakref
from typing import Annotated, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from amber.lib import redis as amber_redis
from amber.processes import wait_until
from chats import services
from chats.context import findings
from chats.events.stream import events_key
from chats.models import ChatMessage, Turn
from chats.running.runner import ENTRY, TurnRun
from chats.tests.event_streams import stream_of
from chats.tests.rows import (
    converse,
    new_assistant,
    new_chat,
    path_of,
)
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    marker,
    names_of,
    run,
    seen_of,
    unmarked,
)
from chats.turns.account import TurnAccount
from engine.events import TurnStatus
from engine.messages import ImagePart
from providers.models import UsageRecord
from tests.fakes.answers import answer_text
from tests.fixtures.personas import api
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

SIX = "[[fake tokens=6]]"


@pytest.fixture(autouse=True)
def only_our_tools(monkeypatch):
    monkeypatch.setattr("tools.calling.registry._tools", {})


def test_answers(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    assert run(turn) == TurnStatus.COMPLETED
    chat = turn.chat
    assert path_of(chat) == [("human", SIX), ("assistant", answer_text(6))]
    answer = ChatMessage.objects.get(role="assistant")
    assert (answer.turn, answer.step, answer.assistant) == (turn, 1, turn.assistant)
    assert answer.total_tokens == answer.prompt_tokens + answer.completion_tokens > 6
    assert (turn.status, turn.attempt, turn.step, turn.partial_text) == ("completed", 1, 1, "")
    assert turn.finish_reason == "stop"
    assert turn.usage["total_tokens"] == answer.total_tokens
    assert None not in (turn.started_at, turn.ended_at, turn.first_token_at)
    assert (turn.lease_until, turn.worker) == (None, "w1")
    assert turn.tip == answer


def test_what_is_stored_is_what_was_streamed(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    run(turn)
    assert names_of(turn) == ["turn.started", "text.delta", "message.stored", "turn.completed"]
    assert_stored_is_what_was_streamed(turn)
    events = stream_of(turn)
    assert events[0]["seq"] == 1
    assert events[0]["turn"]["id"] == str(turn.pk)
    question = ChatMessage.objects.get(role="human")
    assert events[0]["message"] == api(alice).get(f"/api/v1/messages/{question.pk}/").json()
    answer = ChatMessage.objects.get(role="assistant")
    assert seen_of(turn).messages == [api(alice).get(f"/api/v1/messages/{answer.pk}/").json()]
    assert events[-1]["usage"] == turn.usage
    assert 0 < amber_redis.client().ttl(events_key(turn.organization_id, turn.pk)) <= 600


def test_an_ended_turn_leaves_no_run_for_the_collector(alice, new_model, monkeypatch):
    """It holds all that the turn has read: most of what a worker gains otherwise."""
    new_model()
    turn = ask(alice, content=SIX)
    runs: weakref.WeakSet[TurnRun] = weakref.WeakSet()
    monkeypatch.setattr(TurnRun, "prepare", _noted(TurnRun.prepare, runs))
    gc.disable()
    try:
        assert run(turn) == TurnStatus.COMPLETED
        assert wait_until(lambda: not runs, timeout_seconds=5)
    finally:
        gc.enable()


def _noted(prepare, runs):
    def noting(run, place):
        runs.add(run)
        prepare(run, place)

    return noting


def test_is_run_once(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    assert run(turn) == TurnStatus.COMPLETED
    assert run(turn, "w2") is None
    assert ChatMessage.objects.count() == 2


def test_a_turn_that_is_gone_is_nobodys(alice):
    turn = ask(alice)
    Turn.objects.all().delete()
    assert run(turn) is None


def test_is_accounted(alice, new_model):
    new_model(price_in=1, price_out=2)
    key, _ = alice.new_key()
    turn = ask(alice, content=SIX)
    Turn.objects.update(api_key=key)
    run(turn)
    row = UsageRecord.objects.get()
    assert (row.organization, row.user, row.api_key_id) == (
        alice.organization,
        alice.user,
        key.pk,
    )
    assert (row.turn_id, row.assistant_id, row.model) == (
        turn.pk,
        turn.assistant_id,
        "fake-model",
    )
    assert (row.outcome, row.estimated) == ("ok", False)
    assert row.prompt_tokens + row.completion_tokens == turn.usage["total_tokens"]
    assert row.cost > 0
    assert None not in (row.first_token_ms, row.latency_ms)
    turn.assistant.refresh_from_db()
    assert turn.assistant.total_token_usage == turn.usage["total_tokens"]


def test_what_a_provider_does_not_count_is_estimated(alice, new_model):
    new_model("fake-no-stream-options")
    turn = ask(alice, "fake-no-stream-options", content=SIX)
    assert run(turn) == TurnStatus.COMPLETED
    row = UsageRecord.objects.get(outcome="ok")
    assert row.estimated is True
    assert row.prompt_tokens > 0
    assert row.completion_tokens > 0


def test_the_estimate_counts_images_as_the_setting_says(settings):
    settings.AMBER_IMAGE_TOKENS = 10_000
    account = TurnAccount()
    image: ImagePart = {"type": "image_url", "image_url": {"url": "data:,", "detail": "auto"}}
    account.asked = [{"role": "user", "content": [image]}]
    usage, is_estimate = account.usage_of(None, "A cat.")
    assert is_estimate
    assert 10_000 < usage.prompt_tokens < 10_020


def test_the_manifest_says_what_went_in(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    run(turn)
    manifest = api(alice).get(f"/api/v1/turns/{turn.pk}/manifest/").json()
    assert manifest["model"] == "fake-model"
    assert [message["id"] for message in manifest["messages"]] == [str(turn.question_id)]
    assert (manifest["history_is_cut"], manifest["left_out"]) == (False, [])


# -- Tools --------------------------------------------------------------------------------------


def test_calls_are_rows_before_they_are_made(alice, new_model):
    seen: list[list[str]] = []

    @register_tool
    def weather(place: Annotated[str, "Where"]) -> str:
        """Tells the weather."""
        rows = ChatMessage.objects.filter(turn__isnull=False).order_by("position")
        seen.append([row.role for row in rows])
        return f"Rain in {place}."

    new_model()
    turn = ask(alice, content=marker("weather", {"place": "Ulm"}))
    assert run(turn) == TurnStatus.COMPLETED
    assert seen == [["human", "tool_call"]]
    rows: Any = ChatMessage.objects.order_by("position")
    question, call, result, answer = rows
    assert call.tool_call["name"] == "weather"
    assert json.loads(call.tool_call["arguments"]) == {"place": "Ulm"}
    assert result.content == "Rain in Ulm."
    assert result.tool_call["id"] == call.tool_call["id"]
    assert result.tool_call["reply_id"] == call.tool_call["reply_id"] == f"{turn.pk}:1"
    assert (call.step, result.step, answer.step, turn.step) == (1, 1, 2, 2)
    assert (answer.content, answer.turn) == (answer_text(6), turn)
    assert question.turn == turn
    assert_stored_is_what_was_streamed(turn)
    assert names_of(turn) == [
        "turn.started",
        "message.stored",
        "tool.started",
        "tool.finished",
        "message.stored",
        "text.delta",
        "message.stored",
        "turn.completed",
    ]


def test_usage_is_summed_over_the_steps(alice, new_model):
    @register_tool
    def weather(place: Annotated[str, "Where"]) -> str:
        """Tells the weather."""
        return "Rain."

    new_model()
    turn = ask(alice, content=marker("weather", {"place": "Ulm"}))
    run(turn)
    rows = list(UsageRecord.objects.filter(turn_id=turn.pk))
    assert len(rows) == 2
    assert turn.usage["prompt_tokens"] == sum(row.prompt_tokens for row in rows)
    assert turn.usage["completion_tokens"] == sum(row.completion_tokens for row in rows)
    shown = ChatMessage.objects.filter(step__isnull=False)
    assert sum(message.total_tokens for message in shown) == turn.usage["total_tokens"]
    turn.assistant.refresh_from_db()
    assert turn.assistant.total_token_usage == turn.usage["total_tokens"]


def test_two_calls_of_one_reply_are_one_reply_in_the_next_request(alice, new_model, fake_provider):
    @register_tool
    def one() -> str:
        """One."""
        return "first result"

    @register_tool
    def two() -> str:
        """Two."""
        return "second result"

    new_model("fake-parallel-tools")
    turn = ask(alice, "fake-parallel-tools", content=f"parallel? {SIX}")
    assert run(turn) == TurnStatus.COMPLETED
    roles = [m.role for m in ChatMessage.objects.order_by("position")]
    assert roles == ["human", "tool_call", "tool_call", "tool", "tool", "assistant"]
    assert_stored_is_what_was_streamed(turn)
    asked = fake_provider.requests("parallel?")[-1]["messages"]
    assert [m["role"] for m in asked[-3:]] == ["assistant", "tool", "tool"]
    run(ask_in(turn.chat, alice, f"and then? {SIX}"))
    replayed = unmarked(fake_provider.requests("and then?")[-1]["messages"])
    calling = next(m for m in replayed if m.get("tool_calls"))
    assert len(calling["tool_calls"]) == 2
    place = replayed.index(calling)
    assert [m["content"] for m in replayed[place + 1 : place + 3]] == [
        "first result",
        "second result",
    ]


def test_a_failing_tool_is_a_result_and_the_turn_goes_on(alice, new_model):
    @register_tool
    def broken() -> str:
        """Breaks."""
        raise RuntimeError("a secret of the owner")

    new_model()
    turn = ask(alice, content=marker("broken", {}))
    assert run(turn) == TurnStatus.COMPLETED
    finished = next(e for e in stream_of(turn) if e["event"] == "tool.finished")
    assert finished["ok"] is False
    assert "secret" not in finished["content"]
    assert ChatMessage.objects.get(role="tool").content == finished["content"]
    assert_stored_is_what_was_streamed(turn)


def test_rounds_are_bounded(alice, new_model, settings):
    @register_tool(harmless=True)
    def again() -> str:
        """Again."""
        return "again"

    settings.AMBER_MAX_TOOL_ROUNDS = 2
    new_model("fake-endless-tools")
    turn = ask(alice, "fake-endless-tools", content=SIX)
    assert run(turn) == TurnStatus.COMPLETED
    assert ChatMessage.objects.filter(role="tool_call").count() == 2
    assert turn.step == 3
    assert_stored_is_what_was_streamed(turn)


def test_messages_that_come_meanwhile_lie_on_the_turns_way(alice, new_model, fake_provider):
    """The answer follows them; the next question's model reads them."""
    later: list[ChatMessage] = []

    @register_tool
    def weather() -> str:
        """Tells the weather."""
        chat: Any = Turn.objects.get(status="running").chat
        posted = services.post_message(
            chat.pk, alice.principal, role="human_later", content="And an umbrella?"
        )
        later.append(posted.message)
        return "Rain."

    new_model()
    turn = ask(alice, content=marker("weather", {}))
    assert run(turn) == TurnStatus.COMPLETED
    assert [role for role, _ in path_of(turn.chat)] == [
        "human",
        "tool_call",
        "human_later",
        "tool",
        "assistant",
    ]
    assert_stored_is_what_was_streamed(turn)
    run(ask_in(turn.chat, alice, f"umbrella again? {SIX}"))
    asked = fake_provider.requests("umbrella again?")[-1]["messages"]
    assert any("And an umbrella?" in str(message["content"]) for message in asked)
    calls = next(n for n, m in enumerate(asked) if m.get("tool_calls"))
    assert asked[calls + 1]["role"] == "tool", "a call and its result were torn apart"


def test_a_branch_shown_meanwhile_stays_shown(alice, new_model):
    old: list[ChatMessage] = []

    @register_tool
    def look_elsewhere() -> str:
        """Looks."""
        services.switch_branch(old[0].chat, old[0])
        return "done"

    new_model()
    chat = new_chat(alice, assistant=new_assistant(alice, model="fake-model"))
    question, other = converse(chat, "Before", "Other branch")
    old.append(other)
    content = marker("look_elsewhere", {})
    turn = ask_in(chat, alice, content, parent=question)
    assert run(turn) == TurnStatus.COMPLETED
    chat.refresh_from_db()
    assert chat.active_leaf == other
    assert turn.tip == ChatMessage.objects.get(role="assistant", turn=turn)
    assert_stored_is_what_was_streamed(turn)


# -- Other shapes ----------------------------------------------------------------------------------


def test_a_regenerated_answer_is_told_with_its_siblings(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    run(turn)
    first: Any = ChatMessage.objects.get(role="assistant")
    again = services.regenerate(first, alice.principal).turn
    assert again is not None
    assert run(again) == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(again)
    (answer,) = seen_of(again).messages
    assert answer["sibling_ids"] == [str(first.pk), answer["id"]]
    first.turn.refresh_from_db()
    assert first.turn.status == "completed"


def test_an_edited_question_is_told_with_its_siblings(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    run(turn)
    again = services.edit_message(turn.question, alice.principal, content=SIX).turn
    assert again is not None
    run(again)
    assert stream_of(again)[0]["message"]["sibling_ids"] == [
        str(turn.question_id),
        str(again.question_id),
    ]


def test_a_follow_up_is_told_without_siblings(alice, new_model):
    new_model()
    first = ask(alice, content=SIX)
    run(first)
    turn = ask_in(first.chat, alice, SIX)
    run(turn)
    assert stream_of(turn)[0]["message"]["sibling_ids"] == [str(turn.question_id)]
    (answer,) = seen_of(turn).messages
    assert answer["sibling_ids"] == [answer["id"]]


def test_a_plain_turn_makes_few_statements(alice, new_model):
    new_model()
    turn = ask(alice, content=SIX)
    with CaptureQueriesContext(connection) as made:
        run(turn)
    said = [each["sql"] for each in made if not each["sql"].startswith(("BEGIN", "COMMIT"))]
    assert len(said) <= 17, "three of them are the test's own"


def test_an_answer_without_a_chat_is_the_turns_output(alice, new_model):
    @register_tool
    def weather() -> str:
        """Tells the weather."""
        return "Rain."

    new_model()
    assistant = new_assistant(alice, model="fake-model")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "human", "content": marker("weather", {})},
    ]
    turn: Any = services.start_stateless_turn(
        alice.principal, assistant=assistant, messages=messages
    )
    assert run(turn) == TurnStatus.COMPLETED
    assert [m["role"] for m in turn.output["messages"]] == ["tool_call", "tool", "assistant"]
    assert turn.output["messages"][-1]["content"] == answer_text(6)
    assert_stored_is_what_was_streamed(turn)
    assert not ChatMessage.objects.exists()


def test_a_parroted_time_is_neither_shown_nor_stored(alice, new_model):
    new_model("fake-parrot")
    turn = ask(alice, "fake-parrot", content=SIX)
    run(turn)
    assert "Sent at" not in ChatMessage.objects.get(role="assistant").content
    assert_stored_is_what_was_streamed(turn)


@pytest.mark.parametrize(
    ("model", "finish_reason"), [("fake-length", "length"), ("fake-filter", "content_filter")]
)
def test_says_why_the_model_stopped(alice, new_model, model, finish_reason):
    new_model(model)
    turn = ask(alice, model, content=SIX)
    assert run(turn) == TurnStatus.COMPLETED
    assert turn.finish_reason == finish_reason
    assert stream_of(turn)[-1]["finish_reason"] == finish_reason


def test_a_retry_is_not_seen_but_accounted(alice, new_model):
    new_model("fake-500-once")
    turn = ask(alice, "fake-500-once", content=f"retry {SIX}")
    assert run(turn) == TurnStatus.COMPLETED
    outcomes = sorted(UsageRecord.objects.values_list("outcome", flat=True))
    assert outcomes == ["ok", "provider_unavailable"]
    assert_stored_is_what_was_streamed(turn)


def test_an_assistant_deleted_meanwhile_does_not_break_the_turn(alice, new_model):
    new_model("fake-model", default=True)
    turn = ask(alice, content=SIX)
    turn.assistant.delete()
    assert run(turn) == TurnStatus.COMPLETED
    assert ChatMessage.objects.get(role="assistant").assistant is None


@pytest.mark.parametrize("rerank_seconds", [0, 1])
def test_looks_up_in_one_transaction_unless_it_may_wait_for_a_reranker(
    alice, new_model, settings, monkeypatch, rerank_seconds
):
    """The tenant is then said once; who waits for others holds no transaction, and no place in the gate."""
    new_model()
    settings.AMBER_RERANK_URL = "http://127.0.0.1:9/"
    settings.AMBER_RERANK_TURN_SECONDS = rerank_seconds
    held: list[tuple[bool, int]] = []

    def note(*given: Any, **options: Any) -> Any:
        held.append((connection.in_atomic_block, ENTRY._free))
        return findings.look_up(*given, **options)

    monkeypatch.setattr("chats.context.gathering.look_up", note)
    assert run(ask(alice, content=SIX)) == TurnStatus.COMPLETED
    assert held == [(False, 2) if rerank_seconds else (True, 1)]


def test_text_beyond_a_few_kilobytes_comes_whole(alice, new_model):
    new_model()
    turn = ask(alice, content="[[fake tokens=3000]]")
    run(turn)
    assert ChatMessage.objects.get(role="assistant").content == answer_text(3_000)
    assert_stored_is_what_was_streamed(turn)
