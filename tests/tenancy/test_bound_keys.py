"""A key that is limited to one assistant at every address: such keys stand in web pages for all to read.

ADDRESSES is the whole truth of what such a key may do. An operation that is missing there fails here: say
whether it may, in the view's `bound_keys_may` and in the table. What it may do it does with what is its
own: its assistant, that assistant's library, the chats it began and the files it sent.
What it does with what is its own, and sees in lists: tests/tenancy/test_bound_key_rows.py.
"""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.key_services import rotate_api_key
from accounts.models import ApiKey
from assistants.models import Assistant
from chats.models import Chat, Turn
from chats.tests.rows import new_chat, new_file
from libraries.models import Document, File, Library
from memory.models import Memory
from providers.models import UsageRecord
from tests.fixtures.personas import OPERATOR, api
from tests.rest.routes import Route, all_routes, openai_routes
from tests.tenancy.test_tenancy import Standing, alice, bob, call, named, standing, standing_people

__all__ = ["alice", "bob", "standing", "standing_people"]

ADDRESSES: dict[str, tuple[str, str]] = {
    # address: (what it may, what it may not)
    "api/v1/me/": ("", "get patch"),
    "api/v1/me/organization/": ("", "put"),
    "api/v1/me/export/": ("", "get"),
    "api/v1/me/erase/": ("", "get post"),
    "api/v1/me/claim/": ("", "post"),
    "api/v1/organizations/": ("", "get post"),
    "api/v1/organizations/<uuid:organization_id>/": ("", "get patch delete"),
    "api/v1/organizations/<uuid:organization_id>/members/": ("", "get"),
    "api/v1/organizations/<uuid:organization_id>/members/<uuid:member_id>/": (
        "",
        "get patch delete",
    ),
    "api/v1/organizations/<uuid:organization_id>/invitations/": ("", "get post"),
    "api/v1/organizations/<uuid:organization_id>/invitations/<uuid:invitation_id>/": ("", "delete"),
    "api/v1/groups/": ("", "get post"),
    "api/v1/groups/<uuid:group_id>/": ("", "get patch delete"),
    "api/v1/groups/<uuid:group_id>/members/": ("", "get"),
    "api/v1/groups/<uuid:group_id>/members/<uuid:user_id>/": ("", "put delete"),
    "api/v1/invitations/find/": ("", "post"),
    "api/v1/invitations/accept/": ("", "post"),
    "api/v1/invitations/decline/": ("", "post"),
    "api/v1/api-keys/": ("", "get post"),
    "api/v1/api-keys/<uuid:key_id>/": ("", "get patch delete"),
    "api/v1/api-keys/<uuid:key_id>/rotate/": ("", "post"),
    "api/v1/models/": ("", "get"),
    "api/v1/usage/": ("get", ""),
    "api/v1/usage/export/": ("", "get"),
    "api/v1/audit/": ("", "get"),
    "api/v1/audit/export/": ("", "get"),
    "api/v1/budgets/": ("", "get post"),
    "api/v1/budgets/<uuid:budget_id>/": ("", "get patch delete"),
    "api/v1/memories/": ("get", "post delete"),
    "api/v1/memories/search/": ("post", ""),
    "api/v1/memories/export/": ("get", ""),
    "api/v1/memories/<uuid:memory_id>/": ("get", "patch delete"),
    "api/v1/memories/<uuid:memory_id>/sources/": ("get", ""),
    "api/v1/files/": ("get post", ""),
    "api/v1/files/<uuid:file_id>/": ("get delete", ""),
    "api/v1/files/<uuid:file_id>/content/": ("get", ""),
    "api/v1/libraries/": ("get", "post"),
    "api/v1/libraries/search/": ("post", ""),
    "api/v1/libraries/<uuid:library_id>/": ("get", "patch delete"),
    "api/v1/libraries/<uuid:library_id>/ingestion/": ("get", ""),
    "api/v1/libraries/<uuid:library_id>/grants/": ("", "get"),
    "api/v1/libraries/<uuid:library_id>/grants/<uuid:group_id>/": ("", "put delete"),
    "api/v1/libraries/<uuid:library_id>/search/": ("post", ""),
    "api/v1/libraries/<uuid:library_id>/ask/": ("", "post"),
    "api/v1/libraries/<uuid:library_id>/reindex/": ("", "post"),
    "api/v1/libraries/<uuid:library_id>/import/": ("", "get post"),
    "api/v1/libraries/<uuid:library_id>/documents/": ("get", "post"),
    "api/v1/imports/<uuid:import_id>/": ("", "get delete"),
    "api/v1/imports/<uuid:import_id>/cancel/": ("", "post"),
    "api/v1/documents/": ("", "post"),
    "api/v1/documents/<uuid:document_id>/": ("get", "patch delete"),
    "api/v1/documents/<uuid:document_id>/text/": ("get", ""),
    "api/v1/documents/<uuid:document_id>/chunks/": ("get", ""),
    "api/v1/documents/<uuid:document_id>/retry/": ("", "post"),
    "api/v1/documents/<uuid:document_id>/refresh/": ("", "post"),
    "api/v1/documents/<uuid:document_id>/cancel/": ("", "post"),
    "api/v1/tools/": ("", "get post"),
    "api/v1/tools/<uuid:tool_id>/": ("", "get patch delete"),
    "api/v1/tools/<uuid:tool_id>/grants/": ("", "get"),
    "api/v1/tools/<uuid:tool_id>/grants/<uuid:group_id>/": ("", "put delete"),
    "api/v1/tools/<uuid:tool_id>/refresh/": ("", "post"),
    "api/v1/tools/<uuid:tool_id>/connect/": ("", "post delete"),
    "api/v1/tools/<uuid:tool_id>/call/": ("", "post"),
    "api/v1/tools/<uuid:tool_id>/calls/": ("", "get"),
    "api/v1/assistants/": ("get", "post"),
    "api/v1/assistants/<uuid:assistant_id>/": ("get", "patch delete"),
    "api/v1/assistants/<uuid:assistant_id>/grants/": ("", "get"),
    "api/v1/assistants/<uuid:assistant_id>/grants/<uuid:group_id>/": ("", "put delete"),
    "api/v1/assistants/<uuid:assistant_id>/try/": ("post", ""),
    "api/v1/assistants/<uuid:assistant_id>/dismiss-guests/": ("", "post"),
    "api/v1/assistants/<uuid:assistant_id>/tools/": ("get", "post"),
    "api/v1/assistants/<uuid:assistant_id>/tools/<uuid:tool_id>/": ("", "patch delete"),
    "api/v1/assistants/<uuid:assistant_id>/scene-prompts/": ("get", "post"),
    "api/v1/assistants/<uuid:assistant_id>/scene-prompts/usual/": ("", "post"),
    "api/v1/assistants/<uuid:assistant_id>/scene-prompts/<uuid:scene_id>/": ("get", "patch delete"),
    "api/v1/chats/": ("get post", ""),
    "api/v1/chats/import/": ("post", ""),
    "api/v1/chats/search/": ("get", ""),
    "api/v1/chats/<uuid:chat_id>/": ("get patch delete", ""),
    "api/v1/chats/<uuid:chat_id>/messages/": ("get post", ""),
    "api/v1/chats/<uuid:chat_id>/branch/": ("put", ""),
    "api/v1/chats/<uuid:chat_id>/export/": ("get", ""),
    "api/v1/messages/<uuid:message_id>/": ("get patch delete", ""),
    "api/v1/messages/<uuid:message_id>/regenerate/": ("post", ""),
    "api/v1/messages/<uuid:message_id>/feedback/": ("put delete", ""),
    "api/v1/feedback/": ("", "get"),
    "api/v1/feedback/totals/": ("", "get"),
    "api/v1/events/": ("", "get"),
    "api/v1/turns/<uuid:turn_id>/": ("get", ""),
    "api/v1/turns/<uuid:turn_id>/events/": ("get", ""),
    "api/v1/turns/<uuid:turn_id>/cancel/": ("post", ""),
    "api/v1/turns/<uuid:turn_id>/approve/": ("post", ""),
    "api/v1/turns/<uuid:turn_id>/manifest/": ("get", ""),
    "api/v1/webhooks/": ("", "get post"),
    "api/v1/webhooks/<uuid:webhook_id>/": ("", "get patch delete"),
    "api/v1/webhooks/<uuid:webhook_id>/rotate/": ("", "post"),
    "api/v1/webhooks/<uuid:webhook_id>/deliveries/": ("", "get"),
    "api/v1/webhooks/<uuid:webhook_id>/deliveries/<uuid:delivery_id>/redeliver/": ("", "post"),
    "chat": ("", "post"),
    "v1/models": ("get", ""),
    "v1/models/<path:model_name>": ("get", ""),
    "v1/chat/completions": ("post", ""),
    "v1/responses": ("post", ""),
    "v1/responses/<str:response_id>": ("get delete", ""),
    "v1/responses/<str:response_id>/cancel": ("post", ""),
    "v1/responses/<str:response_id>/input_items": ("get", ""),
    "v1/embeddings": ("", "post"),
}

