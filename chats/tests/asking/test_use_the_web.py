"""Test turns whose model searches, reads pages and speaks: the prompt, and what is stored."""

import pytest

from amber.lib.tests.conftest import server
from amber.lib.tests.local_server import say
from chats.tests.rows import new_assistant, new_chat, new_turn, path_of
from chats.tests.rows import say as say_in
from chats.tests.runs import (
    ask,
    assert_stored_is_what_was_streamed,
    marker,
    prepared_for,
    run,
    unmarked,
)
from engine.events import TurnStatus
from engine.history.prompt import WEB_SEARCH_PROMPT
from libraries.models import File
from tools.tests.services import say_json, url_of

__all__ = ["server"]

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = b"""<html><head><title>On Amber</title></head><body><h1>Amber</h1>
<p>Amber is fossil resin, and <a href="/more">more</a> is known about it.</p></body></html>"""
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\xff" * 20


@pytest.fixture
def prepared(alice, new_model):
    """What a new question to an assistant with these fields goes out with."""
    new_model("text-model", default=True)

    def prepare(**fields):
        assistant = new_assistant(alice, model="text-model", prompt="You are Iris.", **fields)
        chat = new_chat(alice, assistant=assistant)
        say_in(chat, "Be brief.", role="system")
        say_in(chat, "Hi")
        return prepared_for(new_turn(chat, assistant=assistant))

    return prepare


def system_prompt_of(prepared):
    return unmarked(prepared.request.messages)[0]["content"]


def names_of(prepared):
    return {spec.name for spec in prepared.request.tools}


@pytest.fixture
def searchable(settings, server):
    settings.AMBER_SEARXNG_URL = url_of(server)
    row = {"title": "Amber", "url": "https://amber.example/", "content": "Fossil resin."}
    server.routes["/search"] = say_json({"results": [row]})
    return server


# -- The prompt ------------------------------------------------------------------------------------


def test_the_web_search_prompt_stands_first_where_the_tool_is_offered(searchable, prepared):
    assert system_prompt_of(prepared()) == f"{WEB_SEARCH_PROMPT}\nYou are Iris.\nBe brief."


@pytest.mark.parametrize(
    "fields",
    [
        {"disable_web_browsing": True},
        {"disabled_builtin_tools": ["web_search"]},
    ],
)
def test_nothing_is_said_of_the_web_where_the_tool_is_not_offered(searchable, prepared, fields):
    made = prepared(**fields)
    assert "web_search" not in names_of(made)
    assert system_prompt_of(made) == "You are Iris.\nBe brief."


def test_reading_pages_alone_needs_no_prompt(prepared):
    made = prepared()
    assert "web_browse" in names_of(made)
    assert system_prompt_of(made) == "You are Iris.\nBe brief."


def test_disabled_browsing_takes_all_of_the_web_away(searchable, prepared):
    assert {"web_search", "web_browse"} <= names_of(prepared())
    assert not {"web_search", "web_browse"} & names_of(prepared(disable_web_browsing=True))
    one = prepared(disabled_builtin_tools=["web_browse"])
    assert names_of(one) & {"web_search", "web_browse"} == {"web_search"}


# -- Whole turns -----------------------------------------------------------------------------------


def test_a_turn_reads_a_page(settings, server, alice, new_model):
    settings.AMBER_TOOL_ALLOWED_HOSTS = [f"127.0.0.1:{server.port}"]
    server.routes["/amber"] = say(PAGE, headers={"Content-Type": "text/html"})
    new_model()
    turn = ask(alice, content=marker("web_browse", {"url": url_of(server, "/amber")}))
    assert run(turn) == TurnStatus.COMPLETED
    result = dict(path_of(turn.chat))["tool"]
    assert result.startswith(f"# On Amber\n{url_of(server, '/amber')}\n\n")
    assert f"fossil resin, and [more]({url_of(server, '/more')})" in result
    assert_stored_is_what_was_streamed(turn)


def test_a_turn_goes_on_where_a_page_may_not_be_read(server, alice, new_model):
    new_model()
    turn = ask(alice, content=marker("web_browse", {"url": url_of(server, "/amber")}))
    assert run(turn) == TurnStatus.COMPLETED
    assert "not one that Amber may call" in dict(path_of(turn.chat))["tool"]
    assert server.accepted == 0


def test_a_turn_searches(searchable, alice, new_model):
    new_model()
    turn = ask(alice, content=marker("web_search", {"query": "amber"}))
    assert run(turn) == TurnStatus.COMPLETED
    found = "1. Amber\nhttps://amber.example/\nFossil resin."
    assert dict(path_of(turn.chat))["tool"] == found


def test_a_turn_speaks_and_the_user_keeps_the_audio(settings, tmp_path, server, alice, new_model):
    settings.MEDIA_ROOT = tmp_path
    settings.AMBER_TTS_URL = url_of(server, "/tts")
    server.routes["/tts"] = say_json({"url": "/a.wav"})
    server.routes["/a.wav"] = say(WAV)
    new_model()
    turn = ask(alice, content=marker("text_to_speech", {"text": "Good morning"}))
    assert run(turn) == TurnStatus.COMPLETED
    file = File.objects.get()
    assert (file.name, file.mime_type, file.size) == ("speech.wav", "audio/wav", len(WAV))
    assert file.user == alice.user
    assert "speech.wav" in dict(path_of(turn.chat))["tool"]
