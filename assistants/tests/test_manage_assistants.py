from uuid import UUID, uuid4

import pytest

from accounts import registry
from accounts.models import Organization
from accounts.principal import Principal
from assistants import services
from assistants.models import Assistant
from tests.fixtures.personas import api

ALL = "/api/v1/assistants/"

pytestmark = pytest.mark.django_db


def one(assistant: Assistant) -> str:
    return f"{ALL}{assistant.pk}/"


class TestCreate:
    def test_a_name_is_enough(self, bob):
        answer = api(bob).post(ALL, {"name": "My Helper"})
        assert answer.status_code == 201
        assistant = Assistant.objects.get()
        assert (assistant.organization, assistant.user) == (bob.organization, bob.user)
        body = answer.json()
        assert body.pop("created_at") and body.pop("updated_at")
        assert body == {
            "id": str(assistant.pk),
            "name": "My Helper",
            "slug": "my-helper",
            "description": "",
            "greeting": "",
            "suggested_questions": [],
            "prompt": "",
            "model": "auto",
            "temperature": None,
            "top_p": None,
            "library_id": None,
            "user_id": str(bob.user.pk),
            "shared": False,
            "access": "own",
            "public": False,
            "disable_default_prompt": False,
            "disable_web_browsing": False,
            "disable_memory": False,
            "enable_memory_for_assistant_api": False,
            "disabled_builtin_tools": [],
            "public_origins": [],
            "guest_files": False,
            "untrusted_calls": "ask",
            "hide_reasoning": False,
            "total_token_usage": 0,
        }

    def test_everything_that_can_be_said_is_kept(self, bob, new_model, new_library):
        new_model("m")
        said = {
            "name": "N",
            "slug": "n",
            "description": "D",
            "greeting": "**Hello**",
            "suggested_questions": ["What, and why?", "Where?"],
            "prompt": "  Keep\n my spaces ",
            "model": "m",
            "temperature": 1.5,
            "top_p": 0.5,
            "library_id": str(new_library(bob).pk),
            "shared": True,
            "public": True,
            "disable_default_prompt": True,
            "disable_web_browsing": True,
            "disable_memory": True,
            "enable_memory_for_assistant_api": True,
            "disabled_builtin_tools": ["calculate"],
            "untrusted_calls": "refuse",
        }
        answer = api(bob).post(ALL, said)
        assert answer.status_code == 201
        assert answer.json().items() >= said.items()
        assert api(bob).get(f"{ALL}{answer.json()['id']}/").json().items() >= said.items()

    def test_a_slug_is_made_where_none_is_given(self, bob, carol):
        slugs = [
            api(who).post(ALL, {"name": name}).json()["slug"]
            for who, name in [(bob, "Demo!"), (carol, "demo"), (bob, "Demo"), (bob, "天气")]
        ]
        assert slugs[:3] == ["demo", "demo-2", "demo-3"]
        assert slugs[3].startswith("assistant-")

    def test_a_slug_is_taken_once_per_organization(self, bob, carol, mallory):
        body = {"name": "N", "slug": "same"}
        assert api(bob).post(ALL, body).status_code == 201
        answer = api(carol).post(ALL, body)
        assert answer.status_code == 409
        assert list(answer.json()["error"]["fields"]) == ["slug"]
        assert api(mallory).post(ALL, body).status_code == 201

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("name", None),
            ("name", "n" * 201),
            ("name", "a\0b"),
            ("slug", "with space"),
            ("slug", ""),
            ("slug", "0b5c9cf0-3f1d-4d0a-9a5e-7f3c2b1a0d9e"),
            ("slug", "0b5c9cf03f1d4d0a9a5e7f3c2b1a0d9e"),
            ("prompt", "p" * 200_001),
            ("temperature", 2.1),
            ("temperature", -0.1),
            ("temperature", "hot"),
            ("top_p", 1.1),
            ("library_id", "x"),
            ("shared", "perhaps"),
            ("disabled_builtin_tools", "calculate"),
            ("disabled_builtin_tools", ["no_such_tool"]),
        ],
    )
    def test_a_wrong_field_is_named(self, bob, field, value):
        answer = api(bob).post(ALL, {"name": "N", field: value})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "invalid"
        assert list(answer.json()["error"]["fields"]) == [field]
        assert not Assistant.objects.exists()

    def test_unknown_builtin_tools_are_told_the_known_ones(self, bob):
        body = {"name": "N", "disabled_builtin_tools": ["calculator"]}
        assert "calculate, current_time" in api(bob).post(ALL, body).json()["error"]["message"]

    @pytest.mark.parametrize("alias", ["gone", "off"])
    def test_an_unknown_model_has_its_own_code(self, bob, new_model, alias):
        new_model("off", enabled=False)
        answer = api(bob).post(ALL, {"name": "N", "model": alias})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["code"], list(error["fields"])) == ("unknown_model", ["model"])

    @pytest.mark.parametrize("alias", ["", "auto"])
    def test_auto_needs_no_model(self, bob, alias):
        assert api(bob).post(ALL, {"name": "N", "model": alias}).status_code == 201

    def test_a_library_must_be_visible(self, alice, bob, mallory, new_library):
        def status(library_id: UUID) -> int:
            body = {"name": "N", "library_id": str(library_id)}
            return int(api(bob).post(ALL, body).status_code)

        assert status(new_library(alice, shared=True).pk) == 201
        assert status(new_library(alice).pk) == 404
        assert status(new_library(mallory, shared=True).pk) == 404
        assert status(uuid4()) == 404

    def test_what_is_not_the_clients_is_ignored(self, bob, alice, mallory):
        foreign = {
            "id": str(uuid4()),
            "user_id": str(alice.user.pk),
            "organization_id": str(mallory.organization.pk),
            "organization": str(mallory.organization.pk),
            "total_token_usage": 5,
        }
        answer = api(bob).post(ALL, {"name": "N"} | foreign).json()
        assistant = Assistant.objects.get()
        assert answer["id"] != foreign["id"]
        assert (assistant.user, assistant.organization) == (bob.user, bob.organization)
        assert assistant.total_token_usage == 0

    def test_wants_somebody(self, db):
        assert api().post(ALL, {"name": "N"}).status_code == 401

    def test_a_key_creates_for_its_user(self, bob):
        _, secret = bob.new_key()
        assert api(key=secret).post(ALL, {"name": "N"}).status_code == 201
        assert Assistant.objects.get().user == bob.user

    def test_a_key_of_one_assistant_creates_none(self, bob, new_assistant):
        assistant = new_assistant(bob)
        _, secret = bob.new_key(assistant_id=assistant.pk)
        assert api(key=secret).post(ALL, {"name": "N"}).status_code == 403
        assert Assistant.objects.count() == 1


