import pytest

from assistants.models import Assistant
from chats.models import Chat, Turn
from chats.tests.rows import ABSENT, ALL, error_of, fields_of, new_assistant, new_chat, of_chat, say
from chats.tests.runs import ask
from tests.fixtures.personas import api

FIELDS = {
    "id",
    "name",
    "assistant_id",
    "can_be_asked",
    "prompt",
    "owner",
    "guest_id",
    "expired_at",
    "pinned_scene_id",
    "active_leaf_id",
    "live_turn_id",
    "pinned",
    "archived",
    "created_at",
    "updated_at",
}


def test_opens_a_chat(alice, assistant):
    answer = api(alice).post(ALL, {"assistant_id": str(assistant.pk), "prompt": " Be brief. "})
    assert answer.status_code == 201
    assert set(answer.json()) == FIELDS
    chat = Chat.objects.get(pk=answer.json()["id"])
    assert (chat.organization, chat.user, chat.owner) == (alice.organization, alice.user, "user")
    assert (chat.assistant, chat.prompt, chat.name) == (assistant, " Be brief. ", "")


def test_everything_may_be_left_out(alice):
    answer = api(alice).post(ALL, {})
    assert answer.status_code == 201
    assert answer.json()["assistant_id"] is None


def test_says_at_once_whether_it_can_be_asked(alice, bob):
    """As asking does: the assistant is there, and its user sees it."""
    client_tools = new_assistant(alice, shared=True)

    def is_told(chat_id):
        (listed,) = api(bob).get(ALL).json()["results"]
        shown = api(bob).get(f"{ALL}{chat_id}/").json()
        assert listed == shown
        asked = api(bob).post(f"{ALL}{chat_id}/messages/", {"content": "Hi"})
        assert (asked.status_code == 201) == shown["can_be_asked"], asked.content
        Turn.objects.update(status="completed")
        return shown["can_be_asked"]

    made = api(bob).post(ALL, {}).json()
    at = made["id"]
    assert not made["can_be_asked"]
    assert not is_told(at)
    named = {"content": "Hi", "assistant_id": str(client_tools.pk)}
    assert api(bob).post(f"{ALL}{at}/messages/", named).status_code == 201
    Turn.objects.update(status="completed")
    given = api(bob).patch(f"{ALL}{at}/", {"assistant_id": str(client_tools.pk)}).json()
    assert given["can_be_asked"]
    assert is_told(at)
    Assistant.objects.update(shared=False)
    assert not is_told(at)
    Assistant.objects.update(shared=True)
    assert is_told(at)
    assert api(alice).delete(f"/api/v1/assistants/{client_tools.pk}/").status_code == 204
    assert not is_told(at)


def test_a_list_asks_once_for_all_assistants(alice, django_assert_max_num_queries):
    for _ in range(5):
        new_chat(alice, assistant=new_assistant(alice))
    client = api(alice)
    with django_assert_max_num_queries(4):  # session, user, membership, list
        assert all(row["can_be_asked"] for row in client.get(ALL).json()["results"])


def test_a_guests_chat_can_be_asked_while_its_assistant_is_public(guest):
    chat = Chat(guest_id="g", assistant=guest.assistant)
    assert chat.can_be_asked
    guest.assistant.public = False
    assert not chat.can_be_asked


def test_a_chat_of_a_key_is_its_users_and_listed_apart(alice):
    _, secret = alice.new_key()
    mine = api(alice).post(ALL, {"name": "mine"}).json()
    by_key = api(key=secret).post(ALL, {"name": "by key"}).json()
    assert by_key["owner"] == "api"
    assert Chat.objects.get(pk=by_key["id"]).user == alice.user

    def names(client, query=""):
        return [row["name"] for row in client.get(ALL + query).json()["results"]]

    assert names(api(alice)) == ["mine"]
    assert names(api(alice), "?owner=api") == ["by key"]
    assert names(api(alice), "?owner=guest") == []
    assert names(api(key=secret)) == ["by key"]
    assert names(api(key=secret), "?owner=user") == ["mine"]
    assert api(alice).get(of_chat(Chat.objects.get(pk=by_key["id"]))).status_code == 200
    assert mine["owner"] == "user"


def test_an_unknown_owner_is_400(alice):
    assert fields_of(api(alice).get(ALL + "?owner=everybody")) == ["owner"]


