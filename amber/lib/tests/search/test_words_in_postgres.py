"""Postgres accepts every literal, and `@@` finds what the words promise."""

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amber.lib.search.words import tsquery_literal, tsvector_literal

pytestmark = pytest.mark.django_db

shared_database = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def matches(query: str, text: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::tsvector @@ %s::tsquery", [tsvector_literal(text), tsquery_literal(query)]
        )
        row = cursor.fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("健康", "我想了解健康知识"),
        ("康", "我想了解健康知识"),
        ("2024年", "在2024年春天"),
        ("C++", "Written in C++."),
        ("foo_bar", "foo_bar.baz()"),
        ("1234/5.6", "AB-1234/5.6"),
        ("c:\\users\\x", "C:\\Users\\x"),
    ],
)
def test_postgres_finds_it(query: str, text: str) -> None:
    assert matches(query, text)


@pytest.mark.parametrize(("query", "text"), [("c", "C++"), ("AB-1234", "AB is not 1234")])
def test_postgres_does_not_find_it(query: str, text: str) -> None:
    assert not matches(query, text)


@shared_database
@given(st.text())
def test_any_text_is_accepted_and_found_by_itself(text: str) -> None:
    assert tsquery_literal(text) is None or matches(text, text)
    any_of_it = tsquery_literal(text, "any")
    if any_of_it is not None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::tsquery", [any_of_it])


def test_the_largest_vector_and_query_are_accepted() -> None:
    assert matches("0 1 2", " ".join(map(str, range(300_000))))
    compound = ".".join("x" * 400 + str(number) for number in range(200))
    huge = " ".join(f"{compound}{number}" for number in range(100))
    with connection.cursor() as cursor:
        for mode in ("all", "any"):
            cursor.execute("SELECT %s::tsquery", [tsquery_literal(huge, mode)])
        cursor.execute("SELECT %s::tsvector", [tsvector_literal("д" * 5_000 + " x" * 50_000)])
