"""Postgres reads array literals as the items that were written."""

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amber.lib.database.array_literals import array_literal, plain_array_literal
from amber.lib.ids import new_id

pytestmark = pytest.mark.django_db

texts = st.text(
    st.one_of(
        st.sampled_from("\"\\{},' \nN"), st.characters(codec="utf-8", exclude_characters="\0")
    )
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.one_of(texts, st.just("NULL"), st.just("")), max_size=5))
def test_texts_come_back(items: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[]", [array_literal(items)])
        assert cursor.fetchone() == (items,)


def test_numbers_come_back() -> None:
    with connection.cursor() as cursor:
        for write in (array_literal, plain_array_literal):
            cursor.execute("SELECT %s::int[]", [write([3, -1])])
            assert cursor.fetchone() == ([3, -1],)


def test_ids_come_back() -> None:
    ids = [new_id(), new_id()]
    with connection.cursor() as cursor:
        for some in (ids, []):
            cursor.execute("SELECT %s::uuid[]", [plain_array_literal(some)])
            assert cursor.fetchone() == (some,)
