"""Every action of the audit log is written by a real request: one case for each of the table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts import group_services, services
from accounts.audit_actions import AuditAction
from accounts.models import AuditEvent, GroupMember, Invitation, Membership, User
from accounts.tests.browsers import new_browser, post
from amber.lib.ids import new_id
from assistants.models import Assistant
from libraries.models import Library
from libraries.tests.ledger import new_model
from providers.models import Budget
from tests.fixtures.personas import OPERATOR, Persona, api, new_group
from tools.models import Tool

pytestmark = pytest.mark.django_db

PASSWORD = "a quite long sentence"
BUDGET = {"scope": "organization", "period": "month", "unit": "tokens", "limit": "1000"}


@dataclass(frozen=True)
class Done:
    """What the event must say: the kind of actor, the person, and what it was done to."""

    actor: str
    user_id: UUID | None
    target_kind: str
    target_id: Any


@dataclass(frozen=True)
class Scene:
    """Alice's organization, with bob in it, and an operator at the admin."""

    alice: Persona
    bob: Persona
    operator: User
    admin: Client

    @property
    def members(self) -> str:
        return f"/api/v1/organizations/{self.alice.organization.pk}/"

    @property
    def membership(self) -> Membership:
        return Membership.objects.get(user=self.bob.user, organization=self.bob.organization)

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """Ask as alice."""
        given = {} if body is None else {"data": body}
        address = path if path.startswith("/") else f"/api/v1/{path}"
        answer = getattr(api(self.alice), method)(address, **given)
        assert answer.status_code == status
        return None if answer.streaming or not answer.content else answer.json()

    def by_alice(self, kind: str, target_id: Any) -> Done:
        return Done("user", self.alice.user.pk, kind, target_id)

    def by_operator(self, kind: str, target_id: Any) -> Done:
        return Done("operator", self.operator.pk, kind, target_id)

    def new(self, model: Any, **fields: Any) -> Any:
        mine = {"organization": self.alice.organization, "user": self.alice.user}
        return model.objects.create(**mine, name="Named", **fields)


@pytest.fixture
def scene(alice: Persona, bob: Persona, settings: Any) -> Scene:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    operator = services.sign_up("root@example.com", operator=True)
    client = Client()
    client.force_login(operator)
    return Scene(alice, bob, operator, client)


# -- Cases -----------------------------------------------------------------------------------------


def sign_in(scene: Scene) -> Done:
    person = _person_with_password(scene)
    answer = post(new_browser(), "login", {"email": person.email, "password": PASSWORD})
    assert answer.status_code == 200
    return Done("user", person.pk, "user", person.pk)


def sign_in_wrongly(scene: Scene) -> Done:
    person = _person_with_password(scene)
    answer = post(new_browser(), "login", {"email": person.email.upper(), "password": "wrong"})
    assert answer.status_code == 400
    return Done("nobody", None, "user", person.pk)


def _person_with_password(scene: Scene) -> User:
    """Somebody new each time: attempts are counted by email."""
    person = services.sign_up(f"{new_id().hex}@example.com", password=PASSWORD)
    services.join_organization(person, organization=scene.alice.organization, by=OPERATOR)
    return person


def make_key(scene: Scene) -> Done:
    key = scene.ask("post", "api-keys/", {"name": "k", "scopes": ["read"]}, status=201)
    return scene.by_alice("api_key", key["id"])


def change_key(scene: Scene) -> Done:
    key, _ = scene.alice.new_key()
    scene.ask("patch", f"api-keys/{key.pk}/", {"scopes": ["write"]})
    return scene.by_alice("api_key", key.pk)


def rotate_key(scene: Scene) -> Done:
    key, _ = scene.alice.new_key()
    scene.ask("post", f"api-keys/{key.pk}/rotate/", {}, status=201)
    return scene.by_alice("api_key", key.pk)


def revoke_key(scene: Scene) -> Done:
    key, _ = scene.bob.new_key()
    scene.ask("delete", f"api-keys/{key.pk}/", status=204)
    return scene.by_alice("api_key", key.pk)


def change_organization(scene: Scene) -> Done:
    scene.ask("patch", scene.members, {"retention_days": 30})
    return scene.by_alice("organization", scene.alice.organization.pk)