ROUTES = [route for route in all_routes() + openai_routes() if not route.is_for_guests]
"""Those of guests take no key at all: tests/tenancy/test_guest_tenancy.py."""

OPERATIONS = [(route, method) for route in ROUTES for method in route.methods]


def may(route: Route, method: str) -> bool:
    return method in ADDRESSES[route.template][0].split()


REFUSED = [(r, m) for r, m in OPERATIONS if r.template in ADDRESSES and not may(r, m)]
ALLOWED = [(r, m) for r, m in OPERATIONS if r.template in ADDRESSES and may(r, m)]
ALLOWED_WITH_IDS = [(r, m) for r, m in ALLOWED if r.parameters]

OF_THE_ASSISTANT = {"assistant_id", "library_id", "document_id", "scene_id"}
"""Of these the user's rows are the key's to use: they belong to its assistant."""


def bind(ids: dict[str, Any]) -> dict[str, Any]:
    """Make what can be of the assistant that the key is for its own; all ids of addresses."""
    Assistant.objects.filter(pk=ids["assistant_id"]).update(library=ids["library_id"])
    Document.objects.filter(pk=ids["document_id"]).update(text="Cats purr.", pages=[0])
    Turn.objects.filter(pk=ids["turn_id"]).update(
        assistant=ids["assistant_id"], options={"echo": {"response": {"model": "x"}}}
    )
    response_id = f"resp_{ids['turn_id'].hex}"
    return {**ids, "model_name": f"assistant:{ids['assistant_id']}", "response_id": response_id}


