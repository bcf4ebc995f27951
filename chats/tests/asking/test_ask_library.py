"""Test asking a library once, and the plain conversation that its prompt is made of."""

from typing import Any

import pytest

from accounts.principal import Principal
from amber.lib.database.tenant import as_tenant
from chats import asking
from chats.asking import answer_of
from chats.messages.dialog import dialog_turns
from chats.models import ChatMessage, Turn
from chats.tests.rows import ABSENT, converse, new_chat, say
from chats.tests.runs import ask, run
from libraries.models import Library
from libraries.tests.ledger import ingest, new_document, new_library
from providers.models import OFFLINE_URL, LanguageModel, Provider
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
TEA = "Green tea is steeped at seventy degrees for two minutes."


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def library(alice: Any, new_model: Any) -> Any:
    new_model("fake-model", default=True)
    made = new_library(alice)
    new_document(made, PUMP, name="pump.txt")
    new_document(made, TEA, name="tea.txt", path="drinks/tea.txt")
    ingest()
    return Library.objects.select_related("embedding_model__provider").get(pk=made.pk)


def ask_library(library: Any, principal: Principal, **asked: Any) -> Any:
    with as_tenant(principal.tenant):
        return asking.ask_library(library, principal, **asked)


def address(library_id: Any) -> str:
    return f"/api/v1/libraries/{library_id}/ask/"


def test_the_prompt_has_the_passages_and_the_question(alice, library, fake_provider):
    question = "How is green tea steeped?"
    asked = ask_library(
        library,
        alice.principal,
        question=question,
        history=[{"user": "Hello", "assistant": "Hi there"}],
    )
    assert run(asked.turn) == "completed"
    prompt = fake_provider.requests(question)[-1]["messages"][-1]["content"]
    assert "<conversation>\n1. User: Hello\nYou: Hi there\n</conversation>" in prompt
    assert "<context>\n1. File Path: drinks/tea.txt\nContent: Green tea" in prompt
    assert prompt.endswith(f"<question>\n{question}\n</question>")
    assert "pump" not in prompt
    assert "tools" not in fake_provider.requests(question)[-1]


def test_the_answer_comes_with_what_it_cites(alice, library):
    offline = Provider.objects.create(name="Offline model", base_url=OFFLINE_URL)
    LanguageModel.objects.create(provider=offline, alias="quoting", upstream_id="offline")
    asked = ask_library(library, alice.principal, question="How is the pump bled?", model="quoting")
    assert run(asked.turn) == "completed"
    answer = answer_of(Turn.objects.get(pk=asked.turn.pk), asked.knowledge)
    assert "[1]" in answer["answer"]
    assert [c["document"]["name"] for c in answer["citations"]] == ["pump.txt"]


def test_a_short_question_is_searched_with_its_history(alice, library):
    history = [{"user": "How is green tea steeped?", "assistant": "Warm."}]
    asked = ask_library(library, alice.principal, question="And how long?", history=history)
    assert [p["document"]["name"] for p in asked.knowledge.passages] == ["tea.txt"]


def test_a_question_to_a_library_that_knows_nothing_of_it_has_no_context(alice, library):
    asked = ask_library(library, alice.principal, question="Who painted the Sistine chapel?")
    assert asked.turn.input is not None
    assert "<context>" not in asked.turn.input["messages"][0]["content"]


def test_another_tenant_and_strangers_find_no_library(mallory, bob, library):
    body = {"question": "How is the pump bled?"}
    assert api().post(address(library.pk), body).status_code == 401
    for persona in (mallory, bob):
        assert api(persona).post(address(library.pk), body).status_code == 404
    assert api(mallory).post(address(ABSENT), body).status_code == 404
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": " "},
        {"question": "x" * 20_001},
        {"question": "x", "history": [{"user": "x"}]},
        {"question": "x", "history": "y"},
        {"question": "x", "model": "nobody"},
    ],
    ids=["nothing", "empty", "blank", "long", "half a turn", "no list", "no model"],
)
def test_a_wrong_body_is_refused(alice, library, body):
    assert api(alice).post(address(library.pk), body).status_code == 400
    assert not Turn.objects.exists()


def test_the_plain_conversation_is_questions_with_their_answers(alice):
    chat = new_chat(alice)
    say(chat, "Be brief.", role="system")
    first, *_ = converse(chat, "Hi", "Hello")
    say(chat, "and more", role="assistant")
    say(chat, "unanswered")
    last, *_ = converse(chat, "Bye", "See you")
    chat.refresh_from_db()
    turns = [(turn.id, turn.user_query, turn.assistant_response) for turn in dialog_turns(chat)]
    assert turns == [(first.pk, "Hi", "Hello\nand more"), (last.pk, "Bye", "See you")]


def test_only_the_active_branch_is_told(alice):
    chat = new_chat(alice)
    first, _ = converse(chat, "Hi", "Hello")
    say(chat, "Bonjour", role="assistant", parent=first)
    chat.refresh_from_db()
    assert [turn.assistant_response for turn in dialog_turns(chat)] == ["Bonjour"]
    assert dialog_turns(new_chat(alice)) == []


def test_the_first_question_about_ones_own_document_is_answered_through_rest_and_in_a_chat(alice):
    """With the built-in embedder and model, in a library of one document."""
    offline = Provider.objects.create(name="Offline model", base_url=OFFLINE_URL)
    LanguageModel.objects.create(provider=offline, alias="o", upstream_id="offline", default=True)
    manual = new_library(alice)
    new_document(manual, PUMP, name="manual.txt")
    ingest()
    question = "What does the manual say about the valve?"
    found = api(alice).post(f"/api/v1/libraries/{manual.pk}/search/", {"query": question}).json()
    assert [each["document"]["name"] for each in found["results"]] == ["manual.txt"]
    turn = ask(alice, model="o", content=question, library=manual)
    assert run(turn) == "completed"
    (answer,) = ChatMessage.objects.filter(chat=turn.chat, role="assistant")
    assert "opening the valve" in answer.content
