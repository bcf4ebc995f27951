"""Test budgets around a turn: reserved before it is asked, settled however it ends."""

import threading
from datetime import timedelta
from typing import Annotated, Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import IdempotencyRecord
from amber.lib.workers.leases import StopReason
from chats import services
from chats.call_services import ask_in_chat
from chats.context.call_options import CallOptions
from chats.models import ChatMessage, Turn
from chats.tests.rows import (
    error_of,
    expire,
    messages,
    new_assistant,
    new_chat,
    new_file,
    of_message,
    of_turn,
    say,
)
from chats.tests.runs import ask, ask_in, marker, run, running
from chats.turns import sweep
from chats.turns.admission import release_leftovers
from engine.events import TurnStatus
from engine.tools import ToolSpec
from providers.budgets import reservations
from providers.models import OFFLINE_URL, BudgetReservation, LanguageModel, Provider, UsageRecord
from providers.tests.budgets import held, new_budget
from tests.fixtures.personas import api
from tools.calling.registry import register_tool

pytestmark = pytest.mark.django_db(transaction=True)

MOST_TOKENS = 100
"""The longest reply of the model under test."""


@pytest.fixture(autouse=True)
def model(new_model: Any) -> LanguageModel:
    made: LanguageModel = new_model(default=True, max_output_tokens=MOST_TOKENS)
    return made


@pytest.fixture(autouse=True)
def nothing_remembered():
    reservations.forget_absence()


def used_tokens() -> int:
    return sum(row.prompt_tokens + row.completion_tokens for row in UsageRecord.objects.all())


def assert_settled(budget: Any, subject: str = "") -> None:
    assert held(budget, subject) == (used_tokens(), 0)
    assert not BudgetReservation.objects.exists()


# -- Asking --------------------------------------------------------------------------------------


def test_a_question_reserves_its_prompt_and_the_longest_reply(alice):
    budget = new_budget(alice, 1_000)
    turn = ask(alice, content="x" * 30)
    used, reserved = held(budget)
    assert turn.is_budgeted
    assert used == 0
    assert MOST_TOKENS + 10 <= reserved <= MOST_TOKENS + 20


def test_later_questions_reserve_what_the_conversation_has_grown_to(alice):
    budget = new_budget(alice, 10_000)
    chat = new_chat(alice, assistant=new_assistant(alice))
    say(chat)
    say(chat, "Hello", role="assistant", total_tokens=700)
    ask_in(chat, alice, "x")
    assert 700 + MOST_TOKENS < held(budget)[1] < 720 + MOST_TOKENS


@pytest.mark.parametrize(
    ("sent", "tokens"),
    [
        ({"mime_type": "text/plain", "text": "x" * 3_000}, 1_000),
        ({"mime_type": "image/png"}, 765),
    ],
    ids=["text", "image"],
)
def test_files_that_were_sent_are_part_of_the_prompt(alice, sent, tokens):
    budget = new_budget(alice, 10_000)
    chat = new_chat(alice, assistant=new_assistant(alice))
    say(chat, "", role="file", file=new_file(alice, **sent))
    ask_in(chat, alice, "x")
    assert tokens + MOST_TOKENS < held(budget)[1] < tokens + 50 + MOST_TOKENS


@pytest.mark.parametrize("in_chat", [True, False], ids=["in-a-chat", "stateless"])
def test_prompts_of_the_caller_are_part_of_it_beside_an_assistants(alice, in_chat):
    budget = new_budget(alice, 10_000)
    assistant, options = new_assistant(alice), CallOptions(prompts=("x" * 3_000,))
    asked = [{"role": "human", "content": "Hi"}]
    if in_chat:
        chat = new_chat(alice, assistant=assistant)
        ask_in_chat(chat, alice.principal, entries=asked, assistant=assistant, options=options)
    else:
        services.start_stateless_turn(
            alice.principal, messages=asked, assistant=assistant, options=options
        )
    assert 1_000 + MOST_TOKENS < held(budget)[1] < 1_050 + MOST_TOKENS


