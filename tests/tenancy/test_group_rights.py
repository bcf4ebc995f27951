"""Who may do what with an assistant, library or tool that is shared with groups: one table, and
how fast a right ends."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.group_services import delete_group, end_grant, grant_right
from accounts.models import Group, GroupMember, Membership
from accounts.services import remove_member, sign_up
from assistants.models import Assistant
from assistants.turn_config import turn_config_of
from chats.context.lookups import library_of
from chats.models import Chat, ChatOwner, Turn
from chats.services import create_chat
from chats.tests.rows import error_of, messages, new_assistant, new_chat, new_turn, of_chat, say
from libraries.tests.ledger import new_library
from tests.fixtures.personas import OPERATOR, Persona, api, join, new_group, visit
from tests.tenancy.test_tenancy import no_rates, standing_people
from tools.models import Tool

__all__ = ["no_rates", "standing_people"]

pytestmark = pytest.mark.django_db

KINDS = ("assistant", "library", "tool")
VERBS = ("see", "use", "change", "share", "delete")
ADDRESSES = {"assistant": "assistants", "library": "libraries", "tool": "tools"}

EVERYTHING = "see use change share delete"
MAY: dict[str, str | dict[str, str]] = {
    "creator": EVERYTHING,
    "creator's key": EVERYTHING,
    "owner": EVERYTHING,
    "admin": EVERYTHING,
    "admin's key": "",
    "group that uses": "see use",
    "key of one who uses": "see use",
    "group that edits": "see use change",
    "key of one who edits": "see use change",
    "group of another right besides": "see use change",
    "member of no group": "",
    "member of another group": "",
    "left the group": "",
    "left the organization": "",
    "rival": "",
    "rival's key": "",
    # The assistant is theirs, with its library as their user sees it: never to change.
    "creator's bound key": {"assistant": "see use", "library": "see use", "tool": ""},
    "bound key of one who uses": {"assistant": "see use", "library": "see use", "tool": ""},
    "bound key of one who edits": {"assistant": "see use", "library": "see use", "tool": ""},
    "bound key of a member of no group": "",
    "guest": "",
    "nobody": "",
}


@dataclass
class World:
    """bob's private rows, of which two groups have a right."""

    people: dict[str, Persona]
    rows: dict[str, Any]
    groups: dict[str, Group]

    def grant_all(self, group: str, right: str) -> None:
        for row in self.rows.values():
            grant_right(row, group=self.groups[group], right=right, by=OPERATOR)


@pytest.fixture
def world(standing_world: World, db: None) -> World:
    return deepcopy(standing_world)


@pytest.fixture(scope="module")
def standing_world(standing_people: dict[str, Persona]) -> World:
    """Made once: each test works in a savepoint, which leaves everything as it was."""
    alice, bob = standing_people["alice"], standing_people["bob"]
    names = ("uses", "edits", "both", "outside", "elsewhere", "left", "gone")
    people = standing_people | {name: join(name, alice.organization) for name in names}
    library = new_library(bob)
    mine = {"organization": bob.organization, "user": bob.user}
    rows = {
        "assistant": Assistant.objects.create(**mine, name="A", slug="a", library=library),
        "library": library,
        "tool": Tool.objects.create(**mine, name="T", discovery_url="https://tool.example/"),
    }
    groups = {
        "users": new_group("Users", people["uses"], people["both"], people["left"], people["gone"]),
        "editors": new_group("Editors", people["edits"], people["both"]),
        "others": new_group("Others", people["elsewhere"]),
    }
    made = World(people, rows, groups)
    made.grant_all("users", "use")
    made.grant_all("editors", "edit")
    GroupMember.objects.filter(group=groups["users"], user=people["left"].user).delete()
    gone = Membership.objects.get(user=people["gone"].user, organization=alice.organization)
    remove_member(gone, by=alice.principal)
    return made