def invite(scene: Scene) -> Done:
    body = {"email": "new@example.com", "role": "admin"}
    invitation = scene.ask("post", f"{scene.members}invitations/", body, status=201)
    return scene.by_alice("invitation", invitation["id"])


def join(scene: Scene) -> Done:
    person = services.sign_up("new@example.com")
    by, organization = scene.alice.principal, scene.alice.organization
    _, token = services.invite(organization, email=person.email, role="member", by=by)
    own = Membership.objects.get(user=person).organization
    answer = api(Persona(person, own, "owner")).post(
        "/api/v1/invitations/accept/", {"token": token}
    )
    assert answer.status_code == 200
    return Done("user", person.pk, "user", person.pk)


def change_role(scene: Scene) -> Done:
    scene.ask("patch", f"{scene.members}members/{scene.membership.pk}/", {"role": "admin"})
    return scene.by_alice("user", scene.bob.user.pk)


def remove_member(scene: Scene) -> Done:
    scene.ask("delete", f"{scene.members}members/{scene.membership.pk}/", status=204)
    return scene.by_alice("user", scene.bob.user.pk)


def make_group(scene: Scene) -> Done:
    made = scene.ask("post", "groups/", {"name": "Support"}, status=201)["id"]
    return scene.by_alice("group", made)


def change_group(scene: Scene) -> Done:
    group = new_group("Support", scene.bob)
    scene.ask("patch", f"groups/{group.pk}/", {"name": "Help"})
    return scene.by_alice("group", group.pk)


def remove_group(scene: Scene) -> Done:
    group = new_group("Support", scene.bob)
    scene.ask("delete", f"groups/{group.pk}/")
    return scene.by_alice("group", group.pk)


def join_group(scene: Scene) -> Done:
    group = new_group("Support", scene.alice)
    scene.ask("put", f"groups/{group.pk}/members/{scene.bob.user.pk}/")
    return scene.by_alice("user", scene.bob.user.pk)


def leave_group(scene: Scene) -> Done:
    at = f"/api/v1/groups/{new_group('Support', scene.bob).pk}/members/{scene.bob.user.pk}/"
    assert api(scene.bob).delete(at).status_code == 204
    return Done("user", scene.bob.user.pk, "user", scene.bob.user.pk)


def make_grant(scene: Scene) -> Done:
    assistant, group = scene.new(Assistant), new_group("Support", scene.bob)
    scene.ask("put", f"assistants/{assistant.pk}/grants/{group.pk}/", {"right": "use"})
    return scene.by_alice("assistant", assistant.pk)


def end_grant(scene: Scene) -> Done:
    assistant, group = scene.new(Assistant), new_group("Support", scene.bob)
    at = f"assistants/{assistant.pk}/grants/{group.pk}/"
    scene.ask("put", at, {"right": "use"})
    scene.ask("delete", at, status=204)
    return scene.by_alice("assistant", assistant.pk)


def switch(model: Any, kind: str, field: str, value: bool, **fields: Any) -> Any:
    """A case that sets `field` of a row by PATCH."""

    def case(scene: Scene) -> Done:
        if model is Library:
            fields["embedding_model"] = new_model(default=True)
        row = scene.new(model, **fields, **{field: not value})
        path = {"library": "libraries"}.get(kind, f"{kind}s")
        scene.ask("patch", f"{path}/{row.pk}/", {field: value})
        return scene.by_alice(kind, row.pk)

    return case


def make_budget(scene: Scene) -> Done:
    return scene.by_alice("budget", scene.ask("post", "budgets/", BUDGET, status=201)["id"])


def change_budget(scene: Scene) -> Done:
    made = scene.ask("post", "budgets/", BUDGET, status=201)["id"]
    scene.ask("patch", f"budgets/{made}/", {"limit": "5"})
    return scene.by_alice("budget", made)


def remove_budget(scene: Scene) -> Done:
    made = scene.ask("post", "budgets/", BUDGET, status=201)["id"]
    scene.ask("delete", f"budgets/{made}/", status=204)
    return scene.by_alice("budget", made)


def export_person(scene: Scene) -> Done:
    scene.ask("get", "me/export/")
    return scene.by_alice("user", scene.alice.user.pk)


