"""Every address against every asker, generated from the URLconf: a new route cannot be forgotten.
Those of guests, and what guests may not: tests/tenancy/test_guest_tenancy.py.

A route whose id is of a new kind fails here until `rows_of` makes a row for it.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import TestCase
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from accounts.group_services import add_group_member, grant_right
from accounts.models import Group, GroupMember, Invitation, Membership, Role
from assistants.models import Assistant, AssistantGrant, AssistantTool, ScenePrompt
from chats.messages import transcript
from chats.models import Chat, Turn
from libraries.models import Document, File, Library, LibraryGrant, Repository
from memory.facts.facts import Fact, remember
from memory.owner import Owner
from providers.models import Budget, EmbeddingModel, Provider
from public_api.models import Webhook, WebhookDelivery
from tests.fixtures.personas import OPERATOR, Persona, api, found, join, new_group
from tests.rest.routes import METHODS, Route, all_routes
from tools.models import Tool, ToolGrant

ROUTES = [route for route in all_routes() if not route.is_for_guests]
WITH_IDS = [route for route in ROUTES if route.parameters]
WITHOUT_IDS = [route for route in ROUTES if not route.parameters]
CALLS = [(route, method) for route in ROUTES for method in route.methods]
CALLS_WITH_IDS = [(route, method) for route, method in CALLS if route.parameters]
PERSONAL = {"chat_id", "message_id", "turn_id", "file_id", "key_id", "memory_id", "webhook_id"}
"""Rows of one user, which colleagues and admins do not read either."""
SEEN_BY_ADMINS = {"key_id"}
"""To revoke them."""


def named(value: Any) -> str:
    return value.template if isinstance(value, Route) else str(value)


def rows_of(persona: Persona) -> dict[str, UUID]:
    """A row of this persona's for every kind of id in an address."""
    mine: dict[str, Any] = {"organization": persona.organization, "user": persona.user}
    assistant = Assistant.objects.create(**mine, name="A", slug="a")
    tool = Tool.objects.create(**mine, name="T", discovery_url="https://tool.example/")
    within = {"organization": persona.organization, "assistant": assistant}
    AssistantTool.objects.create(**within, tool=tool)
    chat = Chat.objects.create(**mine, assistant=assistant)
    message = transcript.append(chat, None, role="human", content="secret of the owner")
    transcript.move_leaf(chat, message)
    manifest = {"model": "m"}
    turn = Turn.objects.create(**mine, chat=chat, question=message, tip=message, manifest=manifest)
    file = File.objects.create(
        **mine, name="f", file_hash="0" * 64, mime_type="text/plain", path=f"{turn.pk}", size=1
    )
    provider, _ = Provider.objects.get_or_create(name="p", defaults={"base_url": "offline:"})
    model, _ = EmbeddingModel.objects.get_or_create(alias="e", defaults={"provider": provider})
    library = Library.objects.create(**mine, name="L", embedding_model=model)
    document = Document.objects.create(**mine, library=library, name="secret of the owner")
    repository = Repository.objects.create(**mine, library=library, git_url="https://git.example/r")
    invitation = Invitation.objects.create(
        organization=persona.organization,
        email="new@example.com",
        token_sha256=turn.pk.hex * 2,
        expires_at=timezone.now() + timedelta(days=1),
    )
    fact = Fact("secret of the owner", evidence=[message.pk])
    memory, _ = remember(Owner.of(persona.principal), fact)
    key, _ = persona.new_key()
    webhook = Webhook.objects.create(**mine, url="https://example.com/", events=["turn.completed"])
    delivery = WebhookDelivery.objects.create(
        organization=persona.organization,
        webhook=webhook,
        turn_id=turn.pk,
        event="turn.completed",
        payload={"id": str(turn.pk)},
        due_at=timezone.now(),
    )
    group = new_group("Team of the owner", persona)
    for row in (assistant, tool, library):
        grant_right(row, group=group, right="use", by=OPERATOR)
    return {
        "organization_id": persona.organization.pk,
        "group_id": group.pk,
        "user_id": persona.user.pk,
        "member_id": persona.user.memberships.get(organization=persona.organization).pk,
        "invitation_id": invitation.pk,
        "key_id": key.pk,
        "assistant_id": assistant.pk,
        "tool_id": tool.pk,
        "scene_id": ScenePrompt.objects.create(**within, label="S").pk,
        "chat_id": chat.pk,
        "message_id": message.pk,
        "turn_id": turn.pk,
        "file_id": file.pk,
        "library_id": library.pk,
        "document_id": document.pk,
        "import_id": repository.pk,
        "budget_id": Budget.objects.create(
            organization=persona.organization, scope="user", period="day", unit="tokens", limit=1
        ).pk,
        "memory_id": memory.pk,
        "webhook_id": webhook.pk,
        "delivery_id": delivery.pk,
    }