Bound = tuple[dict[str, Any], tuple[ApiKey, str]]


@pytest.fixture(scope="module")
def standing_key(standing: Standing) -> Bound:
    """The ids of alice's rows and a key for her assistant, made once like the rows."""
    alice = standing.people["alice"]
    ids = bind(standing.rows[alice.user.pk])
    return ids, alice.new_key(assistant_id=ids["assistant_id"])


@pytest.fixture
def ids(standing_key: Bound) -> dict[str, Any]:
    """A row of alice's of every kind; what can be is of the assistant that the key is for."""
    return dict(standing_key[0])


@pytest.fixture
def key(standing_key: Bound, db: None) -> tuple[ApiKey, str]:
    return deepcopy(standing_key[1])


@pytest.fixture
def client(key: tuple[ApiKey, str]) -> Any:
    return api(key=key[1])


def make_its_own(key: ApiKey, ids: dict[str, Any]) -> None:
    """Chat, turn, file and memory of `rows_of`, as if they had come with this key."""
    Chat.objects.filter(pk=ids["chat_id"]).update(api_key=key, owner="api")
    File.objects.filter(pk=ids["file_id"]).update(api_key=key)
    Memory.objects.filter(pk=ids["memory_id"]).update(assistant_id=key.assistant_id)


def state() -> dict[str, Any]:
    """All that is stored, but for when keys were last used."""
    ours = {"accounts", "assistants", "chats", "libraries", "memory", "providers", "public_api"}
    models = [m for m in apps.get_models() if m._meta.app_label in {*ours, "tools"}]
    held = {m._meta.label: list(m._default_manager.order_by("pk").values()) for m in models}
    for row in held["accounts.ApiKey"]:
        row.pop("last_used_at")
    return held


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    """What `state` was before the first refused call: it is the same before each."""
    return {}


def test_every_operation_is_in_the_table():
    listed = {
        (template, method)
        for template, (allowed, refused) in ADDRESSES.items()
        for method in f"{allowed} {refused}".split()
    }
    assert listed == {(route.template, method) for route, method in OPERATIONS}
    assert not [t for t, (yes, no) in ADDRESSES.items() if set(yes.split()) & set(no.split())]


@pytest.mark.parametrize(("route", "method"), REFUSED, ids=named)
def test_what_it_may_not_is_refused_and_changes_nothing(key, client, ids, stored, route, method):
    """Also of what is its own, or its assistant's."""
    make_its_own(key[0], ids)
    if not stored:
        stored.update(state())
    answer = call(client, method, route.address(ids))
    assert answer.status_code in (403, 404), answer.content
    assert state() == stored


@pytest.mark.parametrize(("route", "method"), ALLOWED_WITH_IDS, ids=named)
def test_what_is_its_users_alone_is_404_and_stays(client, ids, route, method):
    """The user's chats with the same assistant, files, and what other assistants have."""
    if set(route.parameters) & OF_THE_ASSISTANT or route.parameters == ["model_name"]:
        Assistant.objects.filter(pk=ids["assistant_id"]).update(library=None)
        other = {"organization_id": ids["organization_id"], "name": "B", "slug": "b"}
        ids["assistant_id"] = Assistant.objects.create(**other, shared=True).pk
        ids["model_name"] = "assistant:b"
    before = state()
    answer = call(client, method, route.address(ids))
    assert answer.status_code == 404, answer.content
    assert state() == before