def erase_person(scene: Scene) -> Done:
    scene.ask("post", "me/erase/", {"confirm": scene.alice.user.email}, status=202)
    return scene.by_alice("user", scene.alice.user.pk)


def export_audit(scene: Scene) -> Done:
    scene.ask("get", "audit/export/")
    return scene.by_alice("organization", scene.alice.organization.pk)


def operator_reads(scene: Scene) -> Done:
    assistant = scene.new(Assistant)
    page = reverse("admin:assistants_assistant_change", args=[assistant.pk])
    assert scene.admin.get(page).status_code == 200
    return scene.by_operator("assistant", assistant.pk)


def operator_adds(scene: Scene) -> Done:
    body = BUDGET | {"organization": scene.alice.organization.pk}
    answer = scene.admin.post(reverse("admin:providers_budget_add"), body)
    assert answer.status_code == 302
    return scene.by_operator("budget", Budget.objects.get().pk)


def operator_changes(scene: Scene) -> Done:
    budget = Budget.objects.create(organization=scene.alice.organization, **BUDGET)
    page = reverse("admin:providers_budget_change", args=[budget.pk])
    assert scene.admin.post(page, {"limit": "7"}).status_code == 302
    return scene.by_operator("budget", budget.pk)


def operator_deletes(scene: Scene) -> Done:
    by, organization = scene.alice.principal, scene.alice.organization
    invitation, _ = services.invite(organization, email="x@example.com", role="member", by=by)
    page = reverse("admin:accounts_invitation_delete", args=[invitation.pk])
    assert scene.admin.post(page, {"post": "yes"}).status_code == 302
    assert not Invitation.objects.exists()
    return scene.by_operator("invitation", invitation.pk)


TOOL = {"discovery_url": "https://tool.example/"}
CASES: dict[str, Callable[[Scene], Done]] = {
    AuditAction.SIGN_IN_SUCCEEDED: sign_in,
    AuditAction.SIGN_IN_FAILED: sign_in_wrongly,
    AuditAction.KEY_MADE: make_key,
    AuditAction.KEY_CHANGED: change_key,
    AuditAction.KEY_ROTATED: rotate_key,
    AuditAction.KEY_REVOKED: revoke_key,
    AuditAction.ORGANIZATION_CHANGED: change_organization,
    AuditAction.MEMBER_INVITED: invite,
    AuditAction.MEMBER_JOINED: join,
    AuditAction.MEMBER_ROLE_CHANGED: change_role,
    AuditAction.MEMBER_REMOVED: remove_member,
    AuditAction.GROUP_MADE: make_group,
    AuditAction.GROUP_CHANGED: change_group,
    AuditAction.GROUP_REMOVED: remove_group,
    AuditAction.GROUP_JOINED: join_group,
    AuditAction.GROUP_LEFT: leave_group,
    AuditAction.GRANT_MADE: make_grant,
    AuditAction.GRANT_ENDED: end_grant,
    AuditAction.ASSISTANT_SHARED: switch(Assistant, "assistant", "shared", True),
    AuditAction.ASSISTANT_UNSHARED: switch(Assistant, "assistant", "shared", False),
    AuditAction.ASSISTANT_PUBLISHED: switch(Assistant, "assistant", "public", True),
    AuditAction.ASSISTANT_UNPUBLISHED: switch(Assistant, "assistant", "public", False),
    AuditAction.LIBRARY_SHARED: switch(Library, "library", "shared", True),
    AuditAction.LIBRARY_UNSHARED: switch(Library, "library", "shared", False),
    AuditAction.TOOL_SHARED: switch(Tool, "tool", "shared", True, **TOOL),
    AuditAction.TOOL_UNSHARED: switch(Tool, "tool", "shared", False, **TOOL),
    AuditAction.BUDGET_MADE: make_budget,
    AuditAction.BUDGET_CHANGED: change_budget,
    AuditAction.BUDGET_REMOVED: remove_budget,
    AuditAction.PERSON_EXPORTED: export_person,
    AuditAction.PERSON_ERASED: erase_person,
    AuditAction.AUDIT_EXPORTED: export_audit,
    AuditAction.OPERATOR_READ: operator_reads,
    AuditAction.OPERATOR_ADDED: operator_adds,
    AuditAction.OPERATOR_CHANGED: operator_changes,
    AuditAction.OPERATOR_DELETED: operator_deletes,
}


