"""What Postgres shows of assistants, libraries and tools to whoever asks without `visible_to`: what is
theirs, shared, public or granted to a group of theirs, and nothing private of a colleague.

And that what rightly needs more than that still works: a turn, an admin, a row that was closed
meanwhile.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import DataError, ProgrammingError, connection, transaction

from accounts.group_services import end_grant, grant_right
from accounts.models import ApiKey, AuditEvent, Group, GroupMember, Invitation
from accounts.services import invite
from accounts.tenancy.wall import NO_WEB_GUEST, TABLES
from amber.lib.database.tenant import (
    NOBODY,
    Tenant,
    across_tenants,
    as_tenant,
    for_whole_organization,
)
from amber.lib.errors import Conflict
from assistants.bound_tools import bound_tools
from assistants.models import Assistant, AssistantTool, ScenePrompt
from assistants.totals import count_tokens
from assistants.turn_config import turn_config_of
from chats.context.gathering import gather, load_claimed_turn
from chats.context.lookups import library_of
from chats.messages.wire import chat_wire
from chats.models import Chat, ChatMessage, Turn
from chats.tests.rows import messages, new_assistant, new_chat, new_turn, of_chat, say
from libraries.models import Library
from libraries.tests.ledger import new_library
from operations.tests.test_take_data_along import exported
from public_api.models import Webhook
from tests.fixtures.personas import OPERATOR, Persona, api, join, new_group
from tests.tenancy.test_group_rights import ADDRESSES
from tests.tenancy.test_tenancy import no_rates
from tools.models import Tool

__all__ = ["no_rates"]

pytestmark = pytest.mark.django_db

MODELS: dict[str, Any] = {"assistant": Assistant, "library": Library, "tool": Tool}

READ, WRITE, NOTHING = "read", "read write", ""

MAY: dict[str, dict[str, str]] = {
    "everybody": dict.fromkeys(
        ("private", "shared", "public", "granted", "granted to edit", "ownerless"), WRITE
    ),
    "creator": {
        "private": WRITE,
        "shared": WRITE,
        "public": WRITE,
        "granted": WRITE,
        "granted to edit": WRITE,
    },
    # The door says what guests of keys may use; what their key's user may not, they may not either.
    "guest of the creator's key": {
        "private": WRITE,
        "shared": WRITE,
        "public": WRITE,
        "granted": WRITE,
        "granted to edit": WRITE,
    },
    "owner": {"shared": WRITE, "granted": WRITE, "granted to edit": WRITE},
    "admin": {"shared": WRITE, "granted": WRITE, "granted to edit": WRITE},
    # To use or to edit, is for the door to tell.
    "in the group": {"shared": WRITE, "granted": WRITE, "granted to edit": WRITE},
    "guest of the key of one in the group": {
        "shared": WRITE,
        "granted": WRITE,
        "granted to edit": WRITE,
    },
    "left the group": {"shared": WRITE},
    "in another group": {"shared": WRITE},
    "member of no group": {"shared": WRITE},
    "guest of that one's key": {"shared": WRITE},
    "guest of a page": {"public": READ},
    "neither person nor guest": {"public": READ},
    "stranger's id": {"shared": WRITE},
    "guest of another kind": {"shared": WRITE},
    "rival": {},
    "everybody of another organization": {},
}
"""What of a row of bob's, in each state, by who asks. Only assistants are public."""

STATES = ("private", "shared", "public", "granted", "granted to edit", "ownerless")


@pytest.fixture
def people(alice: Persona, bob: Persona, carol: Persona, mallory: Persona) -> dict[str, Persona]:
    joined = {name: join(name, alice.organization) for name in ("inside", "elsewhere", "nowhere")}
    return {"alice": alice, "bob": bob, "carol": carol, "mallory": mallory, **joined}


@pytest.fixture
def group(people: dict[str, Persona]) -> Group:
    new_group("Others", people["elsewhere"])
    left = join("left", people["alice"].organization)
    people["left"] = left
    made = new_group("Group", people["inside"], left)
    GroupMember.objects.filter(user=left.user).delete()
    return made