@dataclass(frozen=True, slots=True)
class Standing:
    """Who and what stays for all tests of a module; ids by whose they are."""

    people: dict[str, Persona]
    rows: dict[UUID, dict[str, UUID]]


@pytest.fixture(scope="module")
def standing_people(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[dict[str, Persona]]:
    """The people, made once: there are hundreds of tests, and each works in a savepoint of its own,
    which leaves everything as it was.

    A module with this fixture has no test that commits: it would see none of it.
    """
    with django_db_blocker.unblock():
        atomics = TestCase._enter_atomics()  # type: ignore[attr-defined]
        alice, mallory = found("alice", "Acme"), found("mallory", "Rival")
        people = {"alice": alice, "mallory": mallory}
        people["bob"] = join("bob", alice.organization)
        people["carol"] = join("carol", alice.organization, Role.ADMIN)
        people["dave"] = join("dave", alice.organization)
        yield people
        TestCase._rollback_atomics(atomics)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def standing(standing_people: dict[str, Persona]) -> Standing:
    """The people with a row of each kind of alice's and of mallory's, made once as well."""
    owners = (standing_people["alice"], standing_people["mallory"])
    return Standing(standing_people, {owner.user.pk: rows_of(owner) for owner in owners})


@pytest.fixture
def alice(standing: Standing, db: None) -> Persona:
    return deepcopy(standing.people["alice"])


@pytest.fixture
def bob(standing: Standing, db: None) -> Persona:
    return deepcopy(standing.people["bob"])


@pytest.fixture
def carol(standing: Standing, db: None) -> Persona:
    return deepcopy(standing.people["carol"])


@pytest.fixture
def dave(standing: Standing, db: None) -> Persona:
    """A member, who can be let into the group that `rows_of` shares alice's rows with."""
    return deepcopy(standing.people["dave"])


@pytest.fixture
def mallory(standing: Standing, db: None) -> Persona:
    return deepcopy(standing.people["mallory"])


@pytest.fixture
def standing_rows(standing: Standing) -> Callable[[Persona], dict[str, UUID]]:
    """A row of this persona's for every kind of id in an address, which is there already."""
    return lambda persona: dict(standing.rows[persona.user.pk])


@pytest.fixture(autouse=True)
def no_rates(settings: Any) -> None:
    """The same few people ask hundreds of times within a minute."""
    for who in ("USER", "KEY", "GUEST", "GUEST_TOKEN", "ORGANIZATION"):
        setattr(settings, f"AMBER_RATE_{who}", 0)


def call(client: Any, method: str, address: str) -> Any:
    return getattr(client, method)(address, **({} if method == "get" else {"data": {}}))


def test_there_is_a_row_for_every_id(standing_rows, alice):
    ids = standing_rows(alice)
    for route in WITH_IDS:
        route.address(ids)


@pytest.mark.parametrize(("route", "method"), CALLS, ids=named)
def test_anonymous_is_401(standing_rows, alice, route, method):
    answer = call(api(), method, route.address(standing_rows(alice)))
    assert answer.status_code == 401, answer.content
    assert answer.json()["error"]["code"] == "not_authenticated"
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="amber"'


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_a_bad_credential_is_401_and_no_way_round(standing_rows, alice, route):
    """Not even with a session beside it."""
    client = api(alice)
    client.credentials(HTTP_AUTHORIZATION="Bearer amb_live_nonsense")
    address = route.address(standing_rows(alice))
    for method in route.methods:
        answer = call(client, method, address)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_credential"


@pytest.mark.parametrize(("route", "method"), CALLS_WITH_IDS, ids=named)
def test_another_tenant_is_404_whatever_the_body(standing_rows, alice, mallory, route, method):
    """Before the body is looked at: a wrong one would tell that the row is there."""
    answer = call(api(mallory), method, route.address(standing_rows(alice)))
    assert answer.status_code == 404, answer.content
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(("route", "method"), CALLS_WITH_IDS, ids=named)
def test_the_key_of_another_tenant_is_404_or_may_not_at_all(
    standing_rows, alice, mallory, route, method
):
    _, secret = mallory.new_key()
    answer = call(api(key=secret), method, route.address(standing_rows(alice)))
    assert answer.json()["error"]["code"] in ("not_found", "forbidden")
    if answer.status_code == 403:
        own = call(api(key=secret), method, route.address(standing_rows(mallory)))
        assert own.status_code == 403, "the refusal tells that the row is there"


NESTED = [(route, method) for route, method in CALLS_WITH_IDS if len(route.parameters) > 1]


@pytest.mark.parametrize(("route", "method"), NESTED, ids=named)
def test_an_inner_row_of_another_is_404_below_ones_own(
    standing_rows, alice, mallory, route, method
):
    ids = standing_rows(mallory)
    ids[route.parameters[-1]] = standing_rows(alice)[route.parameters[-1]]
    assert call(api(mallory), method, route.address(ids)).status_code == 404


PERSONAL_CALLS = [(r, m) for r, m in CALLS_WITH_IDS if PERSONAL & set(r.parameters)]


@pytest.mark.parametrize(("route", "method"), PERSONAL_CALLS, ids=named)
def test_a_colleague_is_404_for_what_belongs_to_one_user(standing_rows, alice, bob, route, method):
    answer = call(api(bob), method, route.address(standing_rows(alice)))
    assert answer.status_code == 404, answer.content


@pytest.mark.parametrize(("route", "method"), PERSONAL_CALLS, ids=named)
def test_an_admin_too(standing_rows, alice, carol, route, method):
    if SEEN_BY_ADMINS & set(route.parameters):
        assert call(api(carol), method, route.address(standing_rows(alice))).status_code in (
            200,
            204,
            403,
        )
    else:
        assert call(api(carol), method, route.address(standing_rows(alice))).status_code == 404


# -- Groups ----------------------------------------------------------------------------------------

GRANTED = {"assistant_id", "tool_id", "library_id", "scene_id", "document_id", "import_id"}
"""Rows that are shared with a group, and what hangs on them."""
GRANTED_CALLS = [(r, m) for r, m in CALLS_WITH_IDS if set(r.parameters) <= {*GRANTED, "group_id"}]
GRANTED_CALLS = [(r, m) for r, m in GRANTED_CALLS if GRANTED & set(r.parameters)]
FOR_USERS = ("/try/", "/search/", "/ask/")
"""What to post to in order to use a row, not to change it."""
FOR_EDITORS = ("/tools/<uuid:tool_id>/calls/",)
"""What only those read who may change the row."""
REACHES_OUT = ("/refresh/", "/retry/", "/import/")


def needed_right(route: Route, method: str) -> str:
    """The least right with which the call is no refusal."""
    is_row = method == "delete" and len(route.parameters) == 1
    if "/grants/" in route.template or (is_row and PARENTS & set(route.parameters)):
        return "own"
    is_read = method == "get" and not route.template.endswith(FOR_EDITORS)
    return "use" if is_read or route.template.endswith(FOR_USERS) else "edit"


PARENTS = {"assistant_id", "tool_id", "library_id"}


def let_in(dave: Persona, ids: dict[str, UUID], right: str) -> None:
    membership = Membership.objects.get(organization=dave.organization, user=dave.user)
    add_group_member(Group.objects.get(pk=ids["group_id"]), membership=membership, by=OPERATOR)
    for model in (AssistantGrant, LibraryGrant, ToolGrant):
        model.objects.filter(group=ids["group_id"]).update(right=right)


@pytest.mark.parametrize(("route", "method"), GRANTED_CALLS, ids=named)
def test_who_is_not_in_the_group_is_404(standing_rows, alice, dave, route, method):
    answer = call(api(dave), method, route.address(standing_rows(alice)))
    assert answer.status_code == 404, answer.content


@pytest.mark.parametrize("right", ["use", "edit"])
@pytest.mark.parametrize(("route", "method"), GRANTED_CALLS, ids=named)
def test_who_is_in_the_group_may_what_it_was_granted(
    standing_rows, alice, dave, route, method, right
):
    ids = standing_rows(alice)
    let_in(dave, ids, right)
    order = ("use", "edit", "own")
    may = order.index(needed_right(route, method)) <= order.index(right)
    if may and route.template.endswith(REACHES_OUT) and method == "post":
        return  # would ask a server elsewhere
    answer = call(api(dave), method, route.address(ids))
    assert (answer.status_code not in (403, 404)) == may, answer.content
    if not may:
        assert answer.status_code == 403


@pytest.mark.parametrize(("route", "method"), GRANTED_CALLS, ids=named)
def test_who_left_the_group_is_404_again(standing_rows, alice, dave, route, method):
    ids = standing_rows(alice)
    let_in(dave, ids, "edit")
    GroupMember.objects.filter(user=dave.user).delete()
    assert call(api(dave), method, route.address(ids)).status_code == 404


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_options_names_the_methods_and_nothing_else(standing_rows, alice, route):
    answer = api(alice).options(route.address(standing_rows(alice)))
    allowed = {method.strip().lower() for method in answer.headers["Allow"].split(",")}
    assert set(route.methods) <= allowed
    assert (answer.status_code, answer.content) in ((200, b"{}"), (200, b""))


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_other_methods_are_refused(standing_rows, alice, route):
    client, address = api(alice), route.address(standing_rows(alice))
    for method in set(METHODS) - set(route.methods):
        answer = call(client, method, address)
        assert answer.status_code == 405, answer.content
        assert answer.json()["error"]["code"] == "method_not_allowed"
