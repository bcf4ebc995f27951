"""Test that files for chats are read once, in the background: documents, sound, and what is neither."""

from uuid import uuid4

import pytest
from django.core.files.storage import default_storage

from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.secrets import encrypt_column
from libraries.files import reading
from libraries.models import File
from libraries.parsing import ParserLost
from libraries.tasks import read_file
from libraries.tests.documents import docx_of, locked_pdf, pdf_of, xlsx_of
from libraries.tests.stored_files import address, picture, stored
from providers.models import Provider, UsageRecord
from tests.fixtures.personas import api
from tests.fixtures.provider import fake_provider

__all__ = ["fake_provider"]

MP3 = b"ID3\0Buy milk."


@pytest.fixture
def messages(monkeypatch):
    """The messages to workers."""
    sent = []
    monkeypatch.setattr("libraries.queue.enqueue", lambda *given: sent.append(given))
    return sent


@pytest.fixture
def provider(fake_provider, settings, db):
    settings.AMBER_TRANSCRIPTION_MODEL = "fake-model"
    row = Provider(name="Fake", base_url=fake_provider.base_url)
    encrypt_column(row, "api_key", fake_provider.api_key)
    row.save()
    return row


def read(file):
    """What a worker makes of it."""
    with as_tenant(Tenant(file.organization_id, file.user_id)):
        file.refresh_from_db()
        reading.read_files([file])
        file.refresh_from_db()
    return file


def test_an_upload_is_read_in_the_background(alice, messages, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        file = stored(alice, "report.pdf", pdf_of(["First page", "Second page"]))
    assert not file.is_waiting or file.text is None
    assert api(alice).get(address(file)).json()["is_read"] is False
    ((queue, task, *arguments),) = messages
    assert (queue, task) == ("ingest", "libraries.read_file")
    read_file(*arguments)
    file.refresh_from_db()
    assert file.text == "[page 1]\nFirst page\n\n[page 2]\nSecond page"
    shown = api(alice).get(address(file)).json()
    assert (shown["is_read"], shown["unreadable"]) == (True, None)


def test_a_second_message_does_nothing(alice, messages, monkeypatch):
    file = read(stored(alice, "a.pdf", pdf_of(["Once"])))
    monkeypatch.setattr(reading, "_read", lambda _: pytest.fail("read again"))
    read_file(str(file.pk), str(alice.organization.pk), str(alice.user.pk), "")
    read_file(str(uuid4()), str(alice.organization.pk), str(alice.user.pk), "")


def test_texts_and_images_are_not_read_again(alice, messages, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        text, image = stored(alice), stored(alice, "a.png", picture())
    assert messages == []
    assert api(alice).get(address(text)).json()["is_read"] is True
    assert api(alice).get(address(image)).json()["is_read"] is False
    assert not image.is_waiting


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.docx", docx_of([("Heading 1", "Bees"), ("Normal", "They hum.")]), "# Bees"),
        ("a.xlsx", xlsx_of({"Dues": [["Name", "Sum"], ["Ann", 42]]}), "42"),
    ],
)
def test_office_files_are_read(alice, name, data, text):
    assert text in read(stored(alice, name, data)).text


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("locked.pdf", locked_pdf("x"), "password"),
        ("a.zip", b"PK\x05\x06" + b"\0" * 18, "archive"),
        ("damaged.pdf", b"%PDF-1.7 nothing", "damaged"),
        ("what.bin", b"\x00\x01\x02\xff" * 50, ""),
    ],
)
def test_what_cannot_be_read_says_why_and_is_not_tried_again(alice, name, data, words, monkeypatch):
    file = read(stored(alice, name, data))
    assert file.text is None
    assert words in file.unreadable
    assert file.unreadable.endswith(".")
    assert api(alice).get(address(file)).json()["unreadable"] == file.unreadable
    monkeypatch.setattr(reading, "_read", lambda _: pytest.fail("read again"))
    read(file)