def test_lists_the_newest_first_page_by_page(alice):
    for number in range(5):
        new_chat(alice, name=f"chat {number}")
    first = api(alice).get(ALL + "?limit=2").json()
    assert [row["name"] for row in first["results"]] == ["chat 4", "chat 3"]
    second = api(alice).get(first["next"]).json()
    assert [row["name"] for row in second["results"]] == ["chat 2", "chat 1"]
    assert api(alice).get(second["previous"]).json()["results"] == first["results"]


def test_finds_by_part_of_the_name(alice):
    new_chat(alice, name="On rivers")
    new_chat(alice, name="On stones")
    found = api(alice).get(ALL + "?q=RIVER").json()["results"]
    assert [row["name"] for row in found] == ["On rivers"]


def test_nobody_else_reads_it(alice, bob, carol, mallory):
    chat = new_chat(alice, name="mine")
    for other in (bob, carol, mallory):
        client = api(other)
        assert client.get(ALL).json()["results"] == []
        assert client.get(of_chat(chat)).status_code == 404
        assert client.patch(of_chat(chat), {"name": "x"}).status_code == 404
        assert client.delete(of_chat(chat)).status_code == 404
    chat.refresh_from_db()
    assert chat.name == "mine"


def test_the_same_person_in_another_organization_does_not_see_it(alice, bob):
    chat = new_chat(bob)
    other = bob.user.memberships.exclude(organization=bob.organization).get().organization
    answer = api(bob).put("/api/v1/me/organization/", {"organization_id": str(other.pk)})
    assert answer.status_code == 200
    client = api(type(bob)(bob.user, other, "owner"))
    assert client.get(of_chat(chat)).status_code == 404
    assert client.get(ALL).json()["results"] == []


def test_anonymous_is_401(alice):
    chat = new_chat(alice)
    client = api()
    assert error_of(client.get(ALL)) == (401, "not_authenticated")
    assert client.post(ALL, {}).status_code == 401
    for verb in (client.get, client.patch, client.delete):
        assert verb(of_chat(chat)).status_code == 401


def test_shows_and_changes(alice, assistant):
    chat = new_chat(alice, assistant=assistant)
    answer = api(alice).patch(of_chat(chat), {"name": "New", "prompt": None, "assistant_id": None})
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["assistant_id"]) == ("New", None)
    assert api(alice).get(of_chat(chat)).json() == answer.json()
    chat.refresh_from_db()
    assert (chat.name, chat.assistant) == ("New", None)


def test_a_change_leaves_the_rest_alone(alice, assistant):
    chat = new_chat(alice, assistant=assistant, name="Old", prompt="Be brief.")
    leaf = say(chat)
    api(alice).patch(of_chat(chat), {"name": "New"})
    chat.refresh_from_db()
    assert (chat.assistant, chat.prompt, chat.active_leaf) == (assistant, "Be brief.", leaf)


def test_server_chosen_fields_are_not_taken_from_the_body(alice, mallory):
    chat = new_chat(alice)
    body = {
        "id": ABSENT,
        "owner": "guest",
        "guest_id": "g",
        "user_id": str(mallory.user.pk),
        "organization_id": str(mallory.organization.pk),
        "active_leaf_id": ABSENT,
        "created_at": "2001-01-01T00:00:00Z",
    }
    for answer in (api(alice).post(ALL, body), api(alice).patch(of_chat(chat), body)):
        assert answer.status_code in (200, 201)
        made = Chat.objects.get(pk=answer.json()["id"])
        assert (made.organization, made.user, made.owner) == (
            alice.organization,
            alice.user,
            "user",
        )
        assert (made.guest_id, made.active_leaf) == (None, None)
        assert made.created_at.year > 2001


def test_assistants_that_are_absent_or_not_yours_are_404(alice, bob, mallory):
    private, foreign = new_assistant(bob), new_assistant(mallory)
    chat = new_chat(alice)
    for pk in (ABSENT, private.pk, foreign.pk):
        assert error_of(api(alice).post(ALL, {"assistant_id": str(pk)})) == (404, "not_found")
        assert api(alice).patch(of_chat(chat), {"assistant_id": str(pk)}).status_code == 404
    assert Chat.objects.count() == 1


def test_a_shared_assistant_of_a_colleague_may_be_used(alice, bob):
    shared = new_assistant(bob, shared=True)
    assert api(alice).post(ALL, {"assistant_id": str(shared.pk)}).status_code == 201


