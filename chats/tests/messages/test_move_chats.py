"""Test export and import: what leaves Amber can come back."""

import pytest
from django.utils import timezone

from assistants.models import Assistant
from chats.api.serializers import MAX_EXPORTED_MESSAGES
from chats.models import Chat, ChatMessage, MessageBlock
from chats.tasks import seal_chat
from chats.tests.rows import (
    ALL,
    converse,
    error_of,
    fields_of,
    messages,
    new_assistant,
    new_chat,
    new_file,
    of_chat,
    path_of,
    say,
)
from tests.fixtures.personas import api

IMPORT = f"{ALL}import/"
CALL = {"id": "c1", "name": "clock", "arguments": '{"zone": 1}', "reply_id": "r"}


@pytest.fixture
def chat(alice, assistant):
    return new_chat(alice, assistant=assistant, name="Rain", prompt="Be brief.")


def export(persona, chat):
    answer = api(persona).get(of_chat(chat, "export/"))
    assert answer.status_code == 200, answer.json()
    return answer.json()


def take_in(persona, body):
    return api(persona).post(IMPORT, body)


def imported(persona, body):
    answer = take_in(persona, body)
    assert answer.status_code == 201, answer.json()
    return Chat.objects.get(pk=chat_in(answer)["id"])


def chat_in(answer):
    """The only chat of an import's answer."""
    (made,) = answer.json()["chats"]
    return made["chat"]


def test_an_imported_chat_is_sealed_before_anybody_asks(
    alice, monkeypatch, django_capture_on_commit_callbacks
):
    enqueued: list[object] = []
    monkeypatch.setattr("chats.importing.services.enqueue_sealing", enqueued.append)
    said = [
        {"role": role, "content": f"{role} {n}: " + "words about the harbour " * 40}
        for n in range(40)
        for role in ("human", "assistant")
    ]
    with django_capture_on_commit_callbacks(execute=True):
        chat = imported(alice, {"messages": said})
    assert enqueued == [chat.pk]
    seal_chat(str(chat.pk))
    assert MessageBlock.objects.filter(chat=chat, on_active_path=True).count() > 5


def tree_of(chat):
    """Return (role, content, parent's content) of every message."""
    rows = ChatMessage.objects.filter(chat=chat).select_related("parent").order_by("position", "pk")
    return [(m.role, m.content, m.parent and m.parent.content) for m in rows]


def grow(chat, alice):
    """Add all branches and all roles."""
    say(chat, "Be kind.", role="hide_system")
    question = say(chat, "Which time is it?")
    say(chat, "A moment.", role="tool_call", tool_call=CALL, assistant=chat.assistant)
    say(chat, "12:00", role="tool", tool_call=CALL)
    noon = say(chat, "Noon 健康.", role="assistant", assistant=chat.assistant)
    say(chat, "Twelve.", role="assistant", parent=question)
    say(chat, "", role="file", file=new_file(alice))
    say(chat, "Later.", role="human_later", parent=noon)
    say(chat, "Another root", parent=None)
    chat.refresh_from_db()
    chat.active_leaf = noon
    chat.save()


def test_an_export_holds_all_branches_parents_first(alice, chat):
    grow(chat, alice)
    exported = export(alice, chat)
    assert exported["chat"] == api(alice).get(of_chat(chat)).json()
    shown = exported["messages"]
    assert len(shown) == 9
    seen = {None}
    for message in shown:
        assert message["parent_id"] in seen
        seen.add(message["id"])
    listed = api(alice).get(messages(chat) + "?branches=all").json()["results"]
    for message in listed:
        message["sibling_ids"] = [message["id"]]  # all branches are here: the parents tell them
    assert sorted(shown, key=lambda m: m["id"]) == sorted(listed, key=lambda m: m["id"])


def test_an_export_grows_with_the_messages_however_many_answer_the_same(alice, chat):
    """Each of 4,000 siblings named all of them: 600 MB, of a chat that came in with 2."""

    def size_with(roots):
        rows = [
            ChatMessage(
                chat=chat,
                organization_id=chat.organization_id,
                role="human",
                content="Hi",
                position=0,
            )
            for _ in range(roots)
        ]
        ChatMessage.objects.bulk_create(rows)
        return len(api(alice).get(of_chat(chat, "export/")).content)

    few = size_with(100)
    assert size_with(100) < 2.1 * few


def test_goes_round(alice, mallory, chat):
    """Another tenant may take it in: every id is new, files and foreign assistants stay behind."""
    grow(chat, alice)
    made = imported(mallory, export(alice, chat))
    assert (made.organization, made.user) == (mallory.organization, mallory.user)
    assert (made.name, made.prompt, made.assistant) == ("Rain", "Be brief.", None)
    assert sorted(map(str, tree_of(made))) == sorted(map(str, tree_of(chat)))
    assert path_of(made) == path_of(chat)
    old = set(ChatMessage.objects.filter(chat=chat).values_list("pk", flat=True))
    rows = ChatMessage.objects.filter(chat=made)
    assert not old & set(rows.values_list("pk", flat=True))
    assert not rows.exclude(organization=mallory.organization).exists()
    assert not rows.filter(assistant__isnull=False).exists()
    assert not rows.filter(file__isnull=False).exists()
    assert rows.get(role="tool").tool_call == CALL
    assert [m.content for m in rows.filter(hidden=True)] == ["Be kind."]
    assert rows.get(role="tool").opening == rows.get(role="hide_system")


