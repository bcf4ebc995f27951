from typing import Any

import pytest
from django.db import connection
from django.db.models import Q

from amber.lib.search.tsvector import TokenVectorField
from amber.lib.search.words import tsquery_literal, tsvector_literal
from chats.models import Chat, ChatMessage

PAIRS = [
    ("我很健康", "健康", True),
    ("我很健康", "康", True),
    ("我很健康", "生病", False),
    ("Write it in C++ now", "c++", True),
    ("Write it in C++ now", "C", False),
    ("Part AB-1234/5.6 is out", "AB-1234/5.6", True),
    ("call foo_bar.baz()", "foo_bar.baz()", True),
    ("it's \\ 'quoted' & | ! : *", "quoted", True),
]


def found(query: str) -> Any:
    return ChatMessage.objects.filter(Q(search__matches=tsquery_literal(query)))


@pytest.fixture
def chat(alice):
    return Chat.objects.create(organization=alice.organization, user=alice.user)


@pytest.mark.parametrize(("text", "query", "is_found"), PAIRS)
def test_the_column_holds_our_own_tokens(chat, text, query, is_found):
    ChatMessage.objects.create(
        organization=chat.organization,
        chat=chat,
        role="human",
        content=text,
        search=tsvector_literal(text),
    )
    assert found(query).exists() is is_found


def test_null_matches_nothing_and_bulk_writes_are_cast_too(chat):
    new = {"organization": chat.organization, "chat": chat, "role": "human"}
    ChatMessage.objects.bulk_create(
        [ChatMessage(**new), ChatMessage(**new, search=tsvector_literal("rain and C++"))]
    )
    assert found("rain").count() == 1
    ChatMessage.objects.update(search=tsvector_literal("sun"))
    assert found("sun").count() == 2


def test_what_was_read_can_be_saved_again(chat):
    message = ChatMessage.objects.create(
        organization=chat.organization,
        chat=chat,
        role="human",
        search=tsvector_literal("it's C++ \\ AB-1234/5.6 我很健康"),
    )
    message.refresh_from_db()
    message.save()
    for query in ("C++", "AB-1234/5.6", "健康"):
        assert found(query).exists()


def test_the_database_knows_the_type(chat):
    assert TokenVectorField().db_type(connection) == "tsvector"
