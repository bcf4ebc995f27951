"""Test deleting an organization: hidden at once, deleted in batches with its files' bytes."""

from typing import Any

import pytest

from accounts.group_services import grant_right
from accounts.models import Group, GroupMember, Invitation, Membership, Organization
from assistants.models import AssistantGrant
from chats.models import Chat, Turn
from chats.tests.rows import new_assistant
from chats.tests.turns.leftovers import is_gone, is_stored, new_stored_file
from libraries.models import Document, File, Library, LibraryGrant
from libraries.tests.ledger import ingest, new_document, new_library
from memory.models import Memory
from operations.maintenance.periodic_jobs import PERIODIC_JOBS
from operations.privacy import organization_erasure
from operations.privacy.organization_erasure import erase_organizations
from operations.tests.estate import Estate, embedder, enqueued
from tests.fixtures.personas import OPERATOR, Persona, api, new_group, visit
from tools.models import ToolGrant

__all__ = ["embedder", "enqueued"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


def close(persona: Persona) -> None:
    address = f"/api/v1/organizations/{persona.organization.pk}/"
    assert api(persona).delete(address).status_code == 204


def rows_left(organization_id: Any) -> list[str]:
    models: tuple[Any, ...] = (Chat, Turn, File, Library, Document, Memory, Membership, Invitation)
    models += (Group, GroupMember, AssistantGrant, LibraryGrant, ToolGrant)
    return [
        model.__name__
        for model in models
        if model._default_manager.filter(organization=organization_id).exists()
    ]


def test_nobody_gets_in_any_more(alice, bob, embedder, enqueued):
    left = Estate(alice, embedder)
    guest = visit(new_assistant(alice, public=True))
    running = Turn.objects.create(
        organization=alice.organization, user=alice.user, status="running", worker="w"
    )
    close(alice)
    assert enqueued == ["erase_organizations", "libraries"]
    assert api(key=left.secret).get("/api/v1/me/").status_code == 401
    asked = f"/api/v1/public/assistants/{guest.assistant.pk}/chats/"
    assert api(key=guest.token).get(asked).status_code == 401
    assert api(alice).get(f"/api/v1/chats/{left.chat.pk}/").status_code == 404
    assert api(bob).get("/api/v1/me/").json()["organization"]["personal"] is True
    assert not File.objects.before_expiry().filter(organization=alice.organization).exists()
    running.refresh_from_db()
    assert running.cancel_requested_at is not None


def test_then_it_is_deleted_with_the_bytes_and_nothing_of_others(alice, mallory, embedder):
    left, others = Estate(alice, embedder), Estate(mallory, embedder)
    for estate, persona in ((left, alice), (others, mallory)):
        group = new_group("Support", persona)
        for row in estate.private[:3]:
            grant_right(row, group=group, right="edit", by=OPERATOR)
    document = new_document(new_library(alice), "The pump is blue.")
    ingest()
    files = list(File.objects.filter(organization=alice.organization))
    assert len(files) >= 3
    assert all(map(is_stored, files))
    close(alice)
    erase_organizations()
    assert not Organization.objects.filter(pk=alice.organization.pk).exists()
    assert rows_left(alice.organization.pk) == []
    assert is_gone(left.chat)
    assert not any(map(is_stored, files))
    assert not Document.objects.filter(pk=document.pk).exists()
    assert not is_gone(others.chat)
    assert is_stored(others.file)
    assert (Group.objects.get().organization, GroupMember.objects.count()) == (
        mallory.organization,
        1,
    )
    assert all(row.grants.count() == 1 for row in others.private[:3])
    assert Organization.objects.filter(pk=mallory.organization.pk).exists()


def test_a_worker_that_was_killed_is_followed_by_another(alice, embedder, monkeypatch):
    left = Estate(alice, embedder)
    close(alice)
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(organization_erasure, "delete_files", _die)
        erase_organizations()
    assert is_gone(left.chat)
    assert is_stored(left.file)
    erase_organizations()
    assert not is_stored(left.file)
    assert not Organization.objects.filter(pk=alice.organization.pk).exists()


def test_the_row_stays_while_a_file_does(alice, monkeypatch):
    """One that a turn brought while it was being stopped."""
    close(alice)
    with monkeypatch.context() as patched:
        patched.setattr(organization_erasure, "delete_files", lambda _: 0)
        file = new_stored_file(alice)
        erase_organizations()
    assert File.objects.filter(pk=file.pk).exists()
    erase_organizations()
    assert not is_stored(file)
    assert not Organization.objects.filter(pk=alice.organization.pk).exists()


def test_it_is_a_periodic_job():
    assert (
        PERIODIC_JOBS["erase_organizations"].run
        == "operations.privacy.organization_erasure.erase_organizations"
    )


def test_operators_close_it_too(alice, admin_client):
    file = new_stored_file(alice)
    address = f"/admin/accounts/organization/{alice.organization.pk}/delete/"
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert Organization.objects.get(pk=alice.organization.pk).deleted_at is not None
    personal = Organization.objects.get(memberships__user=alice.user)
    assert (
        admin_client.post(
            f"/admin/accounts/organization/{personal.pk}/delete/", {"post": "yes"}
        ).status_code
        == 403
    )
    erase_organizations()
    assert not is_stored(file)


def _die(*_: object) -> None:
    raise SystemExit