def ask(persona, chat, **fields):
    return api(persona).post(messages(chat), {"content": "And now?", **fields})


def test_keeps_its_assistants_where_the_importer_sees_them(alice, chat):
    grow(chat, alice)
    answer = chat_in(take_in(alice, export(alice, chat)))
    assert (answer["assistant_id"], answer["can_be_asked"]) == (str(chat.assistant_id), True)
    made = Chat.objects.get(pk=answer["id"])
    client_tools = ChatMessage.objects.filter(chat=made, assistant=chat.assistant)
    assert {m.role for m in client_tools} == {"assistant", "tool_call"}
    assert ask(alice, made).status_code == 201


def test_keeps_its_files_where_the_importer_sees_them(alice, bob, chat):
    grow(chat, alice)
    exported = export(alice, chat)
    assert ChatMessage.objects.filter(chat=imported(alice, exported), file__isnull=False).exists()
    entry = take_in(bob, exported).json()["chats"][0]
    assert not ChatMessage.objects.filter(chat=entry["chat"]["id"], file__isnull=False).exists()
    assert [each["kind"] for each in entry["not_taken"]] == ["attachment"]


def test_says_at_once_that_no_assistant_came_along(bob, alice, chat):
    """bob is alice's colleague, and does not see her assistant until she shares it."""
    grow(chat, alice)
    exported = export(alice, chat)
    answer = chat_in(take_in(bob, exported))
    assert (answer["assistant_id"], answer["can_be_asked"]) == (None, False)
    made = Chat.objects.get(pk=answer["id"])
    assert not ChatMessage.objects.filter(chat=made, assistant__isnull=False).exists()
    assert error_of(ask(bob, made)) == (400, "no_assistant")
    Assistant.objects.update(shared=True)
    again = chat_in(take_in(bob, exported))
    assert (again["id"], again["can_be_asked"]) == (answer["id"], True)


def test_takes_the_assistant_that_the_import_names(alice, bob, chat):
    other = new_assistant(bob)
    exported = export(alice, chat)
    answer = chat_in(take_in(bob, {**exported, "assistant_id": str(other.pk)}))
    assert (answer["assistant_id"], answer["can_be_asked"]) == (str(other.pk), True)
    refused = take_in(bob, {**exported, "assistant_id": str(chat.assistant_id)})
    assert error_of(refused) == (404, "not_found")
    none = chat_in(take_in(alice, {**exported, "assistant_id": None}))
    assert (none["assistant_id"], none["can_be_asked"]) == (None, False)
    assert fields_of(take_in(bob, {**exported, "assistant_id": "x"})) == ["assistant_id"]


def test_a_bound_key_takes_in_for_its_assistant(alice, chat):
    own = new_assistant(alice)
    client = api(key=alice.new_key(assistant_id=own.pk)[1])
    exported = export(alice, chat)
    assert chat_in(client.post(IMPORT, exported))["assistant_id"] == str(own.pk)
    named = {**exported, "assistant_id": str(chat.assistant_id)}
    assert error_of(client.post(IMPORT, named)) == (404, "not_found")


def test_an_imported_chat_can_be_exported_and_taken_in_again(alice, chat):
    grow(chat, alice)
    once = imported(alice, export(alice, chat))
    twice = imported(alice, export(alice, once))
    assert sorted(map(str, tree_of(twice))) == sorted(map(str, tree_of(chat)))


