"""The admin's pages call everything by its name: no list shows an id, no form asks for one.

The tables of all pages are walked, and then the pages themselves with rows of every kind in them,
each in a bounded number of statements.
"""

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any, Final

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db import connection, models
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse
from django.utils import translation
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.models import Organization, User
from amber.lib.operator_pages import OperatorAdmin
from amber.lib.operator_pages.columns import Style, column_of
from amber.lib.operator_pages.states import STATES
from tests.admin.crowd import furnish

assert get_resolver().url_patterns, "the URLconf registers the pages"
PAGES: Final = dict(admin.site._registry)
UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"
)
MOST_STATEMENTS: Final = 12
SHOWN_ATTRIBUTES: Final = ("title", "placeholder", "aria-label", "alt")


@pytest.fixture
def crowd(db: None) -> Organization:
    """The organization that has a dozen rows of every kind."""
    return furnish(organizations=3, rows=12)[0]


class Reader(HTMLParser):
    """Reads what people see of a page: the text of its content, without what scripts read."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self._hidden = 0
        self._in_id = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")
        self._in_id = self._in_id or tag == "code"
        self.words += [value for name, value in attrs if value and name in SHOWN_ATTRIBUTES]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")
        self._in_id = self._in_id and tag != "code"

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            (self.ids if self._in_id else self.words).append(data)


def read(page: Any) -> Reader:
    reader = Reader()
    reader.feed(page.content.decode())
    return reader


def address(model: Any, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def row_of(model: Any, organization: Organization) -> Any:
    rows = model._base_manager.order_by("-pk")
    if any(field.name == "organization" for field in model._meta.concrete_fields):
        rows = rows.filter(organization=organization)
    return organization if model is Organization else rows.first()


def fetch(client: Client, path: str, complaints: list[str]) -> Any:
    """Return the page, and complain if it costs too much."""
    with CaptureQueriesContext(connection) as statements:
        page = client.get(path)
    # A process reads Django's types of content once, with its first page.
    counted = [
        each
        for each in statements
        if "SAVEPOINT" not in each["sql"] and "django_content_type" not in each["sql"]
    ]
    if len(counted) > MOST_STATEMENTS:
        complaints.append(f"{path}: {len(counted)} statements")
    return page


# -- The tables ----------------------------------------------------------------------------------


def tables() -> Iterator[tuple[str, Any, Iterable[Any]]]:
    """Yield every page's, and every inline's, tables: where it is, the page, the names."""
    request = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_staff=True)
    for model, page in PAGES.items():
        where = model._meta.label
        yield f"{where}.list_display", page, page.list_display
        yield f"{where}.readonly_fields", page, page.readonly_fields
        for obj in (None, model()):
            yield f"{where}.fields", page, flatten_fieldsets(page.get_fieldsets(request, obj))
        for inline in page.get_inline_instances(request):
            names = flatten_fieldsets(inline.get_fieldsets(request, model()))
            yield f"{where}.{type(inline).__name__}", inline, names


def is_plain_id(page: Any, name: str) -> bool:
    """Whether a column would show an id, or a foreign key as one."""
    meta = page.model._meta
    field = next((each for each in meta.concrete_fields if name in (each.name, each.attname)), None)
    if field is None or name in page.references:
        return name == "pk"
    is_attname = field.is_relation and name != field.name
    return is_attname or field.primary_key or isinstance(field, models.UUIDField)


def test_no_table_shows_an_id():
    found = [
        f"{where}: {name}"
        for where, page, names in tables()
        for name in (getattr(each, "__name__", each) for each in names)
        if is_plain_id(page, name)
    ]
    assert not found


def test_every_page_and_inline_is_one_of_ours_and_asks_for_no_raw_id():
    assert not [model for model, page in PAGES.items() if not isinstance(page, OperatorAdmin)]
    assert not [where for where, page, _ in tables() if page.raw_id_fields]


def test_filters_ask_for_rows_by_name():
    for model, page in PAGES.items():
        for each in page.list_filter:
            name, kind = each if isinstance(each, tuple) else (str(each), None)
            if (
                model._meta.get_field(str(name)).is_relation
                and model._meta.app_label != "socialaccount"
            ):
                assert kind is AutocompleteSelectFilter, f"{model._meta.label}: {name}"


def test_every_state_has_its_colour():
    columns = {
        f"{model._meta.label}.{field.name}": {value for value, _ in field.flatchoices}
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name in ("status", "stage", "outcome") and field.flatchoices
    }
    assert len(columns) >= 6
    assert not {
        column: values - STATES.keys()
        for column, values in columns.items()
        if values - STATES.keys()
    }


# -- The pages -----------------------------------------------------------------------------------


def test_lists_show_names_in_few_statements(operator, crowd):
    complaints: list[str] = []
    for model, page in PAGES.items():
        path = address(model, "changelist")
        shown = fetch(operator, path, complaints)
        assert shown.status_code == 200, path
        if model._base_manager.exists():
            assert 'id="result_list"' in shown.content.decode(), path
        if UUID.search(" ".join(read(shown).words)):
            complaints.append(f"{path}: an id is shown")
        if "close_small" in shown.content.decode():
            complaints.append(f"{path}: a no is a cross")
        if page.search_fields:
            fetch(operator, f"{path}?q=valve", complaints)
    assert not complaints


def test_pages_of_one_row_show_its_id_small_and_no_other(operator, crowd):
    complaints: list[str] = []
    for model, page in PAGES.items():
        row = row_of(model, crowd)
        if row is None or not page.has_view_permission(_request(operator)):
            continue
        path = address(model, "change", row.pk)
        seen = read(fetch(operator, path, complaints))
        if str(row.pk) not in seen.ids:
            complaints.append(f"{path}: its id is missing")
        if found := UUID.search(" ".join(seen.words)):
            complaints.append(f"{path}: {found[0]} is shown")
    assert not complaints


def test_forms_that_add_ask_for_names(operator, crowd):
    complaints: list[str] = []
    for model, page in PAGES.items():
        if page.has_add_permission(_request(operator)):
            shown = fetch(operator, address(model, "add"), complaints)
            assert shown.status_code == 200, model
            if "vForeignKeyRawIdAdminField" in shown.content.decode():
                complaints.append(f"{model._meta.label}: it asks for an id")
    assert not complaints


def test_every_row_is_called_by_a_name(crowd):
    rows = [
        row
        for model in apps.get_models()
        if not model._meta.proxy and model._meta.app_label in _OURS
        for row in model._base_manager.all()[:3]
    ]
    assert len({type(row) for row in rows}) > 30
    assert not [f"{type(row).__name__}: {row}" for row in rows if UUID.search(str(row))]


_OURS: Final = {
    *("accounts", "assistants", "chats", "libraries", "memory", "operations", "providers"),
    *("public_api", "tools"),
}


def _request(client: Client) -> Any:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.get(pk=client.session["_auth_user_id"])
    return request


def test_a_heading_is_in_the_language_of_who_reads_it_not_of_who_came_first():
    """Columns are made once for all operators."""
    with translation.override("zh-hans"):
        made: Any = column_of(Organization, "created_at", {}, Style())
        assert str(made.short_description) == "创建时间"
    with translation.override("en"):
        assert str(made.short_description) == "created at"
