"""Test which addresses a turn may open once it has read what strangers wrote."""

import pytest

from engine.trust import PASSAGES, Exposure, ToolReading
from tools.builtin.web.addresses import known_address

PAGE = """# Home
https://site.example/home

See [help](https://site.example/help?x=1), [more](https://site.example:8443/more) and
[away](https://evil.example/?d=). Raw: https://site.example/raw.
"""
RESULTS = """1. Amber https://title.example/a
https://amber.example/a?b=1&c=2
Fossil resin, see https://excerpt.example/ for more.

2. 琥珀
https://zh.example/琥珀
"""


def open_from(url: str, *typed: str, prompts: tuple[str, ...] = (), **readings: str) -> str | None:
    read = tuple(ToolReading(name, content, in_turn=True) for name, content in readings.items())
    exposure = Exposure(frozenset({PASSAGES}), typed=typed, prompts=prompts, readings=read)
    return known_address(url, exposure)


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("https://a.example/x?y=1", "Read https://a.example/x?y=1."),
        ("https://a.example/x?y=1", "(https://a.example/x?y=1)"),
        ("https://a.example/x?y=1", "[this](https://a.example/x?y=1)"),
        ("https://a.example/x?y=1", "请看https://a.example/x?y=1，谢谢"),
        ("https://a.example/x?y=1", "请看https://a.example/x?y=1看看"),
        ("HTTPS://A.example:443/x", "https://a.example/x"),
        ("https://a.example/x#part", "https://a.example/x"),
        ("https://a.example", "https://a.example/"),
        ("http://a.example/x", "https://a.example/x"),
        ("https://a.example/x_(y)", "https://a.example/x_(y)"),
        ("https://zh.example/%E7%90%A5%E7%8F%80", "https://zh.example/琥珀"),
        ("https://www.example.com/docs", "Look at www.example.com/docs please"),
        ("https://example.com", "Look at example.com."),
    ],
)
def test_what_the_user_typed_is_opened_as_it_stands(url, typed):
    known = open_from(url, typed)
    assert known is not None
    assert known.removeprefix("https://").removeprefix("http://").casefold() in typed.casefold()


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/x?y=1&d=secret",
        "https://a.example/x?y=2",
        "https://a.example/x/secret",
        "https://a.example/X",
        "https://a.example/%78",
        "https://a.example:8443/x",
        "https://secret.a.example/x",
        "https://secret@a.example/x",
        "https://a.example.evil.example/x",
        "https://a.example\\@evil.example/x",
        "ftp://a.example/x",
        "https://[::1",
        "secret",
        "",
    ],
)
def test_no_variant_of_it_is(url):
    assert open_from(url, "Read https://a.example/x and https://a.example/x?y=1") is None


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        ("https://amber.example/a?b=1&c=2", True),
        ("https://zh.example/琥珀", True),
        ("https://amber.example/a", False),
        ("https://title.example/a", False),
        ("https://excerpt.example/", False),
    ],
)
def test_results_of_a_search_are_opened_and_nothing_that_they_mention(url, is_known):
    assert (open_from(url, web_search=RESULTS) is not None) is is_known


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        ("https://site.example/home", True),
        ("https://site.example/help?x=1", True),
        ("https://site.example/raw", True),
        ("https://site.example/help?x=2", False),
        ("https://site.example:8443/more", False),
        ("https://evil.example/?d=", False),
    ],
)
def test_links_of_a_page_are_followed_on_its_own_host(url, is_known):
    assert (open_from(url, web_browse=PAGE) is not None) is is_known


def test_a_refusal_and_other_tools_open_nothing():
    for content in ("Not opened. https://evil.example/", "# A title\nno address\n\nx"):
        assert open_from("https://evil.example/", web_browse=content) is None
    assert open_from("https://amber.example/a?b=1&c=2", look_up=RESULTS) is None


def test_what_was_found_in_an_earlier_turn_is_not_opened():
    earlier = ToolReading("web_search", RESULTS, in_turn=False)
    exposure = Exposure(frozenset({PASSAGES}), readings=(earlier,))
    assert known_address("https://amber.example/a?b=1&c=2", exposure) is None


def test_addresses_that_the_assistants_owner_wrote_are_opened():
    assert open_from("https://status.example/now", prompts=("See https://status.example/now.",))