def client_of(who: str, world: World) -> Any:
    people, assistant_id = world.people, world.rows["assistant"].pk

    def key(name: str, **fields: Any) -> Any:
        return api(key=people[name].new_key(**fields)[1])

    def bound(name: str) -> Any:
        return key(name, assistant_id=assistant_id)

    def guest() -> Any:
        open_one = new_assistant(people["bob"], public=True, library=world.rows["library"])
        return api(key=visit(open_one).token)

    clients: dict[str, Callable[[], Any]] = {
        "creator": lambda: api(people["bob"]),
        "creator's key": lambda: key("bob"),
        "owner": lambda: api(people["alice"]),
        "admin": lambda: api(people["carol"]),
        "admin's key": lambda: key("carol"),
        "group that uses": lambda: api(people["uses"]),
        "key of one who uses": lambda: key("uses"),
        "group that edits": lambda: api(people["edits"]),
        "key of one who edits": lambda: key("edits"),
        "group of another right besides": lambda: api(people["both"]),
        "member of no group": lambda: api(people["outside"]),
        "member of another group": lambda: api(people["elsewhere"]),
        "left the group": lambda: api(people["left"]),
        "left the organization": lambda: api(people["gone"]),
        "rival": lambda: api(people["mallory"]),
        "rival's key": lambda: key("mallory"),
        "creator's bound key": lambda: bound("bob"),
        "bound key of one who uses": lambda: bound("uses"),
        "bound key of one who edits": lambda: bound("edits"),
        "bound key of a member of no group": lambda: bound("outside"),
        "guest": guest,
        "nobody": api,
    }
    assert set(clients) == set(MAY)
    return clients[who]()


def try_to(verb: str, client: Any, kind: str, world: World) -> int:
    """Return the status of the answer."""
    row = world.rows[kind]
    at = f"/api/v1/{ADDRESSES[kind]}/{row.pk}/"
    if verb == "use" and kind == "assistant":
        return int(client.post("/api/v1/chats/", {"assistant_id": str(row.pk)}).status_code)
    if verb == "use" and kind == "library":
        return int(client.post(f"{at}search/", {"query": "valve"}).status_code)
    if verb == "use":
        made = client.post("/api/v1/assistants/", {"name": "Own"})
        if made.status_code != 201:
            return int(made.status_code)
        own = f"/api/v1/assistants/{made.json()['id']}/tools/"
        return int(client.post(own, {"tool_id": str(row.pk)}).status_code)
    others = world.groups["others"].pk
    answers: dict[str, Callable[[], Any]] = {
        "see": lambda: client.get(at),
        "change": lambda: client.patch(at, {"name": "Renamed"}),
        "share": lambda: client.put(f"{at}grants/{others}/", {"right": "use"}),
        "delete": lambda: client.delete(at),
    }
    return int(answers[verb]().status_code)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("who", MAY)
def test_everybody_may_what_the_table_says(world, who, kind):
    said = MAY[who]
    allowed = (said if isinstance(said, str) else said[kind]).split()
    client = client_of(who, world)
    for verb in VERBS:
        status = try_to(verb, client, kind, world)
        assert (status < 300) == (verb in allowed), f"{verb}: {status}"
        assert status < 300 or status in (401, 403, 404)
        if allowed and verb not in allowed:
            assert status == 403 or (verb, kind) == ("use", "tool"), "it is seen: no secret"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("who", "access"),
    [
        ("bob", "own"),
        ("carol", "own"),
        ("uses", "use"),
        ("edits", "edit"),
        ("both", "edit"),
    ],
)
def test_answers_say_what_one_may(world, who, access, kind):
    client, pk = api(world.people[who]), str(world.rows[kind].pk)
    at = f"/api/v1/{ADDRESSES[kind]}/"
    (listed,) = [row for row in client.get(at).json()["results"] if row["id"] == pk]
    assert listed["access"] == client.get(f"{at}{pk}/").json()["access"] == access
    if access != "use":
        assert client.patch(f"{at}{pk}/", {"name": "N"}).json()["access"] == access


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shared_with_all_may_be_edited_by_a_group(world, kind):
    world.rows[kind].shared = True
    world.rows[kind].save()
    at = f"/api/v1/{ADDRESSES[kind]}/{world.rows[kind].pk}/"
    for who, access, status in (
        ("outside", "use", 403),
        ("uses", "use", 403),
        ("edits", "edit", 200),
    ):
        client = api(world.people[who])
        assert client.get(at).json()["access"] == access
        assert client.patch(at, {"name": who}).status_code == status