def test_a_parser_that_was_stopped_is_tried_again(alice, monkeypatch):
    def lose(*_, **__):
        raise ParserLost("killed")

    file = stored(alice, "a.pdf", pdf_of(["Bees"]))
    with monkeypatch.context() as patched:
        patched.setattr("libraries.parsing.parse", lose)
        assert read(file).unreadable == reading.NOT_NOW
    again = read(file)
    assert (again.text, again.unreadable) == ("[page 1]\nBees", "")


def test_bytes_that_are_gone_are_told(alice):
    file = stored(alice, "a.pdf", pdf_of(["Bees"]))
    default_storage.delete(file.path)
    assert read(file).unreadable == reading.GONE


def test_a_very_long_text_is_cut(alice, monkeypatch):
    monkeypatch.setattr(reading, "MAX_READ_CHARS", 20)
    text = read(stored(alice, "a.pdf", pdf_of(["Bees and wasps and ants"]))).text
    assert text == "[page 1]\nBees and wa\n[Cut: these are the first 20 of 32 characters.]"


# -- Sound -----------------------------------------------------------------------------------------


def test_sound_is_written_down_and_accounted_for(alice, provider):
    file = read(stored(alice, "memo.mp3", MP3))
    assert (file.text, file.unreadable) == ("Buy milk.", "")
    record = UsageRecord.objects.get()
    assert (record.kind, record.model, record.outcome) == ("speech", "fake-model", "ok")
    assert (record.user, record.organization) == (alice.user, alice.organization)
    assert record.completion_tokens == 3
    assert record.estimated


@pytest.mark.parametrize(("model", "code"), [("fake-500", "provider_unavailable")])
def test_a_fault_of_the_provider_is_tried_again(alice, provider, settings, model, code):
    settings.AMBER_TRANSCRIPTION_MODEL = model
    file = read(stored(alice, "memo.mp3", MP3))
    assert file.unreadable == reading.NOT_TRANSCRIBED
    assert UsageRecord.objects.get().outcome == code
    settings.AMBER_TRANSCRIPTION_MODEL = "fake-model"
    assert read(file).text == "Buy milk."


def test_a_refusal_of_the_provider_is_final(alice, provider, settings):
    settings.AMBER_TRANSCRIPTION_MODEL = "fake-404"
    assert not read(stored(alice, "memo.mp3", MP3)).is_waiting


def test_a_provider_that_hangs_is_left_after_a_while(alice, provider, settings, monkeypatch):
    monkeypatch.setattr(reading, "TRANSCRIPTION_SECONDS", 0.2)
    settings.AMBER_TRANSCRIPTION_MODEL = "fake-hang-first"
    assert read(stored(alice, "memo.mp3", MP3)).unreadable == reading.NOT_TRANSCRIBED
    assert UsageRecord.objects.get().outcome == "provider_timeout"


def test_silence_is_told(alice, provider):
    assert read(stored(alice, "memo.mp3", b"ID3\0")).unreadable == reading.NOTHING_SAID


def test_without_a_model_it_is_told_until_there_is_one(alice, settings, fake_provider):
    file = read(stored(alice, "memo.mp3", MP3))
    assert file.unreadable == reading.NO_TRANSCRIPTION
    assert file.is_waiting
    assert not UsageRecord.objects.exists()


# -- Whose it is -----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_message_reaches_no_file_of_somebody_else(alice, bob, mallory):
    file = stored(alice, "a.pdf", pdf_of(["Secret"]))
    for other in (bob, mallory):
        read_file(str(file.pk), str(other.organization.pk), str(other.user.pk), "")
    with as_tenant(alice.principal.tenant):
        assert File.objects.get(pk=file.pk).text is None
    read_file(str(file.pk), str(alice.organization.pk), str(alice.user.pk), "")
    with as_tenant(alice.principal.tenant):
        assert File.objects.get(pk=file.pk).text == "[page 1]\nSecret"