def tenant_of(who: str, people: dict[str, Persona]) -> Tenant:
    place, away = people["bob"].organization.pk, people["mallory"].organization.pk

    def person(name: str, guest: str = "") -> Tenant:
        user_id = people[name].user.pk
        return Tenant(place, user_id, f"{user_id}:{guest}" if guest else None)

    return {
        "everybody": Tenant(place, is_whole=True),
        "creator": person("bob"),
        "guest of the creator's key": person("bob", "visitor"),
        "owner": person("alice"),
        "admin": person("carol"),
        "in the group": person("inside"),
        "guest of the key of one in the group": person("inside", "a:b"),
        "left the group": person("left"),
        "in another group": person("elsewhere"),
        "member of no group": person("nowhere"),
        "guest of that one's key": person("nowhere", "visitor"),
        "guest of a page": Tenant(place, guest_id="web:someone"),
        "neither person nor guest": Tenant(place),
        "guest of another kind": Tenant(place, guest_id="somebody"),
        "stranger's id": Tenant(place, people["mallory"].user.pk),
        "rival": Tenant(away, people["mallory"].user.pk),
        "everybody of another organization": Tenant(away, is_whole=True),
    }[who]


def new_row(kind: str, owner: Persona, **fields: Any) -> Any:
    if kind == "library":
        return new_library(owner, **fields)
    if kind == "assistant":
        return new_assistant(owner, **fields)
    mine = {"organization": owner.organization, "user": owner.user, "name": "T"}
    return Tool.objects.create(**mine, discovery_url="https://tool.example/", **fields)


def row_in(state: str, kind: str, people: dict[str, Persona], group: Group) -> Any:
    row = new_row(kind, people["bob"], **({state: True} if state in ("shared", "public") else {}))
    if state == "ownerless":
        type(row).objects.filter(pk=row.pk).update(user=None)
    if state.startswith("granted"):
        grant_right(row, group=group, right="edit" if "edit" in state else "use", by=OPERATOR)
    return row


def rights_to(row: Any) -> str:
    """What this tenant may do with the row, by SQL that names nothing but its id."""
    table = row._meta.db_table
    counts = []
    for statement in (
        f"SELECT FROM {table} WHERE id = %s",
        f"UPDATE {table} SET updated_at = now() WHERE id = %s",
        f"DELETE FROM {table} WHERE id = %s",
    ):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            cursor.execute(statement, [row.pk])
            counts.append(cursor.rowcount)
            transaction.set_rollback(True)
    assert counts[1] == counts[2]
    assert type(row).objects.filter(pk=row.pk).count() == counts[0]
    return {(1, 1): WRITE, (1, 0): READ, (0, 0): NOTHING}[counts[0], counts[1]]


@pytest.mark.parametrize("kind", MODELS)
def test_a_query_that_asks_for_everything_gets_what_the_table_says(people, group, kind):
    states = [state for state in STATES if state != "public" or kind == "assistant"]
    rows = {state: row_in(state, kind, people, group) for state in states}
    for who, may in MAY.items():
        with as_tenant(tenant_of(who, people)):
            found = {state: rights_to(row) for state, row in rows.items()}
            seen = set(MODELS[kind].objects.values_list("pk", flat=True))
        assert found == {state: may.get(state, NOTHING) for state in states}, who
        assert seen & {row.pk for row in rows.values()} == {
            row.pk for state, row in rows.items() if found[state]
        }, who


@pytest.mark.parametrize("model", [AssistantTool, ScenePrompt])
def test_what_belongs_to_an_assistant_is_seen_with_it(people, group, model):
    tool = new_row("tool", people["bob"])
    more = {"tool": tool} if model is AssistantTool else {"label": "x"}
    rows = {}
    for state in STATES:
        assistant = row_in(state, "assistant", people, group)
        of = {"organization": assistant.organization, "assistant": assistant}
        rows[state] = model.objects.create(**of, **more)
    for who, may in MAY.items():
        with as_tenant(tenant_of(who, people)):
            found = {state: rights_to(row) for state, row in rows.items()}
        assert found == {state: may.get(state, NOTHING) for state in STATES}, who


