import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chats.messages import transcript
from chats.messages.wire import MAX_SIBLINGS
from chats.models import ChatMessage
from chats.tests.rows import (
    ABSENT,
    converse,
    fields_of,
    fill,
    messages,
    new_assistant,
    new_chat,
    new_file,
    of_chat,
    of_message,
    say,
)
from tests.fixtures.personas import api


def page(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def contents(shown):
    return [message["content"] for message in shown["results"]]


def test_an_empty_chat_has_an_empty_page(alice, chat):
    assert page(api(alice), messages(chat)) == {"next": None, "previous": None, "results": []}


def test_shows_the_branch_oldest_first(alice, chat):
    converse(chat, "Hi", "Hello", "Bye")
    shown = page(api(alice), messages(chat))
    assert contents(shown) == ["Hi", "Hello", "Bye"]
    assert (shown["next"], shown["previous"]) == (None, None)
    parents = [message["parent_id"] for message in shown["results"]]
    assert parents == [None, *[message["id"] for message in shown["results"][:2]]]


def test_the_first_page_is_the_newest_and_previous_leads_back(alice, chat):
    fill(chat, 10)
    client = api(alice)
    last = page(client, messages(chat) + "?limit=4")
    assert contents(last) == [f"message {n}" for n in (6, 7, 8, 9)]
    assert last["next"] is None
    middle = page(client, last["previous"])
    assert contents(middle) == [f"message {n}" for n in (2, 3, 4, 5)]
    first = page(client, middle["previous"])
    assert contents(first) == ["message 0", "message 1"]
    assert first["previous"] is None
    assert page(client, middle["next"]) == last | {
        "previous": page(client, middle["next"])["previous"]
    }
    assert contents(page(client, first["next"])) == contents(middle)


@pytest.mark.parametrize("limit", [1, 3, 10, 11, 200])
def test_walking_back_meets_every_message_once(alice, chat, limit):
    fill(chat, 11)
    client, address = api(alice), f"{messages(chat)}?limit={limit}"
    seen: list[str] = []
    while address:
        shown = page(client, address)
        seen = contents(shown) + seen
        address = shown["previous"]
    assert seen == [f"message {n}" for n in range(11)]


def test_a_page_read_back_stays_while_messages_come(alice, chat):
    fill(chat, 6)
    client = api(alice)
    first = page(client, messages(chat) + "?limit=2")
    before = page(client, first["previous"])
    say(chat, "new")
    assert page(client, first["previous"]) == before
    assert contents(page(client, page(client, before["next"])["next"])) == ["new"]


def test_a_thousand_messages_cost_no_more_queries_than_ten(alice, chat, assistant):
    client = api(alice)

    def queries(address: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            page(client, address)
        return len(asked)

    fill(chat, 10)
    say(chat, "Hello", role="assistant", assistant=assistant)
    say(chat, "", role="file", file=new_file(alice))
    few = queries(messages(chat) + "?limit=5")
    fill(chat, 1_000)
    say(chat, "Hello", role="assistant", assistant=assistant)
    say(chat, "", role="file", file=new_file(alice))
    assert queries(messages(chat) + "?limit=5") == few
    assert queries(messages(chat) + "?limit=200") <= few


def test_names_the_assistant_and_the_file(alice, chat):
    client_tools = new_assistant(alice, name="Iris")
    say(chat, "", role="file", file=new_file(alice, name="a.txt"))
    say(chat, "Hello", role="assistant", assistant=client_tools)
    file, answer = page(api(alice), messages(chat))["results"]
    assert answer["assistant"] == {"id": str(client_tools.pk), "name": "Iris"}
    assert file["file"]["name"] == "a.txt"
    client_tools.delete()
    assert page(api(alice), messages(chat))["results"][1]["assistant"] is None


def test_siblings_are_named_by_age_the_message_among_them(alice, chat):
    question, one = converse(chat, "Hi", "one")
    two = say(chat, "two", role="assistant", parent=question)
    other_root = say(chat, "Ho", parent=None)
    client = api(alice)
    client.put(of_chat(chat, "branch/"), {"leaf_id": str(two.pk)})
    root, leaf = page(client, messages(chat))["results"]
    assert root["sibling_ids"] == [str(question.pk), str(other_root.pk)]
    assert leaf["sibling_ids"] == [str(one.pk), str(two.pk)]
    assert client.get(of_message(two)).json() == leaf


def test_of_very_many_siblings_those_around_a_message_are_named(alice, chat):
    rows = [
        ChatMessage(
            chat=chat,
            organization_id=chat.organization_id,
            role="human",
            content=f"{n}",
            position=0,
        )
        for n in range(250)
    ]
    ChatMessage.objects.bulk_create(rows)
    ids = [str(row.pk) for row in sorted(rows, key=lambda row: (row.created_at, row.pk))]
    named = {m.pk: siblings for m, siblings in zip(rows, siblings_named(rows), strict=True)}
    by_id = {str(pk): siblings for pk, siblings in named.items()}
    assert by_id[ids[0]] == ids[:MAX_SIBLINGS]
    assert by_id[ids[120]] == ids[20:220]
    assert by_id[ids[-1]] == ids[-MAX_SIBLINGS:]
    assert api(alice).get(of_message(rows[0])).json()["sibling_ids"] == by_id[str(rows[0].pk)]


def siblings_named(rows):
    return [message["sibling_ids"] for message in transcript.messages_to_wire(rows)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_message_that_is_deleted_while_it_is_read_is_shown_as_it_was(alice, chat, count):
    """A page is read first, then the siblings of its messages: another tab deletes them in between."""
    say(chat, "Hi")
    say(chat, "Ho", parent=None)
    rows = list(ChatMessage.objects.filter(chat=chat)[:count])
    transcript.attach_related(rows)
    ChatMessage.objects.filter(chat=chat).delete()
    assert siblings_named(rows) == [[str(row.pk)] for row in rows]


def test_all_branches_are_shown_by_age(alice, chat):
    question, _ = converse(chat, "Hi", "one")
    say(chat, "two", role="assistant", parent=question)
    say(chat, "Ho", parent=None)
    client = api(alice)
    assert contents(page(client, messages(chat))) == ["Ho"]
    whole = page(client, messages(chat) + "?branches=all")
    assert contents(whole) == ["Hi", "one", "two", "Ho"]
    last = page(client, messages(chat) + "?branches=all&limit=3")
    assert contents(last) == ["one", "two", "Ho"]
    assert (last["next"], contents(page(client, last["previous"]))) == (None, ["Hi"])


def test_the_owner_sees_hidden_messages(alice, chat):
    say(chat, "secret", role="hide_system")
    (shown,) = page(api(alice), messages(chat))["results"]
    assert (shown["content"], shown["hidden"]) == ("secret", True)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=many", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=before.nonsense", "cursor"),
        (f"cursor=before.{ABSENT}", "cursor"),
        ("branches=all&cursor=nonsense", "cursor"),
        ("branches=some", "branches"),
    ],
)
def test_a_bad_query_names_the_field(alice, chat, query, field):
    assert fields_of(api(alice).get(f"{messages(chat)}?{query}")) == [field]


