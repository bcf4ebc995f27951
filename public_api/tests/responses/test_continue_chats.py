"""Chat completions in stored chats, and for guests whom a program names."""

import json
from typing import Any

import openai
import pytest

from accounts.tenancy.access import get_visible
from amber.lib.errors import Missing
from chats import services
from chats.models import Chat, ChatMessage, ChatOwner, Turn
from chats.tests.rows import ABSENT, new_assistant, new_chat
from chats.tests.runs import marker
from engine.events import TurnStatus
from libraries.models import File
from public_api.tests.completions import SIX, SLOW, WEATHER, ask, png_url, said, seen_by_model
from public_api.tests.live_server import sdk, until
from tests.fakes.answers import answer_text
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db(transaction=True)

CHAT_ID = "x-amber-chat-id"


@pytest.fixture(autouse=True)
def model(new_model):
    new_model(default=True)
    return new_model("fake-echo")


@pytest.fixture
def ada(alice):
    return new_assistant(alice, model="fake-echo", slug="ada", prompt="You are Ada.")


def begin(client: Any, content: Any = SIX, **more: Any) -> tuple[Any, Chat]:
    """A new chat's first answer."""
    raw = client.chat.completions.with_raw_response.create(
        messages=content if isinstance(content, list) else [said(content)],
        metadata={"chat_id": "new"},
        **{"model": "fake-model"} | more,
    )
    return raw.parse(), Chat.objects.get(pk=raw.headers[CHAT_ID])


def go_on(client: Any, chat: Any, content: Any = SIX, **more: Any) -> Any:
    metadata = {"chat_id": str(getattr(chat, "pk", chat))}
    return ask(client, content, metadata=metadata, **more)


def rows_of(chat: Chat) -> list[tuple[str, str]]:
    rows = ChatMessage.objects.filter(chat=chat).order_by("position")
    return [(row.role, row.content) for row in rows]


# -- It goes on ----------------------------------------------------------------------------------


def test_a_chat_begins_and_goes_on(client, alice, ada):
    history = [said("One"), {"role": "assistant", "content": "Two"}, said("Three")]
    answer, chat = begin(client, history, model="assistant:ada")
    assert (chat.owner, chat.user, chat.assistant) == (ChatOwner.API, alice.user, ada)
    assert chat.name == "Three"
    roles = ["human", "assistant", "human", "assistant"]
    assert [role for role, _ in rows_of(chat)] == roles
    again = go_on(client, chat, "Four", model="assistant:ada")
    assert [m["content"][-5:] for m in seen_by_model(again)][-1].endswith("Four")
    assert rows_of(chat)[:3] == [("human", "One"), ("assistant", "Two"), ("human", "Three")]
    assert rows_of(chat)[3][1] == answer.choices[0].message.content
    assert [role for role, _ in rows_of(chat)] == [*roles, "human", "assistant"]


def test_a_chat_takes_a_long_beginning(client):
    messages = [said(f"{number}") for number in range(1_200)]
    _, chat = begin(client, messages)
    assert rows_of(chat)[:-1] == [("human", f"{number}") for number in range(1_200)]
    assert rows_of(chat)[-1][0] == "assistant"
    asked = ChatMessage.objects.get(chat=chat, position=1_199)
    turn = Turn.objects.get()
    assert (turn.question, asked.turn_id) == (asked, turn.pk)


def test_only_what_follows_the_last_answer_is_new(client):
    _, chat = begin(client)
    history = [said("other"), {"role": "assistant", "content": "words"}, said("a"), said("b")]
    go_on(client, chat, history)
    assert [content for _, content in rows_of(chat)] == [
        SIX,
        answer_text(6),
        "a",
        "b",
        answer_text(6),
    ]


def test_system_messages_apply_to_that_run_alone(client):
    _, chat = begin(client, [{"role": "system", "content": "Be brief."}, said("One")])
    first, second = (
        seen_by_model(go_on(client, chat, messages, model="fake-echo"))
        for messages in ([said("Two"), {"role": "system", "content": "Rhyme."}], [said("Three")])
    )
    assert first[0] == {"role": "system", "content": "Rhyme."}
    assert second[0]["role"] == "user"
    assert {role for role, _ in rows_of(chat)} == {"human", "assistant"}


def test_a_header_names_the_chat_too(client):
    _, chat = begin(client)
    ask(client, extra_headers={"X-Amber-Chat-Id": str(chat.pk)})
    assert len(rows_of(chat)) == 4


def test_an_idempotency_key_is_of_one_chat(client):
    chats = [begin(client)[1] for _ in range(2)]
    first, second = ({"Idempotency-Key": "once", "X-Amber-Chat-Id": str(c.pk)} for c in chats)
    ask(client, extra_headers=first)
    with pytest.raises(openai.ConflictError) as caught:
        ask(client, extra_headers=second)
    assert caught.value.code == "idempotency_mismatch"


def test_a_chat_that_is_no_text_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, metadata={"chat_id": 7})
    assert (caught.value.param, caught.value.code) == ("metadata.chat_id", "invalid_type")
    assert not Turn.objects.exists()