def test_the_whole_organization_is_ones_own_and_ends_with_its_block(people, mallory):
    theirs = new_assistant(people["bob"])
    own = new_assistant(mallory)
    with as_tenant(people["nowhere"].principal.tenant):
        with for_whole_organization():
            assert set(Assistant.objects.all()) == {theirs}
        assert not Assistant.objects.exists()
    with across_tenants(), for_whole_organization():
        assert set(Assistant.objects.all()) == {theirs, own}
    with as_tenant(NOBODY), for_whole_organization(), pytest.raises(DataError):
        Assistant.objects.exists()


def refuses(act: Callable[[], Any]) -> bool:
    try:
        with transaction.atomic():
            act()
    except ProgrammingError as error:
        assert "row-level security" in str(error)
        return True
    return False


@pytest.mark.parametrize("kind", MODELS)
def test_nobody_makes_a_private_row_in_anothers_name(people, kind):
    model = MODELS[kind]
    row = new_row(kind, people["bob"], shared=True)
    with as_tenant(people["nowhere"].principal.tenant):
        for fields in ({"user": people["bob"].user}, {"user": None}):
            row.pk, row.slug = uuid4(), "another"
            row.user, row.shared = fields["user"], False
            assert refuses(lambda: row.save(force_insert=True))
        row.user = people["nowhere"].user
        row.save(force_insert=True)
    assert model.objects.get(pk=row.pk).user == people["nowhere"].user


@pytest.mark.parametrize("kind", MODELS)
def test_a_shared_row_is_not_taken_from_everybody_by_one_statement(people, kind):
    """Services that close it are the ones that may (and their doors ask for an admin)."""
    model = MODELS[kind]
    row = new_row(kind, people["bob"], shared=True)
    with as_tenant(people["carol"].principal.tenant):
        assert refuses(lambda: model.objects.filter(pk=row.pk).update(shared=False))
        assert not refuses(
            lambda: model.objects.filter(pk=row.pk).update(user=people["carol"].user)
        )


def test_web_guests_touch_nothing_of_the_organizations_own(people, group):
    organization = people["alice"].organization
    people["alice"].new_key()
    invite(organization, email="new@example.com", role="member", by=people["alice"].principal)
    Webhook.objects.create(
        organization=organization, user=people["alice"].user, url="https://hook.example/", events=[]
    )
    models = {"Group": Group, "GroupMember": GroupMember, "ApiKey": ApiKey, "Webhook": Webhook}
    models |= {"AuditEvent": AuditEvent, "Invitation": Invitation}
    names = {model._meta.db_table for model in models.values()} | {"accounts_auditchain"}
    assert names == {table for table, wall in TABLES.items() if wall == NO_WEB_GUEST}
    with as_tenant(people["nowhere"].principal.tenant):
        assert all(model._default_manager.exists() for model in models.values())
    for tenant in (Tenant(organization.pk, guest_id="web:someone"), Tenant(organization.pk)):
        with as_tenant(tenant):
            assert [table for table in names if count_of(table)] == []
            assert refuses(lambda: Group.objects.create(organization=organization, name="G"))


def count_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


# -- What a turn reaches through its assistant -----------------------------------------------------