def test_the_call_may_ask_for_less(alice):
    budget = new_budget(alice, 10_000)
    asked = [{"role": "human", "content": "Hi"}]
    options = CallOptions(max_output_tokens=7)
    services.start_stateless_turn(alice.principal, messages=asked, options=options)
    assert 7 < held(budget)[1] < 20


def test_money_is_reserved_at_the_models_price(alice, model):
    budget = new_budget(alice, 1_000, unit="money")
    LanguageModel.objects.filter(pk=model.pk).update(price_out=500_000)
    ask(alice)
    assert held(budget)[1] == MOST_TOKENS // 2


def test_what_no_budget_affords_is_429_and_leaves_nothing(alice, enqueued_turns):
    new_budget(alice, MOST_TOKENS)
    chat = new_chat(alice, assistant=new_assistant(alice))
    answer = api(alice).post(messages(chat), {"content": "Hi"}, headers={"Idempotency-Key": "once"})
    assert error_of(answer) == (429, "budget_exceeded")
    assert "the organization" in answer.json()["error"]["message"]
    assert 0 < int(answer.headers["Retry-After"]) <= 86_400
    assert not ChatMessage.objects.exists()
    assert not Turn.objects.exists()
    assert not IdempotencyRecord.objects.exists()
    assert enqueued_turns == []
    later = {"role": "human_later", "content": "Hi"}
    assert api(alice).post(messages(chat), later).status_code == 201


def test_every_way_to_start_a_turn_is_admitted(alice, assistant):
    chat = new_chat(alice, assistant=assistant)
    question = say(chat)
    new_budget(alice, 0)
    client = api(alice)
    refused = [
        client.post(messages(chat), {"content": "Hi"}),
        client.patch(of_message(question), {"content": "Edited"}),
        client.post(of_message(question, "regenerate/"), {}),
        client.post(f"/api/v1/assistants/{assistant.pk}/try/", {"content": "Hi"}),
        api(key=alice.new_key()[1]).post(
            "/chat", {"messages": [{"role": "user", "content": "Hi"}]}
        ),
    ]
    assert [answer.status_code for answer in refused] == [429] * len(refused)
    assert not Turn.objects.exists()


def test_all_that_a_caller_brings_is_reserved_for(alice, assistant):
    """Results as long as they are, in a chat that goes on; functions, which the model reads too."""
    budget = new_budget(alice, 100_000)
    chat = new_chat(alice, assistant=assistant)
    long = {"role": "human", "content": "x" * 3_000}
    about = {"assistant": assistant, "options": CallOptions()}
    ask_in_chat(chat, alice.principal, entries=[long, long, long], **about)
    assert 3_000 + MOST_TOKENS <= held(budget)[1] < 3_100 + MOST_TOKENS
    before = held(budget)[1]
    offered = CallOptions(tools=(ToolSpec("f", "x" * 3_000),))
    services.start_stateless_turn(
        alice.principal, messages=[{"role": "human", "content": "Hi"}], options=offered
    )
    assert held(budget)[1] - before > 1_000 + MOST_TOKENS


def test_another_tenants_budget_is_none_of_ours(alice, mallory):
    new_budget(mallory, 0)
    assert not ask(alice).is_budgeted


def test_fifty_at_once_get_the_ten_answers_there_are(alice, assistant):
    chats = [new_chat(alice, assistant=assistant) for _ in range(50)]
    budget = new_budget(alice, 10 * MOST_TOKENS + 10 * len("Hi"))
    _, secret = alice.new_key()
    start, statuses = threading.Barrier(len(chats)), []

    def post(chat: Any) -> None:
        try:
            start.wait(30)
            answer = api(key=secret).post(messages(chat), {"content": "Hi"})
            statuses.append((answer.status_code, answer.json().get("error", {}).get("code")))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=post, args=(chat,)) for chat in chats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses, key=str) == [(201, None)] * 10 + [(429, "budget_exceeded")] * 40
    assert Turn.objects.count() == ChatMessage.objects.count() == 10
    assert held(budget)[1] <= 10 * MOST_TOKENS + 10 * len("Hi")


