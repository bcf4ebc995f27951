"""Test the tool that searches a conversation: what it lists, and how."""

from chats.context.search_tool import search_conversation
from chats.digest.blocks import seal
from chats.models import Chat
from chats.tests.context.earlier_talk import FACT, chat, models, small, talk
from chats.tests.rows import converse, new_turn
from tests.fixtures.tenants import for_organization
from tools.protocol import ToolContext

__all__ = ["chat", "models", "small"]


def search(chat: Chat, query: str) -> str:
    chat.refresh_from_db()
    turn = new_turn(chat, assistant=chat.assistant, status="completed")
    context = ToolContext(chat.organization_id, chat_id=chat.pk, turn_id=turn.pk)
    with for_organization(chat.organization_id):
        return search_conversation(context, query)


def test_the_tool_leaves_its_own_question_out_and_shows_what_was_said_around(chat):
    talk(chat, 60, (40, FACT), (41, "A fine name."))
    seal(chat.pk)
    converse(chat, "What is the name of Clara's cat Biscuit?")
    listed, _, around = search(chat, "Clara cat Biscuit").partition("\n\n")
    assert FACT in listed
    assert "What is the name" not in listed + around
    assert "A fine name." in listed + around


def test_the_tool_lists_ten_messages_the_nearest_ones(chat):
    talk(chat, 60, *((n, f"Clara's cat number {n} is called Biscuit.") for n in range(0, 60, 2)))
    seal(chat.pk)
    listed = search(chat, "Clara cat Biscuit 44").partition("\n\n")[0]
    lines = listed.splitlines()[1:]
    assert len(lines) == 10
    assert "number 44" in listed


def test_what_is_said_again_in_the_same_words_takes_one_place_with_its_times(chat):
    again = "Clara fed her cat Biscuit before breakfast."
    others = [(n, f"Clara's sister fed cat number {n}, called Biscuit.") for n in range(25, 35, 2)]
    talk(chat, 60, *((n, again) for n in range(0, 24, 2)), *others, (23, again))
    seal(chat.pk)
    lines = search(chat, "Who fed Clara's cat Biscuit?").partition("\n\n")[0].splitlines()[1:]
    assert len(lines) == 10
    by_user, *more = [line for line in lines if f"User: {again}" in line]
    assert not more
    assert len([line for line in lines if f"Assistant: {again}" in line]) == 1
    told, times = by_user.split(" (also said: ")
    assert told[1:17] not in times
    assert times.count("2026-01-01 ") == 5
    assert times.endswith(", 6 more times)")


def test_the_tool_finds_what_is_not_sealed_yet(chat):
    talk(chat, 30)
    seal(chat.pk)
    converse(chat, "My locker code is 4711.", "Noted.", "Which code?")
    assert "4711" in search(chat, "locker code")


def test_the_tool_shows_the_part_of_a_long_message(chat):
    long = "\n\n".join(f"Paragraph {n} is about gardens and rain. " * 12 for n in range(8))
    talk(chat, 60, (41, f"{long}\n\nClara's cat is called Biscuit."))
    seal(chat.pk)
    assert "Biscuit" in search(chat, "Clara cat Biscuit")
