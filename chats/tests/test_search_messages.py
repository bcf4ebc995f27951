import pytest

from chats.tests.rows import ABSENT, ALL, error_of, fields_of, new_chat, say
from tests.personas import api

SEARCH = f"{ALL}search/"


@pytest.fixture
def chat(alice, assistant):
    return new_chat(alice, assistant=assistant, name="Rain")


def find(persona, query, **more):
    answer = api(persona).get(SEARCH, {"q": query} | more)
    assert answer.status_code == 200, answer.json()
    return [hit["message"]["content"] for hit in answer.json()["results"]]


@pytest.mark.parametrize(
    ("text", "query", "is_found"),
    [
        ("我很健康，谢谢", "健康", True),
        ("我很健康，谢谢", "健", True),
        ("我很健康，谢谢", "谢", True),
        ("我很健康，谢谢", "很健康", True),
        ("我很健康，谢谢", "健谢", False),
        ("Use C++ here", "C++", True),
        ("Use C++ here", "c++", True),
        ("Use C here", "C++", False),
        ("Use C++ here", "C", False),
        ("Part AB-1234/5.6 is out", "AB-1234/5.6", True),
        ("Part AB-1234/5.6 is out", "ab-1234/5.6", True),
        ("Part AB-1234/5.6 is out", "AB-1234", True),
        ("Part AB-1234/5.6 is out", "AB-1235", False),
        ("Call foo_bar.baz() now", "foo_bar.baz", True),
        ("Call foo_bar.baz() now", "foo_bar", True),
        ("Call foo_bar.baz() now", "bar", True),
        ("Call foo_bar.baz() now", "foo_baz", False),
        ("Rain fell on the river", "river rain", True),
        ("Rain fell on the river", "river snow", False),
        ("Ｆｕｌｌ width", "full", True),
        ("it's 'quoted' & | ! <-> :*", "quoted", True),
    ],
)
def test_finds_what_people_look_for(alice, chat, text, query, is_found):
    say(chat, text)
    assert find(alice, query) == ([text] if is_found else [])


@pytest.mark.parametrize("query", ["&", "' | '", "!(", "<->", "\\", ":*", "…", "🙂"])
def test_a_query_without_words_finds_nothing_and_breaks_nothing(alice, chat, query):
    say(chat, "anything & everything")
    assert find(alice, query) == []


@pytest.mark.parametrize("role", ["human", "hide_human", "human_later", "assistant"])
def test_what_was_said_is_searched(alice, chat, role):
    say(chat, "rain", role=role)
    assert find(alice, "rain") == ["rain"]


@pytest.mark.parametrize("role", ["system", "hide_system", "tool", "tool_call", "knowledge"])
def test_instructions_and_tools_are_not(alice, chat, role):
    say(chat, "rain", role=role, tool_call={"id": "c", "name": "n", "arguments": ""})
    assert find(alice, "rain") == []


def test_shows_the_message_its_chat_and_a_score_best_first(alice, chat):
    say(chat, "It may rain some day, they say, or not")
    best = say(chat, "rain rain rain", role="assistant")
    results = api(alice).get(SEARCH, {"q": "rain"}).json()["results"]
    assert results[0]["message"]["id"] == str(best.pk)
    assert results[0]["chat"] == {"id": str(chat.pk), "name": "Rain"}
    scores = [hit["score"] for hit in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    shown = api(alice).get(f"/api/v1/messages/{best.pk}/").json()
    assert results[0]["message"] == shown


def test_siblings_in_several_chats_are_told_apart(alice, chat):
    say(chat, "rain")
    say(chat, "rain again", parent=None)
    other = say(new_chat(alice), "rain elsewhere")
    results = api(alice).get(SEARCH, {"q": "rain"}).json()["results"]
    siblings = {hit["message"]["content"]: hit["message"]["sibling_ids"] for hit in results}
    assert siblings["rain elsewhere"] == [str(other.pk)]
    assert len(siblings["rain"]) == 2
    assert siblings["rain"] == siblings["rain again"]


def test_only_in_the_chat_that_was_named(alice, chat):
    say(chat, "rain here")
    say(new_chat(alice), "rain there")
    assert find(alice, "rain", chat_id=str(chat.pk)) == ["rain here"]
    assert len(find(alice, "rain")) == 2


def test_nobody_elses_messages(alice, bob, carol, mallory, chat):
    say(chat, "rain")
    for other in (bob, carol, mallory):
        assert find(other, "rain") == []
        answer = api(other).get(SEARCH, {"q": "rain", "chat_id": str(chat.pk)})
        assert error_of(answer) == (404, "not_found")
    say(new_chat(mallory), "rain of Rival")
    assert find(alice, "rain") == ["rain"]
    assert api().get(SEARCH, {"q": "rain"}).status_code == 401


def test_the_limit_holds(alice, chat):
    for _ in range(3):
        say(chat, "rain")
    assert len(find(alice, "rain", limit=2)) == 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "q"),
        ({"q": "  "}, "q"),
        ({"q": "x" * 501}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "rain", "chat_id": "x"}, "chat_id"),
        ({"q": "rain", "limit": "0"}, "limit"),
    ],
)
def test_a_bad_query_names_the_field(alice, query, field):
    assert fields_of(api(alice).get(SEARCH, query)) == [field]


def test_a_chat_that_is_absent_is_404(alice):
    assert api(alice).get(SEARCH, {"q": "rain", "chat_id": ABSENT}).status_code == 404


def test_a_text_of_many_words_can_be_stored_and_found(alice, chat):
    """Postgres limits positions and lexemes; the text is kept whatever is searchable of it."""
    text = " ".join(f"word{number}" for number in range(20_000))
    say(chat, text)
    assert find(alice, "word7") == [text]
