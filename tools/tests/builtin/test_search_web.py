"""Test the built-in tool `web_search` with local engines."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from amber.lib.tests.local_server import LocalServer, say, send_to
from tools.builtin.web.results import MAX_EXCERPT_CHARS, read_results, render_results
from tools.calling.registry import offer_builtin_tools
from tools.outgoing import requests
from tools.protocol import ArgumentsError, Circumstances, Exchange, ToolError
from tools.tests.services import call, say_json, url_of

ROWS = [
    {"title": "Amber", "url": "https://amber.example/", "content": "Fossil\nresin,  old."},
    {"title": "琥珀", "url": "https://zh.example/琥珀", "content": "树脂化石"},
    {"title": "Third", "url": "https://third.example/", "content": ""},
]
LISTED = """\
1. Amber
https://amber.example/
Fossil resin, old.

2. 琥珀
https://zh.example/琥珀
树脂化石

3. Third
https://third.example/"""
GONE = "The web search is not available at the moment. Go on without it."


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(requests, "PAUSE_SECONDS", 0)


@pytest.fixture
def searxng(settings, server):
    settings.AMBER_SEARXNG_URL = url_of(server)
    server.routes["/search"] = say_json({"results": ROWS})
    return server


@pytest.fixture
def tavily(settings, server):
    settings.AMBER_TAVILY_URL = url_of(server, "/v0/")
    settings.AMBER_TAVILY_API_KEY = "tvly-key"
    server.routes["/v0/search"] = say_json({"results": ROWS})
    return server


def names(**circumstances):
    return [tool.name for tool in offer_builtin_tools(Circumstances(**circumstances))]


# -- When it is offered --------------------------------------------------------------------------


def test_is_not_offered_without_an_engine():
    assert "web_search" not in names()


@pytest.mark.parametrize("setting", ["AMBER_SEARXNG_URL", "AMBER_TAVILY_API_KEY"])
def test_is_offered_with_an_engine_unless_browsing_is_disabled(settings, setting):
    setattr(settings, setting, "http://searxng")
    assert "web_search" in names()
    assert "web_search" not in names(disable_web_browsing=True)


# -- SearXNG -------------------------------------------------------------------------------------


def test_lists_what_searxng_finds(searxng, context):
    assert call("web_search", {"query": " old resin "}, context).text == LISTED
    asked = searxng.requests[0]
    assert (asked.method, urlsplit(asked.target).path) == ("GET", "/search")
    assert parse_qs(urlsplit(asked.target).query) == {"q": ["old resin"], "format": ["json"]}


def test_searxng_is_asked_for_recent_pages_and_its_page_is_cut(searxng, context):
    text = call("web_search", {"query": "x", "count": 1, "freshness": "week"}, context).text
    assert text.startswith("1. Amber")
    assert "2. " not in text
    assert parse_qs(urlsplit(searxng.requests[0].target).query)["time_range"] == ["week"]


def test_searxng_comes_first(settings, searxng, context):
    settings.AMBER_TAVILY_API_KEY = "tvly-key"
    call("web_search", {"query": "x"}, context)
    assert searxng.requests


# -- Tavily --------------------------------------------------------------------------------------


def test_lists_what_tavily_finds(tavily, context):
    found = call("web_search", {"query": "resin", "count": 3, "freshness": "day"}, context)
    assert found.text == LISTED
    asked = tavily.requests[0]
    assert (asked.method, asked.headers["authorization"]) == ("POST", "Bearer tvly-key")
    assert json.loads(asked.body) == {"query": "resin", "max_results": 3, "time_range": "day"}


def test_tavily_does_not_learn_of_no_freshness(tavily, context):
    call("web_search", {"query": "resin", "count": 99}, context)
    assert json.loads(tavily.requests[0].body) == {"query": "resin", "max_results": 10}


# -- Bad questions, bad answers --------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "  ", "x" * 401])
def test_refuses_a_query_that_no_engine_takes(searxng, context, query):
    with pytest.raises(ToolError, match="A query has 1 to 400 characters"):
        call("web_search", {"query": query}, context)
    assert not searxng.requests


def test_refuses_a_freshness_that_is_none(searxng, context):
    with pytest.raises(ArgumentsError, match="freshness"):
        call("web_search", {"query": "x", "freshness": "century"}, context)


@pytest.mark.parametrize("rows", [[], None, "x", [1, {"url": "ftp://x"}, {"title": "no url"}]])
def test_says_that_nothing_was_found(searxng, context, rows):
    searxng.routes["/search"] = say_json({"results": rows})
    assert call("web_search", {"query": "x"}, context).text.startswith("Nothing was found.")


@pytest.mark.parametrize(
    "answer",
    [
        say(b"<html>", headers={"Content-Type": "text/html"}),
        say_json([1]),
        say(b"Forbidden", status=403),
        say(b"", status=500),
        say(b'{"a":' * 60 + b"1" + b"}" * 60),
        say(b"x" * 2_000_001),
    ],
)
def test_an_engine_that_fails_is_unavailable(searxng, context, answer):
    searxng.routes["/search"] = answer
    with pytest.raises(ToolError) as caught:
        call("web_search", {"query": "x"}, context)
    assert str(caught.value) == GONE


def test_an_engine_that_is_not_there_is_unavailable(settings, context):
    with LocalServer() as gone:
        settings.AMBER_SEARXNG_URL = url_of(gone)
    with pytest.raises(ToolError) as caught:
        call("web_search", {"query": "x"}, context)
    assert str(caught.value) == GONE


def test_an_overloaded_engine_is_asked_again(searxng, context):
    answers = iter([say(b"", status=503), say(b"", status=429), say_json({"results": ROWS})])
    searxng.routes["/search"] = lambda *a: next(answers)(*a)
    assert call("web_search", {"query": "x"}, context).text == LISTED


def test_an_engine_that_stays_overloaded_says_so(searxng, context):
    searxng.routes["/search"] = say(b"", status=429)
    with pytest.raises(ToolError, match="takes no more requests now"):
        call("web_search", {"query": "x"}, context)


def test_only_the_engines_own_host_and_port_are_trusted(searxng, other, context):
    searxng.routes["/search"] = send_to(url_of(other, "/search"))
    with pytest.raises(ToolError):
        call("web_search", {"query": "x"}, context)
    assert other.accepted == 0


def test_the_key_is_not_shown_with_the_exchange(tavily, context):
    exchanges: list[Exchange] = []
    call("web_search", {"query": "x"}, type(context)(context.organization_id, exchanges=exchanges))
    assert "tvly-key" not in repr(exchanges)


# -- Results ---------------------------------------------------------------------------------------


def test_results_are_one_line_each_and_bounded():
    wild = {"title": "a\n\x00b\u2028c", "url": "https://a.example", "content": "x" * 10_000}
    twice = read_results([wild, wild], count=5)
    assert len(twice) == 1
    title, url, excerpt = render_results(twice).split("\n")
    assert (title, url) == ("1. a b c", "https://a.example")
    assert len(excerpt) == MAX_EXCERPT_CHARS


def test_a_result_without_a_title_is_called_by_its_address():
    assert read_results([{"url": "https://a.example"}], count=1)[0].title == "https://a.example"


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://a.example/ x", "https://" + "x" * 3000]
)
def test_what_is_no_address_is_no_result(url):
    assert read_results([{"title": "x", "url": url}], count=1) == []