def test_without_budgets_asking_costs_no_query_more(alice, assistant):
    client = api(alice)

    def queries() -> list[str]:
        chat = new_chat(alice, assistant=assistant)
        with CaptureQueriesContext(connection) as asked:
            assert client.post(messages(chat), {"content": "Hi"}).status_code == 201
        return [query["sql"] for query in asked]

    queries()
    assert not [sql for sql in queries() if "budget" in sql.lower().replace("is_budgeted", "")]


# -- Ending --------------------------------------------------------------------------------------


def test_a_completed_turn_is_settled_with_its_ledger(alice):
    budget = new_budget(alice, 10_000)
    turn = ask(alice)
    assert run(turn) == TurnStatus.COMPLETED
    assert used_tokens() > 0
    assert_settled(budget)


def test_each_scope_is_settled(alice, assistant):
    key, secret = alice.new_key()
    subjects = {"user": alice.user.pk, "key": key.pk, "assistant": assistant.pk}
    rows = {scope: new_budget(alice, 10_000, scope=scope) for scope in subjects}
    chat = new_chat(alice, assistant=assistant)
    api(key=secret).post(messages(chat), {"content": "Hi"})
    assert run(Turn.objects.get()) == TurnStatus.COMPLETED
    for scope, budget in rows.items():
        assert_settled(budget, str(subjects[scope]))


def test_a_failed_turn_gives_back_what_it_held(alice, new_model):
    new_model("fake-400")
    budget = new_budget(alice, 10_000)
    assert run(ask(alice, "fake-400")) == TurnStatus.FAILED
    assert_settled(budget)


def test_a_turn_cancelled_before_it_ran_does_too(alice):
    budget = new_budget(alice, 10_000)
    services.cancel_turn(ask(alice))
    assert held(budget) == (0, 0)


def test_a_turn_cancelled_in_mid_answer_counts_what_was_shown(alice, new_model):
    new_model("fake-slow", max_output_tokens=MOST_TOKENS)
    budget = new_budget(alice, 10_000)
    with running(ask(alice, "fake-slow")) as this:
        this.wait_for_text()
        this.stop(StopReason.CANCELLED)
    assert used_tokens() > 0
    assert_settled(budget)


def test_a_deleted_chat_gives_back_what_its_turn_held(alice):
    budget = new_budget(alice, 10_000)
    turn = ask(alice)
    services.delete_chat(turn.chat)
    assert held(budget) == (0, 0)


def test_a_turn_whose_workers_died_is_released_when_it_is_given_up(alice, settings):
    settings.AMBER_MAX_ATTEMPTS = 1
    budget = new_budget(alice, 10_000)
    turn = ask(alice)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=20)
    assert held(budget)[1] > 0
    expire(turn)
    sweep.sweep_turns()
    turn.refresh_from_db()
    assert turn.status == TurnStatus.FAILED
    assert used_tokens() > 0, "the call that was lost"
    assert_settled(budget)


def test_a_turn_that_is_run_again_holds_what_it_held(alice):
    budget = new_budget(alice, 10_000)
    turn = ask(alice)
    _, reserved = held(budget)
    Turn.objects.claim(turn.pk, worker="dead", lease_seconds=20)
    expire(turn)
    sweep.sweep_turns()
    assert held(budget) == (used_tokens(), reserved)
    assert run(turn) == TurnStatus.COMPLETED
    assert_settled(budget)