def test_a_scene_that_is_not_yours_is_404(alice, assistant, mallory):
    scene = assistant.scene_prompts.create(organization=alice.organization, label="L")
    assert api(alice).post(ALL, {"pinned_scene_id": str(scene.pk)}).status_code == 201
    assert api(mallory).post(ALL, {"pinned_scene_id": str(scene.pk)}).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x" * 256}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": None}, "name"),
        ({"prompt": "x" * 200_001}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"assistant_id": "nobody"}, "assistant_id"),
        ({"pinned_scene_id": "x"}, "pinned_scene_id"),
    ],
)
def test_a_bad_body_names_the_field(alice, body, field):
    chat = new_chat(alice)
    assert fields_of(api(alice).post(ALL, body)) == [field]
    assert fields_of(api(alice).patch(of_chat(chat), body)) == [field]
    assert Chat.objects.count() == 1


def test_a_bad_address_is_404_and_a_bad_method_405(alice):
    assert api(alice).get(f"{ALL}nonsense/").status_code == 404
    assert error_of(api(alice).put(ALL, {})) == (405, "method_not_allowed")
    assert api(alice).get(ALL + "?cursor=nonsense").status_code == 400


# -- Lists -----------------------------------------------------------------------------------------


def names_of(persona, **asked):
    answer = api(persona).get(ALL, asked)
    assert answer.status_code == 200, answer.json()
    return [chat["name"] for chat in answer.json()["results"]]


def test_archived_chats_are_listed_on_demand(alice):
    new_chat(alice, name="old")
    old = Chat.objects.get()
    new_chat(alice, name="new")
    before = api(alice).get(of_chat(old)).json()["updated_at"]
    shown = api(alice).patch(of_chat(old), {"archived": True}).json()
    assert (shown["archived"], shown["updated_at"]) == (True, before)
    assert names_of(alice) == names_of(alice, archived="false") == ["new"]
    assert names_of(alice, archived="true") == ["old"]
    assert names_of(alice, archived="all") == ["new", "old"]


def test_pinned_chats_can_be_listed_alone(alice):
    pinned, _ = new_chat(alice, name="pinned"), new_chat(alice, name="other")
    assert api(alice).patch(of_chat(pinned), {"pinned": True}).json()["pinned"] is True
    assert names_of(alice, pinned="true") == ["pinned"]
    assert names_of(alice, pinned="false") == ["other"]


@pytest.mark.parametrize("name", ["archived", "pinned", "order", "owner"])
def test_an_unknown_choice_is_named(alice, name):
    assert fields_of(api(alice).get(ALL, {name: "x"})) == [name]


def test_chats_are_listed_by_activity_page_by_page(alice):
    chats = [new_chat(alice, name=str(number)) for number in range(5)]
    for number in (3, 0):
        say(chats[number], "Hi")
    api(alice).patch(of_chat(chats[1]), {"pinned": True})
    wanted = ["0", "3", "4", "2", "1"]
    assert names_of(alice, order="activity") == wanted
    assert names_of(alice) == ["4", "3", "2", "1", "0"]
    address, seen = f"{ALL}?order=activity&limit=2", []
    while address:
        page = api(alice).get(address).json()
        seen += [chat["name"] for chat in page["results"]]
        last, address = page, page["next"]
    assert seen == wanted
    back = api(alice).get(last["previous"]).json()
    assert [chat["name"] for chat in back["results"]] == ["4", "2"]


def test_a_chat_names_the_turn_that_is_under_way(alice, new_model):
    new_model()
    turn = ask(alice)
    client, chat = api(alice), of_chat(turn.chat)
    assert client.get(chat).json()["live_turn_id"] == str(turn.pk)
    assert client.get(ALL).json()["results"][0]["live_turn_id"] == str(turn.pk)
    client.post(f"/api/v1/turns/{turn.pk}/cancel/")
    assert client.get(chat).json()["live_turn_id"] is None
    assert client.get(ALL).json()["results"][0]["live_turn_id"] is None


def test_marks_survive_export_and_import(alice):
    chat = new_chat(alice, name="kept", pinned=True, archived=True)
    say(chat, "Hi")
    exported = api(alice).get(of_chat(chat, "export/")).json()
    chat.delete()
    (entry,) = api(alice).post(f"{ALL}import/", exported, format="json").json()["chats"]
    assert (entry["chat"]["pinned"], entry["chat"]["archived"]) == (True, True)