@pytest.mark.parametrize("action", AuditAction.values)
def test_a_request_writes_the_event(scene: Scene, action: str) -> None:
    before = AuditEvent.objects.filter(organization=scene.alice.organization, action=action)
    seen = {event.pk for event in before}
    done = CASES[action](scene)
    (event,) = (
        AuditEvent.objects.filter(organization=scene.alice.organization, action=action)
        .exclude(pk__in=seen)
        .filter(target_id=done.target_id)
    )
    assert (event.actor_kind, event.actor_user_id) == (done.actor, done.user_id)
    assert event.target_kind == done.target_kind
    assert event.address
    assert "@" not in f"{event.target_label} {event.detail}", "no person by name"


@pytest.mark.parametrize(
    ("model", "kind", "actions"),
    [
        (Assistant, "assistants", {"assistant.unshared", "assistant.unpublished"}),
        (Library, "libraries", {"library.unshared"}),
        (Tool, "tools", {"tool.unshared"}),
    ],
)
def test_deleting_what_was_open_to_others_closes_it(
    scene: Scene, model: Any, kind: str, actions: set[str]
) -> None:
    fields: dict[str, Any] = {"shared": True}
    if model is Library:
        fields["embedding_model"] = new_model(default=True)
    if model is Assistant:
        fields["public"] = True
    row = scene.new(model, **fields)
    scene.ask("delete", f"{kind}/{row.pk}/", status=204)
    assert set(AuditEvent.objects.filter(target_id=row.pk).values_list("action", flat=True)) == (
        actions
    )


def test_what_is_shared_from_the_first_is_told(scene: Scene) -> None:
    body = {"name": "Open", "shared": True, "public": True}
    made = scene.ask("post", "assistants/", body, status=201)["id"]
    told = AuditEvent.objects.filter(target_id=made).order_by("number")
    assert list(told.values_list("action", flat=True)) == [
        "assistant.shared",
        "assistant.published",
    ]


def test_what_changes_nothing_of_that_has_no_event(scene: Scene) -> None:
    assistant = scene.new(Assistant, shared=True)
    count = AuditEvent.objects.count()
    scene.ask("patch", f"assistants/{assistant.pk}/", {"shared": True, "name": "Other"})
    scene.ask("patch", f"{scene.members}members/{scene.membership.pk}/", {"role": "member"})
    assert AuditEvent.objects.count() == count


@pytest.mark.parametrize(
    ("model", "kind"), [(Assistant, "assistants"), (Library, "libraries"), (Tool, "tools")]
)
def test_a_grant_is_told_with_its_right_and_only_if_that_changes(
    scene: Scene, model: Any, kind: str
) -> None:
    fields = {"embedding_model": new_model(default=True)} if model is Library else {}
    row, group = scene.new(model, **fields), new_group("Support", scene.bob)
    at = f"{kind}/{row.pk}/grants/{group.pk}/"
    for right in ("use", "use", "edit"):
        assert scene.ask("put", at, {"right": right})["right"] == right
    assert row.grants.get().right == "edit"
    scene.ask("delete", at, status=204)
    told = AuditEvent.objects.filter(target_id=row.pk).order_by("number")
    named = {"group_id": str(group.pk), "group_name": "Support"}
    assert [(event.action, event.target_label, event.detail) for event in told] == [
        ("grant.made", "Named", named | {"right": "use"}),
        ("grant.made", "Named", named | {"right": "edit", "before": "use"}),
        ("grant.ended", "Named", named | {"right": "edit"}),
    ]


def test_a_deleted_group_is_one_event_with_the_number_of_its_grants(scene: Scene) -> None:
    group = new_group("Support", scene.bob)
    for row in (scene.new(Assistant), scene.new(Tool, **TOOL)):
        group_services.grant_right(row, group=group, right="use", by=OPERATOR)
    last = AuditEvent.objects.filter(organization=scene.alice.organization).count()
    scene.ask("delete", f"groups/{group.pk}/")
    (event,) = AuditEvent.objects.filter(organization=scene.alice.organization, number__gt=last)
    assert (event.action, event.target_label) == ("group.removed", "Support")
    assert event.detail == {"ended_grants": 2}


