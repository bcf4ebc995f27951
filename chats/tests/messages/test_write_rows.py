"""Test that rows written by cached statements are stored as `save` stores them."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection
from django.db.models import F
from django.utils import timezone

from amber.lib.database.cached_update import _reading, insert_row, update_row
from amber.lib.search.words import tsquery_literal, tsvector_literal
from chats.models import ChatMessage, Turn
from chats.tests.rows import new_chat, new_turn, say
from providers.models import UsageRecord

pytestmark = pytest.mark.django_db(transaction=True)


def _unsaved(alice, **fields):
    chat = new_chat(alice)
    fields = {"chat": chat, "organization": alice.organization, "role": "human"} | fields
    return ChatMessage(**fields)


def test_an_inserted_row_is_stored_whole_and_counts_as_stored(alice):
    said = {"content": "Hello 健康", "citations": [{"n": 1}], "search": tsvector_literal("Hello")}
    message = _unsaved(alice, **said)
    insert_row(message)
    stored = ChatMessage.objects.get(pk=message.pk)
    columns = [each.attname for each in ChatMessage._meta.concrete_fields if each.name != "search"]
    assert [getattr(stored, name) for name in columns] == [
        getattr(message, name) for name in columns
    ]
    found = ChatMessage.objects.filter(search__matches=tsquery_literal("hello"))  # type: ignore[misc]
    assert found.get() == stored
    message.content = "Goodbye"
    message.save()
    assert ChatMessage.objects.get(pk=message.pk).content == "Goodbye"


def test_a_row_is_inserted_once(alice):
    message = _unsaved(alice, content="Hello")
    insert_row(message)
    with pytest.raises(IntegrityError):
        insert_row(message)


def test_named_columns_alone_are_updated_and_the_time_of_it(alice):
    chat = new_chat(alice)
    say(chat)
    turn = new_turn(chat)
    Turn.objects.filter(pk=turn.pk).update(updated_at=timezone.now() - timedelta(days=1))
    turn.usage, turn.error, turn.seq = {"total_tokens": 3}, None, 5
    assert update_row(turn, "usage", "error", "updated_at")
    stored = Turn.objects.get(pk=turn.pk)
    assert (stored.usage, stored.error, stored.seq) == ({"total_tokens": 3}, None, 0)
    assert timezone.now() - stored.updated_at < timedelta(hours=1)


def test_nothing_is_updated_where_the_row_is_not_as_asked(alice):
    chat = new_chat(alice)
    say(chat)
    turn = new_turn(chat, fence=2)
    turn.seq = 5
    assert not update_row(turn, "seq", where={"fence": 1})
    assert Turn.objects.get(pk=turn.pk).seq == 0
    assert update_row(turn, "seq", where={"fence": 2, "status": "queued"})
    assert Turn.objects.get(pk=turn.pk).seq == 5


def test_expressions_are_refused(alice):
    chat = new_chat(alice)
    say(chat)
    turn = new_turn(chat)
    turn.seq = F("seq") + 1
    with pytest.raises(TypeError):
        update_row(turn, "seq")


def test_a_time_without_a_zone_is_refused(alice):
    chat = new_chat(alice)
    say(chat)
    turn = new_turn(chat)
    turn.digest_at = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(TypeError):
        update_row(turn, "digest_at")


@pytest.mark.parametrize("model", [ChatMessage, Turn, UsageRecord])
def test_values_are_written_as_their_fields_would(model):
    made = {bool: True, str: "a", int: 7, UUID: uuid4(), datetime: timezone.now()}
    for column in model._meta.concrete_fields:
        _, kind, adapt = _reading(column)
        if kind is not None:
            written, asked = adapt(made[kind]), column.get_db_prep_save(made[kind], connection)
            assert (type(written), written) == (type(asked), asked), column
