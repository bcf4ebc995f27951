"""Paste OpenAPI documents instead of an address: read, kept, read again, and never shown."""

from typing import Any

import pytest

from amber.lib.secrets import decrypt_column
from amber.lib.tests.local_server import say
from tests.fixtures.personas import api
from tools.models import PastedDocument, Tool
from tools.tests.managing.adding import ALL, KEY, fields_of, of
from tools.tests.tool_service import serving

pytestmark = pytest.mark.django_db

DOCUMENT = """
openapi: 3.1.0
info: {title: Shop, description: Sells things.}
servers: [{url: "http://%s/v1"}]
paths:
  /pets: {get: {operationId: listPets}}
  /cats: {get: {operationId: listCats}}
"""


@pytest.mark.parametrize("place", ["beside", "among"])
def test_a_pasted_document_is_read_and_not_shown(bob, weather, place):
    document = DOCUMENT % weather.host
    given = {"document": document} if place == "beside" else {"options": {"document": document}}
    answer = api(bob).post(ALL, {"kind": "openapi", "api_key": KEY} | given)
    assert answer.status_code == 201, answer.json()
    shown = answer.json()
    assert (shown["name"], shown["discovery_url"]) == ("Shop", "")
    assert shown["function_names"] == ["listPets", "listCats"]
    assert "openapi: 3.1.0" not in str(Tool.objects.values()) + str(shown)
    assert PastedDocument.objects.get().text == document


@pytest.fixture
def shop(bob, weather):
    body = {"kind": "openapi", "document": DOCUMENT % weather.host, "api_key": KEY}
    answer = api(bob).post(ALL, body)
    return Tool.objects.get(pk=answer.json()["id"])


def test_a_pasted_document_is_kept_and_read_with_other_options(bob, weather, shop):
    for options, names in [
        ({"operations": ["listCats"]}, ["listCats"]),
        ({}, ["listPets", "listCats"]),
    ]:
        answer = api(bob).patch(of(shop), {"options": options})
        assert (answer.status_code, answer.json()["function_names"]) == (200, names)
        assert answer.json()["has_api_key"] is True
    assert list(fields_of(api(bob).post(of(shop, "refresh/")))) == ["document"]


def test_the_document_that_was_pasted_last_counts(bob, weather, shop):
    only_cats = (DOCUMENT % weather.host).replace("  /pets: {get: {operationId: listPets}}\n", "")
    assert api(bob).patch(of(shop), {"document": only_cats}).status_code == 200
    answer = api(bob).patch(of(shop), {"options": {"operations": ["listPets"]}})
    assert answer.status_code == 400
    assert Tool.objects.get().data["functions"][0]["name"] == "listCats"


def test_a_document_goes_with_its_tool_or_for_an_address(bob, weather, shop):
    weather.route("/openapi", say((DOCUMENT % weather.host).encode()))
    body = {"discovery_url": weather.address("/openapi")}
    assert api(bob).patch(of(shop), body).status_code == 200
    assert not PastedDocument.objects.exists()
    assert api(bob).patch(of(shop), {"document": DOCUMENT % weather.host}).status_code == 200
    assert api(bob).delete(of(shop)).status_code == 204
    assert not PastedDocument.objects.exists()


def test_a_tool_whose_document_was_not_kept_is_pasted_again(bob, weather, shop):
    """The tool is from before documents were kept."""
    PastedDocument.objects.all().delete()
    options = {"operations": ["listCats"]}
    refused = api(bob).patch(of(shop), {"options": options})
    assert list(fields_of(refused)) == ["document"]
    body = {"options": options, "document": DOCUMENT % weather.host}
    assert api(bob).patch(of(shop), body).status_code == 200
    renamed = api(bob).patch(of(shop), {"name": "Cats", "api_key": "another"})
    assert (renamed.status_code, decrypt_column(Tool.objects.get(), "api_key")) == (200, "another")


@pytest.mark.parametrize("way", ["document", "server"])
def test_a_key_does_not_follow_a_pasted_document_elsewhere(bob, weather, shop, way, settings):
    with serving() as second:
        settings.AMBER_TOOL_ALLOWED_HOSTS = [weather.host, second.host]
        host = (second if way == "document" else weather).host
        body: dict[str, Any] = {"document": DOCUMENT % host}
        if way == "server":
            body["options"] = {"server": f"http://{second.host}/v1"}
        assert list(fields_of(api(bob).patch(of(shop), body))) == ["api_key"]
        assert api(bob).patch(of(shop), body | {"api_key": "new"}).status_code == 200