@pytest.mark.parametrize(
    "who",
    ["creator", "member of no group", "guest of that one's key", "guest of a page", "admin"],
)
def test_a_turn_works_with_what_is_private_to_its_assistants_creator(
    people, group, who, django_assert_num_queries
):
    library, tool = new_library(people["bob"]), new_row("tool", people["bob"])
    Tool.objects.filter(pk=tool.pk).update(
        data={"version": 1, "functions": []}, discovery_url="https://tool.example/"
    )
    assistant = new_assistant(people["bob"], shared=True, public=True, library=library)
    AssistantTool.objects.create(
        organization=assistant.organization, assistant=assistant, tool=tool
    )
    tenant = tenant_of(who, people)
    mine = {"user_id": tenant.user_id, "guest_id": tenant.guest_id, "assistant": assistant}
    chat = Chat.objects.create(organization=assistant.organization, **mine)
    say(chat)
    turn_id = Turn.objects.create(organization=assistant.organization, chat=chat, **mine).pk
    with as_tenant(tenant):
        with django_assert_num_queries(1):
            turn = load_claimed_turn(turn_id)
            assert turn is not None
            assert turn.assistant == assistant
        assert library_of(turn, turn_config_of(assistant)) == library
        count_tokens(assistant.pk, 7)
        is_seen = (Library.objects.exists(), Tool.objects.exists())
    assert is_seen == ((True, True) if who == "creator" else (False, False))
    assistant.refresh_from_db()
    assert assistant.total_token_usage == 7


def test_the_functions_of_a_private_tool_are_offered_to_whom_the_assistant_is(people, monkeypatch):
    monkeypatch.setattr("assistants.bound_tools._functions", lambda binding: [binding.tool.pk])
    tool = new_row("tool", people["bob"])
    assistant = new_assistant(people["bob"], shared=True)
    AssistantTool.objects.create(
        organization=assistant.organization, assistant=assistant, tool=tool
    )
    with as_tenant(people["nowhere"].principal.tenant):
        assert bound_tools(assistant, user_id=people["nowhere"].user.pk) == [tool.pk]
        assert not Tool.objects.exists()
    seen = api(people["nowhere"]).get(f"/api/v1/assistants/{assistant.pk}/tools/").json()
    assert [row["tool_id"] for row in seen["results"]] == [str(tool.pk)]
    unbound = api(people["carol"]).delete(f"/api/v1/assistants/{assistant.pk}/tools/{tool.pk}/")
    assert unbound.status_code == 204


# -- Rows that were closed meanwhile ---------------------------------------------------------------


@pytest.fixture
def closed(people: dict[str, Persona]) -> Chat:
    """A chat of somebody's with an assistant of bob's, who closed it afterwards."""
    assistant = new_assistant(people["bob"], name="Closed")
    chat = new_chat(people["nowhere"], assistant=assistant)
    asked = say(chat)
    say(chat, "Yes.", role="assistant", parent=asked, assistant=assistant)
    return chat


def test_a_chat_still_says_who_answered(people, closed):
    client = api(people["nowhere"])
    shown = client.get(of_chat(closed))
    assert (shown.status_code, shown.json()["can_be_asked"]) == (200, False)
    assert shown.json()["assistant_id"] == str(closed.assistant_id)
    for query in ({}, {"branches": "all"}):
        said = client.get(messages(closed), query).json()["results"]
        assert [row["assistant"] and row["assistant"]["name"] for row in said] == [None, "Closed"]
    listed = client.get("/api/v1/chats/").json()["results"]
    assert [row["can_be_asked"] for row in listed] == [False]
    (hit,) = client.get("/api/v1/chats/search/", {"q": "Yes"}).json()["results"]
    assert hit["message"]["assistant"]["name"] == "Closed"


@pytest.mark.django_db(transaction=True)
def test_an_export_still_says_who_answered(people, closed):
    tool = new_row("tool", people["bob"], shared=True)
    mine = new_assistant(people["nowhere"])
    AssistantTool.objects.create(organization=mine.organization, assistant=mine, tool=tool)
    Tool.objects.update(shared=False)
    with as_tenant(people["nowhere"].principal.tenant):  # as whoever streams it does
        document = exported(people["nowhere"])
    (kept,) = document["chats"]
    said = [row["assistant"] and row["assistant"]["name"] for row in kept["messages"]]
    assert said == [None, "Closed"]
    (assistant,) = document["assistants"]
    assert [each["tool_id"] for each in assistant["tools"]] == [str(tool.pk)]