class TestRead:
    def test_lists_mine_and_shared_ones_newest_first(self, alice, bob, new_assistant):
        shared, _, mine = (
            new_assistant(alice, shared=True),
            new_assistant(alice),
            new_assistant(bob),
        )
        listed = api(bob).get(ALL).json()["results"]
        assert [row["id"] for row in listed] == [str(mine.pk), str(shared.pk)]

    def test_finds_part_of_a_name_or_description(self, bob, new_assistant):
        new_assistant(bob, name="Weather frog")
        new_assistant(bob, name="B", description="about the WEATHER")
        new_assistant(bob, name="Other")
        found = api(bob).get(ALL, {"q": "weather"}).json()["results"]
        assert {row["name"] for row in found} == {"Weather frog", "B"}

    def test_a_list_costs_one_query_whatever_its_length(
        self, bob, new_assistant, django_assert_max_num_queries
    ):
        for _ in range(5):
            new_assistant(bob)
        client = api(bob)
        with django_assert_max_num_queries(4):  # session, user, membership, list
            assert len(client.get(ALL).json()["results"]) == 5

    def test_a_private_one_is_its_creators(self, alice, bob, carol, mallory, new_assistant):
        assistant = new_assistant(bob)
        statuses = [api(who).get(one(assistant)).status_code for who in (bob, alice, carol)]
        assert statuses == [200, 404, 404]
        assert api(mallory).get(one(assistant)).status_code == 404

    def test_a_shared_one_is_the_organizations(self, alice, bob, mallory, new_assistant):
        assistant = new_assistant(alice, shared=True, public=True)
        assert api(bob).get(one(assistant)).status_code == 200
        assert api(mallory).get(one(assistant)).status_code == 404
        assert api(mallory).get(ALL).json()["results"] == []

    def test_my_own_one_stays_in_its_organization(self, alice, new_assistant):
        """Return alice, acting in another organization of hers."""
        assistant = new_assistant(alice)
        personal = Organization.objects.get(memberships__user=alice.user, personal=True)
        client = api(alice)
        client.put("/api/v1/me/organization/", {"organization_id": str(personal.pk)})
        assert client.get(one(assistant)).status_code == 404

    def test_a_key_of_one_assistant_sees_that_one(self, bob, new_assistant):
        mine, other = new_assistant(bob), new_assistant(bob)
        _, secret = bob.new_key(assistant_id=mine.pk)
        client = api(key=secret)
        assert [row["id"] for row in client.get(ALL).json()["results"]] == [str(mine.pk)]
        assert client.get(one(mine)).status_code == 200
        assert client.get(one(other)).status_code == 404
        assert client.patch(one(mine), {"name": "N"}).status_code == 403

    def test_absent_is_404_and_nonsense_too(self, bob):
        assert api(bob).get(f"{ALL}{uuid4()}/").status_code == 404
        assert api(bob).get(f"{ALL}x/").status_code == 404

    def test_wants_somebody(self, bob, new_assistant):
        assert api().get(ALL).status_code == 401
        assert api().get(one(new_assistant(bob))).status_code == 401

    def test_guests_see_their_public_assistant_only(self, bob, new_assistant):
        public, private = new_assistant(bob, public=True), new_assistant(bob)

        def seen(assistant: Assistant) -> list[Assistant]:
            guest = Principal(bob.organization.pk, None, guest_id="g", assistant_id=assistant.pk)
            return list(Assistant.objects.visible_to(guest))

        assert seen(public) == [public]
        assert seen(private) == []


