import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.search.words import tsvector_literal, word_literal
from chats.digest.message_words import add_person_words
from chats.messages.search import person_word
from chats.messages.transcript import new_row
from chats.models import ChatMessage
from chats.tests.rows import ABSENT, ALL, error_of, fields_of, new_chat, say
from tests.fixtures.personas import api

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


# -- However much others have ------------------------------------------------------------------


def tenant_of(persona):
    return Tenant(persona.organization.pk, persona.user.pk)


def pages_of_a_search(persona):
    """How many pages Postgres looks at for the person's messages with a word, inside the function too."""
    mine = word_literal(person_word(persona.organization.pk, persona.user.pk, None))
    call = "SELECT FROM amber_messages_of('rain'::tsquery, %s::tsquery)"
    with as_tenant(tenant_of(persona)), connection.cursor() as cursor:
        cursor.execute(call, [mine])  # what is read of the catalogues once is not counted
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {call}", [mine])
        ((plan,),) = cursor.fetchall()
    return int(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])


def write_messages(chat, count):
    rows = [new_row(chat, None, role="human", content="rain") for _ in range(count)]
    ChatMessage.objects.bulk_create(rows)


def test_a_search_reads_no_messages_of_others(alice, bob, mallory, chat):
    write_messages(chat, 5)
    before = pages_of_a_search(alice)
    for other in (bob, mallory):
        write_messages(new_chat(other), 300)
    assert pages_of_a_search(alice) <= before + 10
    assert len(find(alice, "rain")) == 5


def test_matches_are_not_joined_with_each_chat(alice, assistant, chat):
    """Each match is looked up once, not once for each chat of its person."""
    for _ in range(30):
        write_messages(new_chat(alice, assistant=assistant), 10)
    with CaptureQueriesContext(connection) as asked:
        assert len(find(alice, "rain", limit=100)) == 100
    (search,) = (each["sql"] for each in asked if "amber_messages_of" in each["sql"])
    with as_tenant(tenant_of(alice)), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {search}")
        ((plan,),) = cursor.fetchall()
    looked_up = [
        each["Actual Loops"] * max(1, each["Actual Rows"])
        for each in nodes_of(plan[0]["Plan"])
        if each.get("Relation Name") == "chats_chatmessage"
    ]
    assert sum(looked_up) <= 300


def nodes_of(node):
    yield node
    for inner in node.get("Plans", ()):
        yield from nodes_of(inner)


def test_what_an_older_release_wrote_is_found_and_gets_its_word(alice, chat):
    of_guest = new_chat(alice, guest_id="o'neil \\ co", owner="guest")
    for each in (chat, of_guest):
        say(each, "old rain")
    rows = ChatMessage.objects.order_by("pk")
    written = list(rows.values_list("search", flat=True))
    rows.update(search=tsvector_literal("old rain"), words_version=0)
    say(chat, "new rain")

    assert sorted(find(alice, "rain")) == ["new rain", "old rain"]
    add_person_words()
    assert list(rows.values_list("search", flat=True))[:2] == written
    assert not rows.filter(words_version=0).exists()
    assert sorted(find(alice, "rain")) == ["new rain", "old rain"]