def test_what_nobody_released_goes_with_the_sweep(alice):
    budget = new_budget(alice, 10_000)
    kept, gone = ask(alice), ask(alice)
    Turn.objects.filter(pk=gone.pk).delete()
    release_leftovers()
    assert BudgetReservation.objects.count() == 2, "the last few minutes are left alone"
    BudgetReservation.objects.update(created_at=timezone.now() - timedelta(hours=1))
    release_leftovers()
    assert BudgetReservation.objects.get().holder_id == kept.pk
    assert held(budget)[1] == BudgetReservation.objects.get().amount


def test_a_worker_that_knows_of_no_budget_counts_what_was_reserved(alice):
    """The first budget was made when this process had just looked."""
    budget = new_budget(alice, 10_000)
    turn = ask(alice)
    reservations._absent[alice.organization.pk] = float("inf")
    assert run(turn) == TurnStatus.COMPLETED
    assert_settled(budget)


# -- On the way ----------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """What the one tool was called with; it asks first if its name says so."""
    monkeypatch.setattr("tools.calling.registry._tools", {})
    made: list[str] = []

    @register_tool
    def look(place: Annotated[str, "Where"]) -> str:
        """Looks."""
        made.append(place)
        return f"Rain in {place}."

    @register_tool(asks_first=True)
    def send(to: Annotated[str, "Whom"]) -> str:
        """Sends."""
        made.append(to)
        return f"Sent to {to}."

    return made


def test_every_step_is_paid_for(alice, calls):
    budget = new_budget(alice, 10_000)
    turn = ask(alice, content=marker("look", {"place": "Ulm"}))
    assert run(turn) == TurnStatus.COMPLETED
    assert UsageRecord.objects.count() == 2
    assert_settled(budget)


def test_a_turn_ends_before_the_request_that_no_budget_affords(alice, calls):
    budget = new_budget(alice, 10_000)
    turn = ask(alice, content=marker("look", {"place": "Ulm"}))
    budget.limit = held(budget)[1]
    budget.save()
    assert run(turn) == TurnStatus.FAILED
    assert turn.error is not None
    assert turn.error["code"] == "budget_exceeded"
    assert UsageRecord.objects.count() == 1
    assert calls == [], "no tool runs for an answer that cannot come"
    assert_settled(budget)


def waiting_turn(alice: Any) -> Any:
    builtin = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    LanguageModel.objects.create(provider=builtin, alias="offline", upstream_id="offline")
    turn = ask(alice, "offline", content='/send {"to": "ann"}')
    assert run(turn) == TurnStatus.WAITING
    return turn


def test_a_budget_made_while_a_turn_waited_applies_when_it_goes_on(alice, calls):
    turn = waiting_turn(alice)
    decisions = {"decisions": {turn.waiting_calls[0]["call_id"]: True}}
    budget = new_budget(alice, 0)
    reservations.forget_absence()
    answer = api(alice).post(of_turn(turn, "approve/"), decisions)
    assert error_of(answer) == (429, "budget_exceeded")
    budget.limit = 100_000
    budget.save()
    assert api(alice).post(of_turn(turn, "approve/"), decisions).status_code == 200
    assert held(budget)[1] > 0
    assert run(turn) == TurnStatus.COMPLETED
    assert held(budget)[1] == 0


def test_a_waiting_turn_holds_nothing_and_needs_it_again_to_go_on(alice, calls):
    budget = new_budget(alice, 100_000)
    turn = waiting_turn(alice)
    assert held(budget) == (used_tokens(), 0)
    decisions = {"decisions": {turn.waiting_calls[0]["call_id"]: True}}
    budget.limit = 0
    budget.save()
    answer = api(alice).post(of_turn(turn, "approve/"), decisions)
    assert error_of(answer) == (429, "budget_exceeded")
    assert run(turn) is None, "it still waits"
    budget.limit = 100_000
    budget.save()
    assert api(alice).post(of_turn(turn, "approve/"), decisions).status_code == 200
    assert held(budget)[1] > 0
    assert run(turn) == TurnStatus.COMPLETED
    assert calls == ["ann"]
    assert_settled(budget)
