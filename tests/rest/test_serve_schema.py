"""/api/schema/ is made once a process, whoever asks how often; /api/docs/ shows it."""

import re
import threading

import orjson
import pytest
import yaml

from amber.web import openapi_view
from amber.web.openapi_view import CACHE_CONTROL
from tests.fixtures.personas import api

URL = "/api/schema/"
YAML, JSON = "application/vnd.oai.openapi", "application/vnd.oai.openapi+json"


@pytest.fixture
def makings(monkeypatch):
    """How often it is made; it never was before."""
    seen = []
    real = openapi_view._schema
    monkeypatch.setattr(openapi_view, "_documents", {})

    def make():
        seen.append(1)
        return real()

    monkeypatch.setattr(openapi_view, "_schema", make)
    return seen


def test_it_is_made_once_a_form(makings):
    first, second = api().get(URL), api().get(URL, {"version": "9", "lang": "de"})
    assert first.content == second.content
    assert first["Content-Type"].startswith(YAML)
    assert yaml.load(first.content, yaml.CSafeLoader)["info"]["title"] == "Amber"
    assert len(makings) == 1
    for answer in (
        api().get(URL, {"format": "json"}),
        api().get(URL, HTTP_ACCEPT="application/json"),
        api().get(URL, HTTP_ACCEPT=JSON),
    ):
        assert orjson.loads(answer.content)["info"]["title"] == "Amber"
        assert "json" in answer["Content-Type"]
    assert len(makings) <= 3


def test_whoever_has_it_is_told_so(makings):
    first = api().get(URL)
    assert first["Cache-Control"] == CACHE_CONTROL
    assert "Accept" in first["Vary"]
    again = api().get(URL, HTTP_IF_NONE_MATCH=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    assert api().get(URL, HTTP_IF_NONE_MATCH='"another"').status_code == 200
    other = api().get(URL, {"format": "json"}, HTTP_IF_NONE_MATCH=first["ETag"])
    assert other.status_code == 200


def test_many_who_ask_at_once_wait_for_one_making(makings):
    codes = []
    threads = [
        threading.Thread(target=lambda: codes.append(api().get(URL).status_code)) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert codes == [200] * 4
    assert len(makings) == 1


def test_the_page_that_shows_it_asks_for_it():
    page = api().get("/api/docs/")
    assert page.status_code == 200
    script = re.search(r'src="(/api/docs/[^"]+)"', page.content.decode())
    assert script
    assert URL in api().get(script[1]).content.decode()
