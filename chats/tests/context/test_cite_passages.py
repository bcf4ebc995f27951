"""Test libraries in turns: what is found is a message, a source, and cited by its number."""

from typing import Any

import pytest

from amber.lib.database.lease import Fenced
from chats import services
from chats.context.knowledge import cited_in
from chats.models import ChatMessage, Turn
from chats.running.writer import TurnWriter
from chats.tests.event_streams import stream_of
from chats.tests.rows import expire, messages, new_assistant, new_chat, of_turn, say
from chats.tests.runs import ask_in, assert_stored_is_what_was_streamed, prepared_for, run
from chats.turns import sweep
from engine.provider.model import TextChunk
from engine.provider.offline import OfflineModel, calls_ordered
from libraries.models import Document
from libraries.tests.ledger import ingest, new_document, new_library
from providers.models import OFFLINE_URL, LanguageModel, Provider
from tests.fixtures.personas import api
from tests.rest.documented import check

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = "The pump is bled by opening the valve on its left side until no air comes out."
TEA = "Green tea is steeped at seventy degrees for two minutes."
REVENUE = "In 2022 the revenue of Acme was 12 million. In 2023 the revenue of Acme was 15 million."


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def chat(alice: Any, new_model: Any) -> Any:
    new_model("fake-model", default=True)
    library = new_library(alice)
    for name, text in {"pump.txt": PUMP, "tea.txt": TEA, "acme.txt": REVENUE}.items():
        new_document(library, text, name=name)
    ingest()
    return new_chat(alice, assistant=new_assistant(alice, library=library))


@pytest.fixture
def quoting(chat: Any) -> Any:
    """The same chat, answered by a model that makes the calls it is told to, and quotes."""
    offline = Provider.objects.create(name="Offline model", base_url=OFFLINE_URL)
    LanguageModel.objects.create(provider=offline, alias="quoting", upstream_id="offline")
    chat.assistant.model = "quoting"
    chat.assistant.save()
    return chat


def ask(chat: Any, alice: Any, content: str) -> Any:
    turn = ask_in(chat, alice, content)
    assert run(turn) == "completed"
    turn.refresh_from_db()
    return turn


def knowledge_of(turn: Turn) -> ChatMessage:
    return ChatMessage.objects.get(turn=turn, role="knowledge")


def test_what_was_found_is_a_message_and_told_as_sources(alice, chat, fake_provider):
    turn = ask(chat, alice, "How is the pump bled?")
    stored = knowledge_of(turn)
    assert stored.content.startswith("[1] pump.txt\nThe pump is bled")
    assert "tea" not in stored.content
    assert stored.citations[0]["document"]["name"] == "pump.txt"
    events = [event["event"] for event in stream_of(turn)]
    assert events.index("turn.started") < events.index("source.added")
    assert events.index("source.added") < events.index("message.stored")
    assert_stored_is_what_was_streamed(turn)
    asked = str(fake_provider.requests("How is the pump bled?")[-1]["messages"])
    assert "Relevant passages from the library:" in asked
    assert "opening the valve on its left side" in asked


def test_the_answers_citations_resolve_through_every_api(alice, quoting):
    chat = quoting
    turn = ask(chat, alice, "How is the pump bled?")
    answer = ChatMessage.objects.get(turn=turn, role="assistant")
    assert "[1]" in answer.content
    expected = knowledge_of(turn).citations[:1]
    assert answer.citations == expected
    assert api(alice).get(messages(chat)).json()["results"][-1]["citations"] == expected
    Document.objects.all().delete()
    assert api(alice).get(messages(chat)).json()["results"][-1]["citations"] == expected


def test_nothing_is_searched_for_small_talk(alice, chat):
    turn = ask(chat, alice, "Hello!")
    assert not ChatMessage.objects.filter(turn=turn, role="knowledge").exists()


def test_a_question_the_library_knows_nothing_of_gets_an_empty_message(alice, chat, fake_provider):
    question = "Who painted the ceiling of the Sistine chapel?"
    turn = ask(chat, alice, question)
    assert knowledge_of(turn).content == ""
    assert "The library holds nothing relevant" in str(fake_provider.requests(question)[-1])
    assert "source.added" not in [event["event"] for event in stream_of(turn)]


def test_a_short_question_is_searched_with_the_one_before_it(alice, chat):
    ask(chat, alice, "What was the revenue of Acme in 2022?")
    turn = ask(chat, alice, "And in 2023?")
    assert "15 million" in knowledge_of(turn).content


def test_old_passages_are_not_repeated(alice, chat, fake_provider):
    ask(chat, alice, "How is the pump bled?")
    ask(chat, alice, "How long is green tea steeped?")
    asked = str(fake_provider.requests("How long is green tea steeped?")[-1]["messages"])
    assert "seventy degrees" in asked
    assert "opening the valve" not in asked


def test_a_library_its_owner_took_back_is_not_searched(alice, bob, chat):
    library = chat.assistant.library
    library.user, library.shared = bob.user, False
    library.save()
    turn = ask(chat, alice, "How is the pump bled?")
    assert not ChatMessage.objects.filter(turn=turn, role="knowledge").exists()


def test_the_manifest_names_the_passages_and_the_request_can_be_made_again(alice, chat):
    turn = ask(chat, alice, "How is the pump bled?")
    manifest = api(alice).get(of_turn(turn, "manifest/?request=true")).json()
    (passage,) = manifest["passages"]
    assert "PassagePart" in check("get", of_turn(turn, "manifest/"), 200, manifest)
    assert passage["chunk_ids"] == knowledge_of(turn).citations[0]["chunk_ids"]
    assert manifest["tokens"]["passages"] == passage["tokens"] > 0
    assert "opening the valve" in str(manifest["request"])