@pytest.mark.parametrize(
    ("kind", "field", "old", "new"),
    [
        ("assistant", "shared", False, True),
        ("assistant", "public", False, True),
        ("assistant", "public_origins", [], ["https://example.com"]),
        ("library", "shared", False, True),
        ("library", "default", False, True),
        ("tool", "shared", False, True),
    ],
)
def test_who_merely_edits_does_not_say_who_may_use_it(world, kind, field, old, new):
    """Sending the value that is there already is no change: clients send whole rows back."""
    at = f"/api/v1/{ADDRESSES[kind]}/{world.rows[kind].pk}/"
    client = api(world.people["edits"])
    refused = client.patch(at, {"name": "Mine", field: new})
    assert refused.status_code == 403
    assert "may share it" in refused.json()["error"]["message"]
    world.rows[kind].refresh_from_db()
    assert (getattr(world.rows[kind], field), world.rows[kind].name != "Mine") == (old, True)
    assert client.patch(at, {"name": "Mine", field: old}).status_code == 200
    assert api(world.people["carol"]).patch(at, {field: new}).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
def test_an_admin_sees_nothing_private_that_no_group_has(world, kind):
    at = f"/api/v1/{ADDRESSES[kind]}/{world.rows[kind].pk}/"
    world.rows[kind].grants.all().delete()
    assert api(world.people["carol"]).get(at).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_a_guest_of_a_key_sees_nothing_by_the_groups_of_the_keys_user(world, kind):
    """Guests by a key name the key's user, and are other people."""
    model = type(world.rows[kind])
    for who in ("uses", "edits"):
        visitor = replace(world.people[who].principal, guest_id="visitor")
        assert model._default_manager.visible_to(world.people[who].principal).exists()
        assert not model._default_manager.visible_to(visitor).exists()
        assert not model._default_manager.writable_by(visitor).exists()


def test_a_bound_key_is_told_that_it_only_uses_its_assistant(world):
    at = f"/api/v1/assistants/{world.rows['assistant'].pk}/"
    for who in ("creator's bound key", "bound key of one who edits"):
        assert client_of(who, world).get(at).json()["access"] == "use"


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_limited_to_what_a_group_has(world, kind):
    at = f"/api/v1/{ADDRESSES[kind]}/"
    world.rows[kind].grants.filter(group=world.groups["editors"]).delete()

    def listed(who: str, group: Group) -> list[str]:
        rows = api(world.people[who]).get(at, {"group_id": str(group.pk)}).json()["results"]
        return [row["id"] for row in rows]

    assert listed("carol", world.groups["users"]) == [str(world.rows[kind].pk)]
    assert listed("carol", world.groups["editors"]) == []
    assert listed("outside", world.groups["users"]) == []
    wrong = api(world.people["carol"]).get(at, {"group_id": "users"})
    assert error_of(wrong) == (400, "invalid")
    foreign = new_group("Foreign", world.people["mallory"])
    assert api(world.people["carol"]).get(at, {"group_id": str(foreign.pk)}).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_lists_cost_the_same_for_many_groups(world, kind, django_assert_max_num_queries):
    for number in range(4):
        group = new_group(f"More {number}", world.people["uses"])
        grant_right(world.rows[kind], group=group, right="use", by=OPERATOR)
    client = api(world.people["uses"])
    with django_assert_max_num_queries(4):  # session, user, membership, list
        assert len(client.get(f"/api/v1/{ADDRESSES[kind]}/").json()["results"]) == 1


# -- A right that ends ---------------------------------------------------------------------------