def test_needs_only_role_and_content(alice):
    said = [{"role": "human", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    made = imported(alice, {"messages": said})
    assert path_of(made) == [("human", "Hi"), ("assistant", "Hello")]
    assert (made.owner, made.name) == ("user", "")
    api(alice).post(messages(made), {"role": "system", "content": "on"})
    assert len(path_of(made)) == 3


def test_takes_in_an_empty_chat(alice):
    made = imported(alice, {"chat": {"name": "Empty"}, "messages": []})
    assert (made.name, made.active_leaf) == ("Empty", None)


def test_is_found_by_search(alice):
    made = imported(alice, {"messages": [{"role": "human", "content": "我很健康"}]})
    found = api(alice).get(f"{ALL}search/?q=健康").json()["results"]
    assert [hit["chat"]["id"] for hit in found] == [str(made.pk)]


def test_dates_are_kept(alice, chat):
    (question,) = converse(chat, "Hi")
    ChatMessage.objects.filter(pk=question.pk).update(created_at="2020-02-03T04:05:06Z")
    made = imported(alice, export(alice, chat))
    assert ChatMessage.objects.get(chat=made).created_at.isoformat() == "2020-02-03T04:05:06+00:00"


def test_dates_in_the_future_are_those_of_the_import(alice):
    """A chat of the year 2999 would head the list until then."""
    late = {"created_at": "2999-01-01T00:00:00Z"}
    made = imported(alice, {"chat": late, "messages": [HI | late]})
    said = ChatMessage.objects.get(chat=made)
    assert {made.created_at.year, said.created_at.year} == {timezone.now().year}
    assert max(made.created_at, said.created_at) <= timezone.now()


def test_a_chat_of_a_key_is_the_keys(alice):
    _, secret = alice.new_key()
    answer = api(key=secret).post(IMPORT, {"messages": []})
    assert chat_in(answer)["owner"] == "api"


HI = {"role": "human", "content": "Hi"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": {"role": "human"}}, "messages"),
        ({"messages": ["Hi"]}, "messages.0"),
        ({"messages": [{"role": "human"}]}, "messages.0.content"),
        ({"messages": [{"content": "Hi"}]}, "messages.0.role"),
        ({"messages": [HI, {"role": "user", "content": "Hi"}]}, "messages.1.role"),
        ({"messages": [{"role": "human", "content": None}]}, "messages.0.content"),
        ({"messages": [{"role": "human", "content": "x" * 200_001}]}, "messages.0.content"),
        ({"messages": [{"role": "human", "content": "a\0"}]}, "messages.0.content"),
        ({"messages": [HI | {"id": "a"}, HI | {"id": "a"}]}, "messages.1.id"),
        ({"messages": [HI | {"parent_id": "b"}]}, "messages.0.parent_id"),
        (
            {"messages": [HI | {"id": "a", "parent_id": "b"}, HI | {"id": "b"}]},
            "messages.0.parent_id",
        ),
        ({"messages": [HI | {"id": "a", "parent_id": "a"}]}, "messages.0.parent_id"),
        ({"messages": [{"role": "tool", "content": "12:00"}]}, "messages.0.tool_call"),
        (
            {"messages": [{"role": "tool_call", "content": "", "tool_call": {"id": "c"}}]},
            "messages.0.tool_call",
        ),
        ({"messages": [HI | {"tool_call": "x"}]}, "messages.0.tool_call"),
        ({"messages": [HI | {"created_at": "yesterday"}]}, "messages.0.created_at"),
        ({"chat": {"active_leaf_id": "x"}, "messages": [HI]}, "chat.active_leaf_id"),
        ({"chat": {"name": "x" * 256}, "messages": []}, "chat.name"),
        ({"chat": [], "messages": []}, "chat"),
    ],
)
def test_a_bad_import_names_the_place_and_makes_nothing(alice, body, field):
    assert fields_of(take_in(alice, body)) == [field]
    assert not Chat.objects.exists()
    assert not ChatMessage.objects.exists()


def test_too_many_messages_are_refused(alice):
    answer = take_in(alice, {"messages": [HI] * (MAX_EXPORTED_MESSAGES + 1)})
    assert fields_of(answer) == ["messages"]


def test_a_long_chat_comes_in_with_few_queries(alice, django_assert_max_num_queries):
    client = api(alice)
    with django_assert_max_num_queries(25):
        answer = client.post(IMPORT, {"messages": [HI] * 1_000})
    assert answer.status_code == 201
    assert ChatMessage.objects.count() == 1_000


def test_what_the_server_decides_is_not_taken_from_the_file(alice, mallory, assistant):
    foreign = new_assistant(mallory)
    body = {
        "chat": {
            "owner": "guest",
            "guest_id": "g",
            "assistant_id": str(foreign.pk),
            "user_id": str(mallory.user.pk),
        },
        "messages": [
            HI
            | {
                "assistant_id": str(foreign.pk),
                "file_id": str(new_file(mallory).pk),
                "hidden": True,
                "turn_id": str(foreign.pk),
                "total_tokens": 7,
            }
        ],
    }
    made = imported(alice, body)
    assert (made.owner, made.user, made.assistant) == ("user", alice.user, None)
    row = ChatMessage.objects.get()
    assert (row.assistant, row.file, row.turn, row.hidden, row.total_tokens) == (
        None,
        None,
        None,
        False,
        0,
    )


def test_nobody_else_exports_and_nobody_imports_unknown(alice, bob, carol, mallory, chat):
    converse(chat, "Hi")
    for other in (bob, carol, mallory):
        assert error_of(api(other).get(of_chat(chat, "export/"))) == (404, "not_found")
    assert api().get(of_chat(chat, "export/")).status_code == 401
    assert api().post(IMPORT, {"messages": []}).status_code == 401
    _, reader = alice.new_key(scopes=["read"])
    assert api(key=reader).post(IMPORT, {"messages": []}).status_code == 403