def test_an_attempt_that_resumes_uses_what_the_first_one_found(alice, chat):
    turn = ask_in(chat, alice, "How is the pump bled?")
    row = Turn.objects.select_related("chat", "assistant", "question", "organization", "user")
    first = prepared_for(row.get(pk=turn.pk))
    assert first.knowledge is not None
    assert list(first.citable) == first.knowledge.passages
    chat.refresh_from_db()
    stored = say(
        chat,
        first.knowledge.content,
        role="knowledge",
        citations=list(first.knowledge.passages),
        turn=turn,
    )
    Turn.objects.filter(pk=turn.pk).update(tip=stored)
    again = prepared_for(row.get(pk=turn.pk))
    assert again.knowledge is None
    assert list(again.citable) == list(first.citable)
    assert again.request.messages == first.request.messages


# -- Passages that tools found ---------------------------------------------------------------------

SEARCHES = """/search_library {"query": "The pump is bled by opening the valve on its left side"}
/search_library {"query": "green tea steeped"}"""


@pytest.fixture
def searched(alice: Any, quoting: Any, settings: Any) -> Any:
    """A turn whose question finds one passage, and whose two calls find that one and another."""
    settings.AMBER_PASSAGE_TOKENS = 1
    return ask_in(quoting, alice, SEARCHES)


def numbered(passages: Any) -> dict[str, int]:
    return {passage["document"]["name"]: passage["number"] for passage in passages}


def test_what_a_tool_found_is_numbered_on_and_cited(alice, searched):
    assert run(searched) == "completed"
    known = numbered(knowledge_of(searched).citations)
    assert list(known.values()) == [1]
    results = ChatMessage.objects.filter(turn=searched, role="tool").order_by("position")
    found = [numbered(row.citations) for row in results]
    assert {frozenset(each) for each in found} == {
        frozenset({"pump.txt"}),
        frozenset({"tea.txt"}),
    }
    numbers = {**found[0], **found[1]}
    assert numbers.items() >= known.items(), "one passage has one number"
    assert set(numbers.values()) == {1, 2}
    for row in results:
        (passage,) = row.citations
        assert row.content.startswith(f"[{passage['number']}] {passage['document']['name']}\n")
    answer = api(alice).get(messages(searched.chat)).json()["results"][-1]
    assert answer["role"] == "assistant"
    assert numbered(answer["citations"]) == numbers
    assert_stored_is_what_was_streamed(searched)


def test_passages_of_tools_are_told_before_their_result(searched):
    run(searched)
    events = stream_of(searched)
    for number in (1, 2):
        (result,) = [
            place
            for place, event in enumerate(events)
            if event["event"] == "message.stored"
            and event["message"]["role"] == "tool"
            and event["message"]["citations"][0]["number"] == number
        ]
        told = events[result - 1]
        assert (told["event"], told["passage"]["number"]) == ("source.added", number)


def test_a_worker_that_takes_over_cites_what_the_lost_one_found(searched, monkeypatch):
    store_reply = TurnWriter.store_reply

    def die_at_the_answer(writer: Any, reply: Any, seq: int) -> None:
        if not reply.calls:
            raise Fenced
        store_reply(writer, reply, seq)

    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "store_reply", die_at_the_answer)
        assert run(searched) is None
    expire(searched)
    sweep.sweep_turns()
    assert run(searched, "w2") == "completed"
    answer = ChatMessage.objects.get(turn=searched, role="assistant")
    assert set(numbered(answer.citations).values()) == {1, 2}
    assert_stored_is_what_was_streamed(searched)


def test_what_is_said_in_front_of_calls_cites_too(searched, monkeypatch):
    stream = OfflineModel.stream

    async def talkative(model: Any, request: Any) -> Any:
        if calls_ordered(request):
            yield TextChunk("As [1] says. I look further.")
        async for part in stream(model, request):
            yield part

    monkeypatch.setattr(OfflineModel, "stream", talkative)
    assert run(searched) == "completed"
    calls = ChatMessage.objects.filter(turn=searched, role="tool_call").order_by("position")
    assert [numbered(call.citations) for call in calls] == [{"pump.txt": 1}, {}]
    assert_stored_is_what_was_streamed(searched)


def test_what_a_tool_found_is_cited_without_a_chat_too(alice, quoting, settings):
    settings.AMBER_PASSAGE_TOKENS = 1
    turn: Any = services.start_stateless_turn(
        alice.principal,
        assistant=quoting.assistant,
        messages=[{"role": "human", "content": SEARCHES}],
    )
    assert run(turn) == "completed"
    answer = turn.output["messages"][-1]
    assert set(numbered(answer["citations"]).values()) == {1, 2}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("As [2] says, and [1].", [2, 1]),
        ("Both [1, 3] and [3].", [1, 3]),
        ("见【2】和[1，2]。", [2, 1]),
        ("No [9], no [0], no (1), no 1.", []),
        ("a[1]b[1]", [1]),
    ],
)
def test_citations_are_numbers_in_brackets(text, numbers):
    passages = [{"number": number} for number in (1, 2, 3)]
    assert [passage["number"] for passage in cited_in(text, passages)] == numbers