@pytest.fixture
def chat(world: World, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """A chat of somebody in the group, with a question that was answered."""
    monkeypatch.setattr("chats.turns.admission.enqueue_turn", lambda _: None)
    principal = world.people["uses"].principal
    made: Chat = create_chat(principal, assistant=world.rows["assistant"])
    asked = api(world.people["uses"]).post(messages(made), {"content": "How is it bled?"})
    assert asked.status_code == 201, asked.content
    Turn.objects.update(status="completed")
    made.refresh_from_db()
    return made


def end_the_grant(world: World) -> None:
    end_grant(world.rows["assistant"].grants.get(group=world.groups["users"]), by=OPERATOR)


def leave_the_group(world: World) -> None:
    at = f"/api/v1/groups/{world.groups['users'].pk}/members/{world.people['uses'].user.pk}/"
    assert api(world.people["uses"]).delete(at).status_code == 204


def delete_the_group(world: World) -> None:
    assert delete_group(world.groups["users"], by=OPERATOR) == 3


@pytest.mark.parametrize("end", [end_the_grant, leave_the_group, delete_the_group])
def test_a_right_ends_at_once_in_chats_too_which_stay_readable(world, chat, end):
    client = api(world.people["uses"])
    assert client.get(of_chat(chat)).json()["can_be_asked"]
    end(world)
    shown = client.get(of_chat(chat))
    assert (shown.status_code, shown.json()["can_be_asked"]) == (200, False)
    assert [row["can_be_asked"] for row in client.get("/api/v1/chats/").json()["results"]] == [
        False
    ]
    (said,) = client.get(messages(chat)).json()["results"]
    assert said["content"] == "How is it bled?"
    refused = client.post(messages(chat), {"content": "And then?"})
    assert error_of(refused) == (400, "no_assistant")
    assert "no assistant that you may use" in refused.json()["error"]["message"]
    again = client.post(f"/api/v1/messages/{said['id']}/regenerate/", {})
    assert error_of(again) == (400, "no_assistant")
    named = {"content": "And then?", "assistant_id": str(world.rows["assistant"].pk)}
    assert client.post(messages(chat), named).status_code == 404
    assert chat.messages.count() == 1
    mine = new_assistant(world.people["uses"])
    named["assistant_id"] = str(mine.pk)
    assert client.post(messages(chat), named).status_code == 201


def test_a_right_that_comes_back_lets_ask_again(world, chat):
    end_the_grant(world)
    grant_right(world.rows["assistant"], group=world.groups["users"], right="edit", by=OPERATOR)
    client = api(world.people["uses"])
    assert client.get(of_chat(chat)).json()["can_be_asked"]
    assert client.post(messages(chat), {"content": "And then?"}).status_code == 201


@pytest.mark.parametrize(
    ("who", "owner", "can"),
    [
        ("uses", ChatOwner.USER, True),
        ("uses", ChatOwner.API, True),
        ("outside", ChatOwner.USER, False),
        ("carol", ChatOwner.USER, True),
        ("carol", ChatOwner.API, False),
    ],
)
def test_a_chat_says_whether_its_assistant_may_be_asked(world, who, owner, can):
    """One by one, and in a list, where it takes no more queries."""
    made = new_chat(world.people[who], assistant=world.rows["assistant"], owner=owner)
    assert made.can_be_asked == can
    (read,) = Chat.objects.filter(pk=made.pk).annotate_grants()
    assert read.can_be_asked == can


def test_a_guest_of_a_key_gains_nothing_by_the_groups_of_the_keys_user(world):
    made = new_chat(
        world.people["uses"],
        assistant=world.rows["assistant"],
        guest_id="visitor",
        owner=ChatOwner.API,
    )
    assert not made.can_be_asked


def test_a_list_of_chats_asks_once_for_all_grants(world, django_assert_max_num_queries):
    for _ in range(5):
        new_chat(world.people["uses"], assistant=world.rows["assistant"])
    client = api(world.people["uses"])
    with django_assert_max_num_queries(4):  # session, user, membership, list
        rows = client.get("/api/v1/chats/").json()["results"]
    assert [row["can_be_asked"] for row in rows] == [True] * 5


# -- What an assistant works with ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "fields", "is_searched"),
    [
        ("uses", {}, True),
        ("edits", {}, True),
        ("outside", {}, False),
        ("carol", {}, True),
        ("carol", {"by_key": True}, False),
        ("uses", {"by_key": True}, True),
        ("uses", {"guest_id": "visitor"}, False),
    ],
)
def test_the_library_is_searched_for_whom_it_was_granted(
    world, who, fields, is_searched, django_assert_num_queries
):
    """The assistant is alice's and shared, its library bob's and granted."""
    persona = world.people[who]
    assistant = new_assistant(world.people["alice"], shared=True, library=world.rows["library"])
    given = dict(fields)
    if given.pop("by_key", False):
        given["api_key"] = persona.new_key()[0]
    chat = new_chat(persona, assistant=assistant)
    say(chat)
    turn = new_turn(chat, assistant=assistant, **given)

    config = turn_config_of(assistant)
    with django_assert_num_queries(1):
        found = library_of(turn, config)
    assert found == (world.rows["library"] if is_searched else None)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_see_who_was_granted_what(world, kind):
    operator = Client()
    operator.force_login(sign_up("root@example.com", operator=True))
    row = world.rows[kind]
    page = operator.get(
        reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_change", args=[row.pk])
    )
    assert page.status_code == 200
    for group in ("users", "editors"):
        assert world.groups[group].name in page.content.decode()
    assert world.groups["others"].name not in page.content.decode()