def test_a_cursor_of_another_chat_is_none(alice, mallory, chat):
    foreign = say(new_chat(mallory))
    answer = api(alice).get(f"{messages(chat)}?cursor=before.{foreign.pk}")
    assert fields_of(answer) == ["cursor"]


def test_a_cursor_of_another_direction_is_none(alice, chat):
    (message,) = converse(chat, "Hi")
    address = f"{messages(chat)}?cursor=beside.{message.pk}"
    assert fields_of(api(alice).get(address)) == ["cursor"]


def test_nobody_else_reads(alice, bob, carol, mallory, chat):
    (message,) = converse(chat, "Hi")
    for other in (bob, carol, mallory):
        assert api(other).get(messages(chat)).status_code == 404
        assert api(other).get(of_message(message)).status_code == 404
    assert api().get(messages(chat)).status_code == 401
    assert api().get(of_message(message)).status_code == 401


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 30])
def test_a_page_around_a_message_leads_both_ways(alice, chat, limit):
    fill(chat, 11)
    client = api(alice)
    for place, row in enumerate(chat.messages.order_by("position")):
        shown = page(client, f"{messages(chat)}?limit={limit}&around={row.pk}")
        found = contents(shown)
        assert f"message {place}" in found
        assert len(found) == min(limit, 11), place
        for step in ("previous", "next"):
            at = shown
            while at[step]:
                at = page(client, at[step])
                more = contents(at)
                found = more + found if step == "previous" else found + more
        assert found == [f"message {n}" for n in range(11)], place


def test_only_what_is_shown_has_a_page_around_it(alice, bob, chat):
    fill(chat, 3)
    hidden = chat.messages.get(position=1)
    say(chat, "branch", parent=chat.messages.get(position=0))
    foreign = say(new_chat(bob), "Hi")
    for named in (hidden.pk, foreign.pk, "x"):
        answer = api(alice).get(messages(chat), {"around": str(named)})
        assert list(answer.json()["error"]["fields"]) == ["around"]