class TestChange:
    def test_changes_what_is_said_and_nothing_else(self, bob, new_assistant):
        assistant = new_assistant(bob, name="Old", prompt="P", temperature=0.5)
        Assistant.objects.filter(pk=assistant.pk).update(total_token_usage=7)
        answer = api(bob).patch(one(assistant), {"name": "New", "temperature": None})
        assert answer.status_code == 200
        body = answer.json()
        assert (body["name"], body["temperature"], body["prompt"]) == ("New", None, "P")
        assistant.refresh_from_db()
        assert (assistant.name, assistant.total_token_usage) == ("New", 7)

    @pytest.mark.parametrize(
        ("shared", "alice_may", "bob_may"), [(True, 200, 403), (False, 404, 404)]
    )
    def test_admins_change_shared_ones_and_members_none(
        self, alice, bob, carol, new_assistant, shared, alice_may, bob_may
    ):
        assistant = new_assistant(carol, shared=shared)
        body = {"public": True}
        assert api(alice).patch(one(assistant), body).status_code == alice_may
        assert api(bob).patch(one(assistant), body).status_code == bob_may
        assert api(bob).delete(one(assistant)).status_code == bob_may

    def test_an_admins_key_does_not_administer(self, alice, bob, new_assistant):
        assistant = new_assistant(bob, shared=True)
        _, secret = alice.new_key()
        assert api(key=secret).patch(one(assistant), {"name": "N"}).status_code == 403

    def test_another_tenant_gets_404(self, bob, mallory, new_assistant):
        assistant = new_assistant(bob, shared=True, public=True)
        assert api(mallory).patch(one(assistant), {"name": "N"}).status_code == 404
        assert api(mallory).delete(one(assistant)).status_code == 404

    def test_nobody_gets_401(self, bob, new_assistant):
        assistant = new_assistant(bob)
        assert api().patch(one(assistant), {"name": "N"}).status_code == 401
        assert api().delete(one(assistant)).status_code == 401

    def test_an_unknown_model_is_400(self, bob, new_assistant):
        answer = api(bob).patch(one(new_assistant(bob)), {"model": "gone"})
        assert answer.json()["error"]["code"] == "unknown_model"

    def test_a_model_disabled_since_may_be_sent_back(self, bob, new_assistant):
        assistant = new_assistant(bob, model="gone")
        assert api(bob).patch(one(assistant), {"model": "gone", "name": "N"}).status_code == 200

    def test_calls_after_untrusted_content_are_asked_about_refused_or_allowed(
        self, bob, new_assistant
    ):
        assistant = new_assistant(bob)
        for choice, status in (("allow", 200), ("always", 400), (None, 400)):
            answer = api(bob).patch(one(assistant), {"untrusted_calls": choice})
            assert answer.status_code == status
        assistant.refresh_from_db()
        assert assistant.untrusted_calls == "allow"

    def test_a_builtin_tool_gone_since_may_be_sent_back(self, bob, new_assistant):
        assistant = new_assistant(bob, disabled_builtin_tools=["gone"])
        body = {"disabled_builtin_tools": ["gone", "calculate"]}
        assert api(bob).patch(one(assistant), body).status_code == 200
        body = {"disabled_builtin_tools": ["gone", "gone_too"]}
        assert api(bob).patch(one(assistant), body).status_code == 400

    def test_a_taken_slug_is_409(self, bob, new_assistant):
        new_assistant(bob, slug="taken")
        assistant = new_assistant(bob, slug="mine")
        assert api(bob).patch(one(assistant), {"slug": "taken"}).status_code == 409
        assert api(bob).patch(one(assistant), {"slug": "mine"}).status_code == 200

    def test_a_library_is_set_and_taken_away(self, bob, mallory, new_assistant, new_library):
        assistant, library = new_assistant(bob), new_library(bob)
        client = api(bob)
        body = client.patch(one(assistant), {"library_id": str(library.pk)}).json()
        assert body["library_id"] == str(library.pk)
        foreign = {"library_id": str(new_library(mallory).pk)}
        assert client.patch(one(assistant), foreign).status_code == 404
        assert client.patch(one(assistant), {"library_id": None}).json()["library_id"] is None

    def test_an_admin_may_send_back_a_library_only_its_creator_sees(
        self, alice, bob, new_assistant, new_library
    ):
        library = new_library(bob)
        assistant = new_assistant(bob, shared=True, library=library)
        body = {"name": "N", "library_id": str(library.pk)}
        assert api(alice).patch(one(assistant), body).json()["library_id"] == str(library.pk)

    def test_ids_owner_and_counts_are_not_the_clients(self, bob, alice, new_assistant):
        assistant = new_assistant(bob)
        body = {"id": str(uuid4()), "user_id": str(alice.user.pk), "total_token_usage": 9}
        answer = api(bob).patch(one(assistant), body).json()
        assert (answer["id"], answer["user_id"]) == (str(assistant.pk), str(bob.user.pk))
        assert answer["total_token_usage"] == 0

    def test_a_deleted_one_is_gone(self, bob, new_assistant):
        assistant = new_assistant(bob)
        assert api(bob).delete(one(assistant)).status_code == 204
        assert not Assistant.objects.exists()
        assert api(bob).delete(one(assistant)).status_code == 404


def test_other_rooms_may_ask_who_sees_an_assistant(alice, bob, new_assistant):
    private = new_assistant(alice)
    assert registry.sees_assistant(alice.principal, private.pk)
    assert not registry.sees_assistant(bob.principal, private.pk)
    assert not registry.sees_assistant(alice.principal, uuid4())


def test_two_who_choose_the_same_slug_at_once_do_not_both_get_it(bob, new_assistant, monkeypatch):
    """The second looked for a free slug before the first wrote its own."""
    new_assistant(bob, slug="demo")
    monkeypatch.setattr(services, "_free_slug", lambda assistant: "demo")
    assert api(bob).post(ALL, {"name": "Demo"}).status_code == 409


def test_at_most_six_questions_are_suggested(bob):
    for questions in (["?"] * 7, ["?" * 301], [""]):
        answer = api(bob).post(ALL, {"name": "N", "suggested_questions": questions})
        assert answer.status_code == 400
        assert next(iter(answer.json()["error"]["fields"])).startswith("suggested_questions")