def test_who_joins_a_group_again_is_told_once(scene: Scene) -> None:
    group = new_group("Support", scene.alice)
    for _ in range(2):
        scene.ask("put", f"groups/{group.pk}/members/{scene.bob.user.pk}/")
    (event,) = AuditEvent.objects.filter(action="group.joined", target_id=scene.bob.user.pk)
    assert event.detail == {"group_id": str(group.pk), "group_name": "Support"}


def test_what_ended_in_the_same_moment_is_told_by_who_ended_it(scene: Scene) -> None:
    """Two requests read the same rows; the second one finds nothing left to end."""
    group, assistant = new_group("Support", scene.bob), scene.new(Assistant)
    grant = group_services.grant_right(assistant, group=group, right="use", by=OPERATOR)
    member = GroupMember.objects.get(group=group)
    for model in (type(grant), GroupMember, type(group)):
        model._default_manager.all().delete()
    count = AuditEvent.objects.count()
    group_services.end_grant(grant, by=OPERATOR)
    group_services.remove_group_member(member, by=OPERATOR)
    assert group_services.delete_group(group, by=OPERATOR) == 0
    assert AuditEvent.objects.count() == count


def test_a_removed_members_keys_are_told_of(scene: Scene) -> None:
    keys = {scene.bob.new_key()[0].pk for _ in range(2)}
    remove_member(scene)
    revoked = AuditEvent.objects.filter(action=AuditAction.KEY_REVOKED)
    assert set(revoked.values_list("target_id", flat=True)) == keys


def test_an_operator_who_shares_an_assistant_is_told_of(scene: Scene) -> None:
    assistant = scene.new(Assistant, slug="named")
    page = reverse("admin:assistants_assistant_change", args=[assistant.pk])
    shown = scene.admin.get(page)
    form = shown.context["adminform"].form
    fields = {name: form[name].value() or "" for name in form.fields} | {"shared": "on"}
    for inline in shown.context["inline_admin_formsets"]:
        prefix = inline.formset.prefix
        fields |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    assert scene.admin.post(page, fields).status_code == 302
    told = AuditEvent.objects.filter(target_id=assistant.pk).order_by("number")
    assert [(event.action, event.detail) for event in told] == [
        ("operator.read", {}),
        ("assistant.shared", {}),
        ("operator.changed", {"fields": ["Shared"]}),
    ]


@pytest.mark.parametrize(
    ("change", "action"),
    [({"role": "admin"}, "member.role_changed"), ({"DELETE": "on"}, "member.removed")],
)
def test_an_operator_who_changes_members_is_told_of(
    scene: Scene, change: dict[str, str], action: str
) -> None:
    page = reverse("admin:accounts_organization_change", args=[scene.alice.organization.pk])
    shown = scene.admin.get(page)
    form = shown.context["adminform"].form
    fields = {name: form[name].value() or "" for name in form.fields}
    formset = shown.context["inline_admin_formsets"][0].formset
    for number, inner in enumerate(formset.initial_forms):
        row = inner.instance
        given = {"id": row.pk, "user": row.user_id, "role": row.role}
        given |= change if row.user == scene.bob.user else {}
        fields |= {f"{formset.prefix}-{number}-{name}": value for name, value in given.items()}
    count = len(formset.initial_forms)
    fields |= {f"{formset.prefix}-{name}_FORMS": count for name in ("TOTAL", "INITIAL")}
    assert scene.admin.post(page, fields).status_code == 302
    (event,) = AuditEvent.objects.filter(action=action)
    assert (event.actor_kind, event.target_id) == ("operator", scene.bob.user.pk)


def test_an_erased_account_is_told_of_wherever_it_was(scene: Scene) -> None:
    body = {"confirm": scene.bob.user.email, "account": True}
    assert api(scene.bob).post("/api/v1/me/erase/", body).status_code == 202
    told = AuditEvent.objects.filter(action=AuditAction.PERSON_ERASED, target_id=scene.bob.user.pk)
    assert scene.alice.organization.pk in told.values_list("organization_id", flat=True)
    assert [event.detail for event in told] == [{"account": True}] * told.count()
