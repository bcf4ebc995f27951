from uuid import uuid4

import pytest

from assistants.models import Assistant, ScenePrompt
from tests.fixtures.personas import api

pytestmark = pytest.mark.django_db


def scenes(assistant: Assistant) -> str:
    return f"/api/v1/assistants/{assistant.pk}/scene-prompts/"


@pytest.fixture
def assistant(bob, new_assistant):
    return new_assistant(bob)


@pytest.fixture
def scene(assistant):
    return ScenePrompt.objects.create(
        organization=assistant.organization, assistant=assistant, label="Billing", prompt="P"
    )


@pytest.fixture
def one(assistant, scene):
    return f"{scenes(assistant)}{scene.pk}/"


def test_adds_a_scene(bob, assistant):
    body = {
        "label": "Billing",
        "prompt": " Be exact. ",
        "examples": ["Where is my invoice?"],
        "temperature": 0.2,
        "top_p": 0.9,
    }
    answer = api(bob).post(scenes(assistant), body)
    assert answer.status_code == 201
    assert answer.json().items() >= body.items()
    scene = ScenePrompt.objects.get()
    assert (scene.assistant, scene.organization) == (assistant, bob.organization)


def test_lists_an_assistants_own_newest_first(bob, assistant, scene, new_assistant):
    client = api(bob)
    client.post(scenes(assistant), {"label": "Newer"})
    labels = [row["label"] for row in client.get(scenes(assistant)).json()["results"]]
    assert labels == ["Newer", "Billing"]
    assert client.get(scenes(new_assistant(bob))).json()["results"] == []


def test_shows_changes_and_deletes_one(bob, one):
    client = api(bob)
    assert client.get(one).json()["label"] == "Billing"
    changed = client.patch(one, {"label": "Invoices"}).json()
    assert (changed["label"], changed["prompt"]) == ("Invoices", "P")
    assert client.delete(one).status_code == 204
    assert client.get(one).status_code == 404
    assert not ScenePrompt.objects.exists()


def test_a_label_is_taken_once_per_assistant(bob, assistant, scene, new_assistant):
    client, body = api(bob), {"label": "Billing"}
    answer = client.post(scenes(assistant), body)
    assert answer.status_code == 409
    assert list(answer.json()["error"]["fields"]) == ["label"]
    other = new_assistant(bob)
    assert client.post(scenes(other), body).status_code == 201
    second = client.post(scenes(assistant), {"label": "Second"}).json()["id"]
    assert client.patch(f"{scenes(assistant)}{second}/", body).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "label"),
        ({"label": " "}, "label"),
        ({"label": "L", "temperature": 3}, "temperature"),
        ({"label": "L", "top_p": -1}, "top_p"),
        ({"label": "L", "examples": "e"}, "examples"),
        ({"label": "L", "examples": ["e"] * 51}, "examples"),
        ({"label": "L", "prompt": "a\0b"}, "prompt"),
    ],
)
def test_a_wrong_field_is_named(bob, assistant, body, field):
    answer = api(bob).post(scenes(assistant), body)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


def test_a_scene_is_found_below_its_own_assistant_only(bob, scene, new_assistant):
    elsewhere = f"{scenes(new_assistant(bob))}{scene.pk}/"
    client = api(bob)
    for answer in (
        client.get(elsewhere),
        client.patch(elsewhere, {"label": "L"}),
        client.delete(elsewhere),
        client.get(f"{scenes(scene.assistant)}{uuid4()}/"),
    ):
        assert answer.status_code == 404


def test_members_see_a_shared_assistants_scenes_and_change_none(alice, bob, assistant, one):
    Assistant.objects.update(shared=True, user=alice.user)
    client = api(bob)
    assert client.get(scenes(assistant)).status_code == 200
    assert client.get(one).status_code == 200
    assert client.post(scenes(assistant), {"label": "L"}).status_code == 403
    assert client.patch(one, {"label": "L"}).status_code == 403
    assert client.delete(one).status_code == 403
    assert api(alice).patch(one, {"label": "L"}).status_code == 200


def test_another_tenant_gets_404(mallory, assistant, one):
    Assistant.objects.update(shared=True, public=True)
    client = api(mallory)
    assert client.get(scenes(assistant)).status_code == 404
    assert client.post(scenes(assistant), {"label": "L"}).status_code == 404
    assert client.get(one).status_code == 404
    assert client.patch(one, {"label": "L"}).status_code == 404
    assert client.delete(one).status_code == 404


def test_nobody_gets_401(assistant, one):
    client = api()
    assert client.get(scenes(assistant)).status_code == 401
    assert client.post(scenes(assistant), {}).status_code == 401
    assert client.get(one).status_code == 401
    assert client.patch(one, {}).status_code == 401
    assert client.delete(one).status_code == 401