def test_an_answer_under_way_is_finished_and_counted(people, closed):
    turn_id = new_turn(closed, assistant=closed.assistant).pk
    with as_tenant(people["nowhere"].principal.tenant):
        turn = load_claimed_turn(turn_id)
        assert turn is not None
        assert not Assistant.objects.exists()
        assert turn.assistant is not None
        assert turn.assistant.name == "Closed"
        count_tokens(turn.assistant.pk, 5)
    assert Assistant.objects.get(name="Closed").total_token_usage == 5
    # Cancelled, what was shown becomes a message of the assistant's.
    Turn.objects.filter(pk=turn_id).update(status="waiting", partial_text="As I said")
    cancelled = api(people["nowhere"]).post(f"/api/v1/turns/{turn_id}/cancel/")
    assert cancelled.status_code == 200
    kept = ChatMessage.objects.get(content="As I said")
    assert kept.assistant_id == closed.assistant_id


def test_a_turn_keeps_the_scene_that_was_chosen_for_its_chat(people, closed):
    scene = ScenePrompt.objects.create(
        organization=closed.organization, assistant=closed.assistant, label="Calm"
    )
    Chat.objects.filter(pk=closed.pk).update(pinned_scene=scene)
    turn_id = new_turn(closed, assistant=closed.assistant, question=closed.active_leaf).pk
    with as_tenant(people["nowhere"].principal.tenant):
        turn = load_claimed_turn(turn_id)
        assert turn is not None
        assert gather(turn).wanted.pinned_scene == scene
        assert not ScenePrompt.objects.exists()


@pytest.mark.parametrize("kind", MODELS)
def test_an_admin_closes_what_others_share_and_is_told_so(people, kind):
    row = new_row(kind, people["bob"], shared=True)
    at = f"/api/v1/{ADDRESSES[kind]}/{row.pk}/"
    done = api(people["carol"]).patch(at, {"shared": False})
    assert (done.status_code, done.json()["shared"]) == (200, False)
    assert api(people["carol"]).get(at).status_code == 404
    assert api(people["bob"]).get(at).status_code == 200


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_grant_of_what_nobody_owns_does_not_end(people, group, kind):
    row = row_in("granted", kind, people, group)
    MODELS[kind].objects.filter(pk=row.pk).update(user=None)
    with as_tenant(people["carol"].principal.tenant), pytest.raises(Conflict):
        end_grant(row.grants.get(), by=people["carol"].actor)


# -- Rows of others that one does not see ----------------------------------------------------------


def test_a_name_that_a_private_assistant_has_gets_another_slug(people):
    new_assistant(people["bob"], name="Helper", slug="helper")
    client = api(people["nowhere"])
    made = client.post("/api/v1/assistants/", {"name": "Helper"})
    assert (made.status_code, made.json()["slug"]) == (201, "helper-2")
    taken = client.post("/api/v1/assistants/", {"name": "Helper", "slug": "helper"})
    assert taken.status_code == 409


def test_a_shared_tool_is_deleted_though_private_assistants_of_others_use_it(people):
    tool = new_row("tool", people["bob"], shared=True)
    assistant = new_assistant(people["nowhere"])
    AssistantTool.objects.create(
        organization=assistant.organization, assistant=assistant, tool=tool
    )
    assert api(people["carol"]).delete(f"/api/v1/tools/{tool.pk}/").status_code == 204
    assert not AssistantTool.objects.exists()


def test_a_shared_assistant_is_deleted_from_everybodys_chats(people):
    assistant = new_assistant(people["bob"], shared=True)
    chat = new_chat(people["nowhere"], assistant=assistant)
    assert api(people["carol"]).delete(f"/api/v1/assistants/{assistant.pk}/").status_code == 204
    chat.refresh_from_db()
    with as_tenant(people["nowhere"].principal.tenant):
        assert chat_wire(chat)["assistant_id"] is None
