"""POST public/assistants/{id}/files/, and what comes back at files/{id}/content/."""

from io import BytesIO
from typing import Any

import pytest
from django.utils import timezone

from assistants.models import Assistant
from chats.models import ChatMessage
from chats.tests.conftest import enqueued_turns
from chats.tests.rows import error_of, fields_of, new_file
from libraries.models import File
from libraries.tests.conftest import media
from public_api.tests.guests.visits import get, of, open_chat, post
from tests.fixtures.personas import Guest, api, visit

__all__ = ["enqueued_turns", "media"]


@pytest.fixture(autouse=True)
def takes_files(guest):
    Assistant.objects.update(guest_files=True)


def upload(guest: Guest, data: bytes = b"Milk and honey", **headers: str) -> Any:
    form = {"file": BytesIO(data)}
    return api(key=guest.token).post(of(guest, "files/"), form, format="multipart", headers=headers)


def test_a_guest_shows_the_assistant_a_file(guest):
    file_id = upload(guest).json()["id"]
    chat = open_chat(guest)
    body = {"role": "file", "file_id": file_id}
    assert post(guest, f"chats/{chat.pk}/messages/", body).status_code == 201
    assert ChatMessage.objects.get().file_id == File.objects.get().pk
    back = get(guest, f"files/{file_id}/content/")
    assert b"".join(back.streaming_content) == b"Milk and honey"
    assert back.headers["Content-Disposition"].startswith("attachment")


def test_a_guest_asks_about_a_file_without_a_word(guest):
    body = {"file_ids": [upload(guest).json()["id"]]}
    chat = open_chat(guest)
    answer = post(guest, f"chats/{chat.pk}/messages/", body)
    assert answer.status_code == 201, answer.content
    file, question = ChatMessage.objects.order_by("position")
    assert (file.file_id, question.role) == (File.objects.get().pk, "human")
    assert answer.json()["turn"]["status"] == "queued"


def test_it_is_the_guest_s_and_expires(guest, settings):
    settings.AMBER_GUEST_CHAT_DAYS = 1
    assert upload(guest).status_code == 201
    file = File.objects.get()
    assert (file.user, file.guest_id) == (None, guest.principal.guest_id)
    assert file.expired_at is not None
    assert 0 < (file.expired_at - timezone.now()).total_seconds() <= 86_400


def test_an_assistant_takes_none_unless_it_was_told_to(guest, media):
    Assistant.objects.update(guest_files=False)
    assert error_of(upload(guest)) == (403, "forbidden")
    assert not media()


def test_a_guest_s_file_is_smaller_than_a_member_s(guest, settings, media):
    settings.AMBER_GUEST_MAX_FILE_BYTES = 10
    assert error_of(upload(guest, b"x" * 11)) == (413, "too_large")
    assert not media()
    assert upload(guest, b"x" * 10).status_code == 201


def test_a_body_that_is_far_too_long_is_refused_before_it_is_read(guest, settings):
    settings.AMBER_GUEST_MAX_FILE_BYTES = 10
    assert error_of(upload(guest, b"x" * 200_000)) == (413, "too_large")


def test_of_too_many_none_is_kept(guest, settings, media):
    settings.AMBER_GUEST_MAX_FILES = 1
    assert upload(guest).status_code == 201
    assert error_of(upload(guest)) == (409, "conflict")
    assert len(media()) == 1
    assert upload(visit(guest.assistant)).status_code == 201


def test_the_same_post_twice_stores_one(guest):
    once = {"Idempotency-Key": "k"}
    first, again = (upload(guest, b"x", **once).json() for _ in range(2))
    assert first == again
    assert File.objects.count() == 1


def test_addresses_are_not_fetched_for_guests(guest):
    answer = post(guest, "files/", {"url": "https://example.com/a.txt"})
    assert answer.status_code == 415


def test_a_form_without_a_file_is_400(guest):
    answer = api(key=guest.token).post(of(guest, "files/"), {}, format="multipart")
    assert fields_of(answer) == ["file"]


def test_another_s_file_cannot_be_sent(alice, guest):
    chat = open_chat(guest)
    client_tools = upload(visit(guest.assistant)).json()["id"]
    for file_id in (client_tools, str(new_file(alice).pk)):
        for body in ({"role": "file", "file_id": file_id}, {"file_ids": [file_id]}):
            assert post(guest, f"chats/{chat.pk}/messages/", body).status_code == 404
