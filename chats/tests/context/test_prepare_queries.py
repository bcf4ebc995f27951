"""Test that queries whose SQL is cached find what their querysets find."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db.models import QuerySet
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.group_services import delete_group, grant_right
from accounts.tenancy.access import find_visible
from amber.lib.database.cached_sql import cache_sql, raw_rows
from assistants.models import Assistant
from chats.models import Chat, ChatMessage, Turn
from chats.tests.rows import new_assistant, new_chat, new_turn, say
from tests.fixtures.personas import OPERATOR, new_group

pytestmark = pytest.mark.django_db(transaction=True)


@cache_sql
def _of_chat(*, chat_id: UUID) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.filter(chat=chat_id).order_by("position")


@cache_sql
def _first_positions(count: int, /, *, chat_id: UUID) -> QuerySet[ChatMessage, tuple[int]]:
    rows = ChatMessage.objects.filter(chat=chat_id).order_by("position")
    return rows.values_list("position")[:count]


@cache_sql
def _joined(*, turn_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.select_related("chat", "assistant", "question", "api_key").filter(
        pk=turn_id
    )


def test_each_call_is_given_its_own_values(alice):
    first, second = new_chat(alice), new_chat(alice)
    said = [say(first, "one"), say(first, "two")]
    other = say(second, "three")
    assert _of_chat(chat_id=first.pk) == said
    assert _of_chat(chat_id=second.pk) == [other]
    assert _of_chat(chat_id=uuid4()) == []


def test_the_shape_makes_another_statement(alice):
    chat = new_chat(alice)
    for text in ("one", "two", "three"):
        say(chat, text)
    assert _first_positions(2, chat_id=chat.pk) == [(0,), (1,)]
    assert _first_positions(1, chat_id=chat.pk) == [(0,)]


def test_rows_are_those_of_the_queryset_with_what_was_joined(alice, django_assert_num_queries):
    turn = new_turn(new_chat(alice), usage={"total_tokens": 3})
    (found,) = _joined(turn_id=turn.pk)
    with django_assert_num_queries(0):
        assert found.chat == turn.chat
        assert found.assistant == turn.assistant
        assert found.api_key is None
    stored = Turn.objects.get(pk=turn.pk)
    names = [column.attname for column in Turn._meta.concrete_fields]
    assert [getattr(found, name) for name in names] == [getattr(stored, name) for name in names]
    found.seq = 7
    found.save()
    assert Turn.objects.get(pk=turn.pk).seq == 7


@cache_sql
def _limited(*, count: int) -> QuerySet[Chat]:
    return Chat.objects.all()[:count]


@cache_sql
def _annotated(*, chat_id: UUID) -> QuerySet[Chat]:
    return Chat.objects.annotate(lower=Lower("name")).filter(pk=chat_id)


@cache_sql
def _prefetched(*, chat_id: UUID) -> QuerySet[Chat]:
    return Chat.objects.prefetch_related("turns").filter(pk=chat_id)


def test_what_cannot_be_bound_is_refused():
    with pytest.raises(TypeError, match="count"):
        _limited(count=3)
    with pytest.raises(TypeError):
        _prefetched(chat_id=uuid4())


def test_rows_of_hand_written_sql_are_those_of_the_model(alice):
    chat = new_chat(alice)
    call = {"id": "c1", "name": "f", "arguments": "{}", "reply_id": None}
    message = say(chat, "one", role="tool_call", tool_call=call)
    sql = "SELECT id, chat_id, role, content, tool_call, created_at FROM chats_chatmessage"
    (found,) = raw_rows(ChatMessage, f"{sql} WHERE id = %s", [message.pk])
    assert found == message
    assert (found.tool_call, found.created_at) == (call, message.created_at)
    assert found.get_deferred_fields() >= {"position", "citations"}
    assert (found.position, found.citations, found.chat) == (0, [], chat)
    found.content = "two"
    found.save()
    assert ChatMessage.objects.get().content == "two"


def test_annotations_come_along(alice):
    for name in ("One", "Two"):
        (found,) = _annotated(chat_id=new_chat(alice, name=name).pk)
        assert getattr(found, "lower") == name.lower()  # noqa: B009  (the model has no such field)


@pytest.mark.parametrize("caller", ["alice", "bob", "carol", "mallory"])
@pytest.mark.parametrize("kind", ["chat", "expired", "private", "shared", "granted", "ungranted"])
def test_people_find_what_is_visible_to_them(alice, caller, kind, request):
    """Cached SQL and queryset agree, whoever asked before."""
    past = timezone.now() - timedelta(seconds=1)
    row: Any = {
        "chat": lambda: new_chat(alice),
        "expired": lambda: new_chat(alice, expired_at=past),
        "private": lambda: new_assistant(alice),
        "shared": lambda: new_assistant(alice, shared=True),
        "granted": lambda: new_assistant(alice),
        "ungranted": lambda: new_assistant(alice),
    }[kind]()
    if kind in ("granted", "ungranted"):
        bob = request.getfixturevalue("bob")
        group = new_group("Support", bob)
        grant_right(row, group=group, right="use", by=OPERATOR)
        find_visible(Assistant, bob.principal, row.pk)
        if kind == "ungranted":
            delete_group(group, by=OPERATOR)
    find_visible(type(row), alice.principal, row.pk)
    principal = request.getfixturevalue(caller).principal
    found = find_visible(type(row), principal, row.pk)
    assert found == type(row).objects.visible_to(principal).filter(pk=row.pk).first()
    assert (found is not None) == (
        caller
        in {
            "chat": ["alice"],
            "private": ["alice"],
            "ungranted": ["alice"],
            "expired": [],
        }.get(kind, ["alice", "bob", "carol"])
    )


def test_a_member_finds_nothing_by_the_grants_of_others(alice, bob, carol):
    """The statement of admins, who have those of every group, is another one."""
    row = new_assistant(alice)
    grant_right(row, group=new_group("Support", alice), right="edit", by=OPERATOR)
    assert find_visible(Assistant, carol.principal, row.pk) == row
    assert find_visible(Assistant, bob.principal, row.pk) is None
    assert find_visible(Assistant, carol.principal, row.pk) == row