def test_results_of_the_clients_functions_are_kept(client):
    question = said(marker("weather", {"city": "Oslo"}))
    answer, chat = begin(client, [question], tools=[WEATHER])
    (call,) = answer.choices[0].message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rain"}
    last = go_on(client, chat, [answer.choices[0].message, result], tools=[WEATHER])
    assert last.choices[0].message.content == answer_text(6)
    assert [role for role, _ in rows_of(chat)] == ["human", "tool_call", "tool", "assistant"]


def test_a_result_that_nobody_waits_for_is_refused(client):
    _, chat = begin(client)
    function = {"name": "weather", "arguments": "{}"}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    with pytest.raises(openai.BadRequestError) as caught:
        go_on(client, chat, [calling, {"role": "tool", "tool_call_id": "c", "content": "x"}])
    assert caught.value.param == "messages"
    assert len(rows_of(chat)) == 2


def test_images_stay_in_the_chat(client):
    image = {"type": "image_url", "image_url": {"url": png_url()}}
    _, chat = begin(client, [said([{"type": "text", "text": "What?"}, image])])
    assert [role for role, _ in rows_of(chat)] == ["human", "file", "assistant"]
    assert File.objects.get().expired_at is None


def test_a_turn_in_a_chat_goes_on_without_its_client(client):
    _, chat = begin(client)
    with go_on(client, chat, "[[fake tokens=20 itl=20]]", stream=True) as stream:
        next(iter(stream))
    until(lambda: len(rows_of(chat)) == 4)
    assert rows_of(chat)[-1] == ("assistant", answer_text(20))


def test_a_chat_answers_one_at_a_time(client):
    _, chat = begin(client)
    with go_on(client, chat, SLOW, stream=True) as stream:
        next(iter(stream))
        with pytest.raises(openai.ConflictError) as caught:
            go_on(client, chat)
        assert caught.value.code == "turn_in_progress"
        live = Turn.objects.get(status=TurnStatus.RUNNING)
        services.cancel_turn(live)


def test_nothing_new_is_refused(client):
    _, chat = begin(client)
    for messages in (
        [said("One"), {"role": "assistant", "content": "Two"}],
        [{"role": "system", "content": "Be brief."}],
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            go_on(client, chat, messages)
        assert caught.value.param == "messages"


# -- Whose it is ---------------------------------------------------------------------------------


def test_other_chats_are_not_there(client, alice, bob, mallory):
    """Nor are those that the key's own user began as a person."""
    chats = [new_chat(persona, owner="api").pk for persona in (bob, mallory)]
    for chat_id in [*chats, new_chat(alice).pk, ABSENT, "nonsense"]:
        with pytest.raises(openai.NotFoundError) as caught:
            go_on(client, chat_id)
        assert (caught.value.code, caught.value.param) == ("not_found", "metadata.chat_id")
    assert not Turn.objects.exists()


def test_a_bound_key_goes_on_in_its_own_chats_only(address, alice, client, ada):
    other = new_assistant(alice, model="fake-echo", slug="other")
    _, secret = alice.new_key(scopes=["public"], assistant_id=ada.pk)
    _, of_another_key = begin(client, model="assistant:ada")
    _, foreign = begin(client, model="assistant:other")
    assert foreign.assistant == other
    with sdk(address, secret) as bound:
        _, mine = begin(bound, model="assistant:ada")
        go_on(bound, mine, model="assistant:ada")
        for chat in (of_another_key, foreign):
            with pytest.raises(openai.NotFoundError):
                go_on(bound, chat, model="assistant:ada")


def test_a_guests_chat_is_the_guests_alone(client, alice):
    _, chat = begin(client, user="visitor 7")
    assert (chat.owner, chat.guest_id) == (ChatOwner.GUEST, f"{alice.user.pk}:visitor 7")
    go_on(client, chat, user="visitor 7")
    assert len(rows_of(chat)) == 4
    for other in ({}, {"user": "visitor 8"}):
        with pytest.raises(openai.NotFoundError):
            go_on(client, chat, **other)
    with pytest.raises(Missing):
        get_visible(Chat, alice.principal, chat.pk)
    assert str(chat.pk) not in json.dumps(api(alice).get("/api/v1/chats/?owner=guest").json())


def test_guests_of_another_users_key_are_others(address, client, bob):
    _, chat = begin(client, user="visitor 7")
    with (
        sdk(address, bob.new_key(scopes=["public"])[1]) as client_tools,
        pytest.raises(openai.NotFoundError),
    ):
        go_on(client_tools, chat, user="visitor 7")


def test_guests_outlive_their_key(address, client, alice):
    """A key is replaced, and the guests of its user stay who they are."""
    _, chat = begin(client, user="visitor 7")
    with sdk(address, alice.new_key(scopes=["public"])[1]) as renewed:
        go_on(renewed, chat, user="visitor 7")
    assert len(rows_of(chat)) == 4