def test_it_reads_its_assistants_library_as_its_user_may(bob, alice, ids):
    """alice shares the assistant and keeps the library to herself: bob's key does not read it."""
    Assistant.objects.filter(pk=ids["assistant_id"]).update(shared=True)
    client_tools = api(key=bob.new_key(assistant_id=ids["assistant_id"])[1])
    mine = api(key=alice.new_key(assistant_id=ids["assistant_id"])[1])
    addresses = [
        f"/api/v1/libraries/{ids['library_id']}/documents/",
        f"/api/v1/documents/{ids['document_id']}/text/",
    ]
    assert [client_tools.get(address).status_code for address in addresses] == [404, 404]
    assert [mine.get(address).status_code for address in addresses] == [200, 200]
    Library.objects.update(shared=True)
    assert [client_tools.get(address).status_code for address in addresses] == [200, 200]


def test_the_library_goes_out_of_sight_with_the_assistant(ids, client):
    address = f"/api/v1/libraries/{ids['library_id']}/"
    assert client.get(address).status_code == 200
    Assistant.objects.filter(pk=ids["assistant_id"]).delete()
    assert client.get(address).status_code == 404


# -- What is its own ---------------------------------------------------------------------------


def upload(client: Any) -> str:
    sent = SimpleUploadedFile("notes.txt", b"Milk and honey")
    answer = client.post("/api/v1/files/", {"file": sent}, format="multipart")
    assert answer.status_code == 201, answer.content
    file_id: str = answer.json()["id"]
    return file_id


def test_a_file_it_uploads_is_for_its_chats(alice, client):
    file_id, foreign = upload(client), str(new_file(alice).pk)
    chat_id = client.post("/api/v1/chats/", {}).json()["id"]
    said = {"role": "file", "content": "Look"}
    at = f"/api/v1/chats/{chat_id}/messages/"
    assert client.post(at, {**said, "file_id": foreign}).status_code == 404
    assert client.post(at, {**said, "file_id": file_id}).status_code == 201
    assert [row["id"] for row in client.get("/api/v1/files/").json()["results"]] == [file_id]
    sent = client.get(f"/api/v1/files/{file_id}/content/")
    assert b"".join(sent.streaming_content) == b"Milk and honey"
    assert client.get(f"/api/v1/files/{foreign}/content/").status_code == 404


def test_another_key_for_the_same_assistant_is_another(alice, client, ids):
    """Two pages have two keys; a successor of a key is the same one."""
    other, _ = alice.new_key(assistant_id=ids["assistant_id"])
    client_tools = new_chat(alice, assistant_id=ids["assistant_id"], api_key=other)
    file = new_file(alice, api_key=other)
    _, successor = rotate_api_key(other, overlap=timedelta(), by=OPERATOR)
    for address in (f"/api/v1/chats/{client_tools.pk}/", f"/api/v1/files/{file.pk}/"):
        assert client.get(address).status_code == 404
        assert api(key=successor).get(address).status_code == 200


def test_what_came_with_it_stays_its_users(alice, client):
    """Keys without an assistant, too, see all that is their user's."""
    _, unbound = alice.new_key()
    chat_id = client.post("/api/v1/chats/", {}).json()["id"]
    addresses = [f"/api/v1/chats/{chat_id}/", f"/api/v1/files/{upload(client)}/"]
    for reader in (api(alice), api(key=unbound)):
        assert [reader.get(address).status_code for address in addresses] == [200, 200]


def test_turns_without_a_chat_are_those_it_asked(alice, key, client, ids):
    mine, other = (
        Turn.objects.create(
            organization=alice.organization,
            user=alice.user,
            assistant_id=ids["assistant_id"],
            api_key=api_key,
        )
        for api_key in (key[0], alice.new_key()[0])
    )
    assert client.get(f"/api/v1/turns/{mine.pk}/").status_code == 200
    assert client.get(f"/api/v1/turns/{other.pk}/").status_code == 404


def test_usage_is_what_was_asked_with_it(alice, key, client):
    for api_key_id in (key[0].pk, None):
        UsageRecord.objects.create(
            organization=alice.organization,
            user=alice.user,
            api_key_id=api_key_id,
            assistant_id=key[0].assistant_id,
            model="m",
        )
    (row,) = client.get("/api/v1/usage/").json()["results"]
    assert row["api_key_id"] == str(key[0].pk)
