"""Pages, newest first: no row twice, none missing, whatever shares a date."""

import base64
import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.test import RequestFactory
from rest_framework.request import Request

from amber.lib.errors import Invalid
from amber.lib.rest.pages import NewestFirst

pytestmark = pytest.mark.django_db

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def add_rows(*minutes: int) -> list[str]:
    """Rows made at NOON plus so many minutes; their slugs."""
    model = apps.get_model("accounts", "Organization")
    first = model._default_manager.count()
    rows = [
        model(name="x", slug=f"row-{first + number}", created_at=NOON)
        for number in range(len(minutes))
    ]
    model._default_manager.bulk_create(rows)
    for row, minute in zip(rows, minutes, strict=True):
        row.created_at = NOON + datetime.timedelta(minutes=minute)
    model._default_manager.bulk_update(rows, ["created_at"])
    return [row.slug for row in rows]


def page_at(address: str, rf: RequestFactory) -> tuple[list[str], dict[str, Any]]:
    parts = urlsplit(address)
    request = Request(rf.get(f"{parts.path}?{parts.query}"))
    pages = NewestFirst()
    rows = apps.get_model("accounts", "Organization")._default_manager.filter(
        slug__startswith="row-"
    )
    slugs = [row.slug for row in pages.paginate_queryset(rows, request)]
    return slugs, pages.get_paginated_response(slugs).data


def walked(address: str | None, way: str, rf: RequestFactory) -> list[list[str]]:
    found = []
    while address:
        slugs, body = page_at(address, rf)
        found.append(slugs)
        address = body[way]
    return found


def test_a_walk_there_and_back_sees_each_row_once(rf: RequestFactory) -> None:
    slugs = add_rows(3, 3, 3, 3, 3, 1, 2, 2, 9)
    there = walked("/x/?limit=2&name=x", "next", rf)
    seen = [slug for page in there for slug in page]
    assert sorted(seen) == sorted(slugs)
    assert seen[0] == slugs[8]
    assert seen[-1] == slugs[5]
    last_address = "/x/?limit=2"
    while (following := page_at(last_address, rf)[1]["next"]) is not None:
        last_address = following
    back = walked(last_address, "previous", rf)
    assert [slug for page in reversed(back) for slug in page] == seen


def test_links_keep_the_filters_and_the_first_page_has_none_before_it(rf: RequestFactory) -> None:
    add_rows(1, 2, 3)
    _, body = page_at("/x/?limit=2&name=x", rf)
    assert body["previous"] is None
    assert "name=x" in body["next"]
    assert "limit=2" in body["next"]
    _, last = page_at(body["next"], rf)
    assert last["next"] is None
    assert last["previous"] is not None


def test_rows_that_come_meanwhile_move_nothing(rf: RequestFactory) -> None:
    slugs = add_rows(1, 2, 3, 4)
    _, body = page_at("/x/?limit=2", rf)
    new = add_rows(8, 9)
    older, body = page_at(body["next"], rf)
    assert older == [slugs[1], slugs[0]]
    newer, body = page_at(body["previous"], rf)
    assert newer == [slugs[3], slugs[2]]
    newest, body = page_at(body["previous"], rf)
    assert newest == [new[1], new[0]]
    assert body["previous"] is None


def test_a_page_whose_rows_are_gone_still_leads_back(rf: RequestFactory) -> None:
    slugs = add_rows(1, 2, 3)
    _, body = page_at("/x/?limit=2", rf)
    rows = apps.get_model("accounts", "Organization")._default_manager
    rows.filter(slug=slugs[0]).delete()
    empty, body = page_at(body["next"], rf)
    assert (empty, body["next"]) == ([], None)
    assert page_at(body["previous"], rf)[0] == [slugs[2]]


def test_the_page_size_has_a_default_and_a_limit(rf: RequestFactory) -> None:
    add_rows(*range(210))
    assert len(page_at("/x/", rf)[0]) == 50
    assert len(page_at("/x/?limit=1000", rf)[0]) == 200


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", "1.5", "9" * 5_000])
def test_a_page_size_that_is_no_number_is_refused(limit: str, rf: RequestFactory) -> None:
    with pytest.raises(Invalid) as caught:
        page_at(f"/x/?limit={limit}", rf)
    assert list(caught.value.fields or {}) == ["limit"]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "ünïcode",
        "a" * 5_000,
        *(
            base64.urlsafe_b64encode(plain.encode()).decode()
            for plain in (
                "o 2026-01-01T00:00:00+00:00 1",
                "x 2026-01-01T00:00:00+00:00 00000000-0000-0000-0000-000000000001",
                "o 2026-01-01T00:00:00 00000000-0000-0000-0000-000000000001",
                "o 2026-99-01T00:00:00+00:00 00000000-0000-0000-0000-000000000001",
                "o \0 00000000-0000-0000-0000-000000000001",
            )
        ),
    ],
)
def test_a_cursor_that_is_none_is_refused(text: str, rf: RequestFactory) -> None:
    with pytest.raises(Invalid) as caught:
        page_at(f"/x/?cursor={text}", rf)
    assert list(caught.value.fields or {}) == ["cursor"]
