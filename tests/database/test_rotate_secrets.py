"""Every stored secret can be encrypted with a new key, after which the old one is of no use."""

import io
import time

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import MailKind, OutgoingMail
from amber.lib.secrets import DecryptError, cell_of, decrypt, encrypt
from amber.lib.workers.worker import Worker
from libraries.models import Repository
from libraries.tests.ledger import new_library
from operations.maintenance import secret_rotation
from operations.maintenance.heartbeats import ALIVE, beat
from operations.maintenance.secret_rotation import SECRET_COLUMNS
from operations.models import WorkerHeartbeat
from providers.models import Provider
from public_api.models import Webhook
from tests.fixtures.secret_keys import new_secret_key
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW, LOST = new_secret_key(), new_secret_key(), new_secret_key()


@pytest.fixture(autouse=True)
def old_key(settings):
    settings.AMBER_SECRET_KEYS = [OLD]


@pytest.fixture
def rows(alice):
    """One row of each model that keeps secrets, with a secret in each of its columns."""
    mine = {"organization": alice.organization, "user": alice.user}
    library = new_library(alice)
    made = {
        "accounts.OutgoingMail": OutgoingMail(
            address="a@example.com", kind=MailKind.BUDGET, cause="c", due_at=timezone.now()
        ),
        "libraries.Repository": Repository(library=library, git_url="https://g.example/", **mine),
        "providers.Provider": Provider(name="Rotated", base_url="https://p.example/v1"),
        "public_api.Webhook": Webhook(url="https://w.example/", events=["turn.completed"], **mine),
        "tools.Tool": Tool(name="Weather", discovery_url="https://t.example/", **mine),
    }
    for column in SECRET_COLUMNS:
        row = made[column.model]
        setattr(row, column.field, encrypt(column.name, **cell_of(row, column.cell)))
    for row in made.values():
        row.save()
    return made


def rotate() -> str:
    said = io.StringIO()
    call_command("rotate_secrets", stdout=said, stderr=said)
    return said.getvalue()


def read(rows):
    """Return what is in the columns now, decrypted."""
    opened = {}
    for column in SECRET_COLUMNS:
        row = rows[column.model]
        row.refresh_from_db()
        text = decrypt(getattr(row, column.field), **cell_of(row, column.cell))
        opened[(column.model, column.name)] = text
    return opened


def test_each_column_of_a_secret_is_in_the_table():
    columns = {
        (model._meta.label, field.name)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.name.endswith("_sealed")
    }
    assert columns == {(column.model, column.field) for column in SECRET_COLUMNS}


def test_the_old_key_can_go_afterwards(rows, settings):
    before = read(rows)
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    assert rotate().startswith(f"{len(SECRET_COLUMNS)} secrets were encrypted again")
    settings.AMBER_SECRET_KEYS = [NEW]
    assert read(rows) == before
    assert "You may drop the others" in rotate()


def test_what_cannot_be_read_is_named_and_stays(rows, settings):
    provider = rows["providers.Provider"]
    provider.api_key_sealed = encrypt("lost", **cell_of(provider, "api_key"), keys=[LOST])
    provider.save()
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    said = io.StringIO()
    with pytest.raises(CommandError, match=r"1 secrets? cannot be decrypted"):
        call_command("rotate_secrets", stdout=said, stderr=said)
    assert f"providers.Provider {provider.pk}, api_key: The key" in said.getvalue()
    kept = provider.api_key_sealed
    provider.refresh_from_db()
    assert provider.api_key_sealed == kept
    tool = rows["tools.Tool"]
    tool.refresh_from_db()
    assert decrypt(tool.api_key_sealed, **cell_of(tool, "api_key"), keys=[NEW]) == "api_key"


def test_a_secret_that_is_changed_meanwhile_stays_as_it_was_written(rows, settings, monkeypatch):
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    tool = rows["tools.Tool"]

    def change_first(text, **cell):
        theirs = encrypt("changed", **cell_of(tool, "api_key"))
        Tool.objects.filter(pk=tool.pk).update(api_key_sealed=theirs)
        return decrypt(text, **cell)

    monkeypatch.setattr(secret_rotation, "decrypt", change_first)
    secret_rotation.rotate_secrets()
    assert read(rows)["tools.Tool", "api_key"] == "changed"


def test_rows_are_more_than_a_batch(rows, settings, monkeypatch):
    monkeypatch.setattr(secret_rotation, "BATCH_ROWS", 2)
    for number in range(5):
        provider = Provider(name=f"P{number}", base_url="https://p.example/v1")
        provider.api_key_sealed = encrypt("k", **cell_of(provider, "api_key"))
        provider.save()
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    rotate()
    settings.AMBER_SECRET_KEYS = [NEW]
    for provider in Provider.objects.exclude(api_key_sealed=""):
        assert decrypt(provider.api_key_sealed, **cell_of(provider, "api_key"))


def test_nothing_is_changed_while_a_worker_uses_the_old_key(rows, settings):
    worker = Worker("slow@host", consuming_at=time.monotonic())
    beat(worker, "chat")
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match=r"do not use the first key yet: slow@host"):
        rotate()
    settings.AMBER_SECRET_KEYS = [OLD]
    assert read(rows)["tools.Tool", "api_key"] == "api_key"
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    beat(worker, "chat")  # it was restarted
    assert rotate().startswith(f"{len(SECRET_COLUMNS)} secrets were encrypted again")


def test_a_worker_that_is_gone_keeps_no_key_back(rows, settings):
    long_ago = timezone.now() - 2 * ALIVE
    WorkerHeartbeat.objects.create(worker="gone@host", queue="chat", beat_at=long_ago)
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    assert rotate().startswith(f"{len(SECRET_COLUMNS)} secrets were encrypted again")


def test_without_a_new_key_the_old_one_does_not_open_what_is_new(rows, settings):
    settings.AMBER_SECRET_KEYS = [NEW, OLD]
    rotate()
    settings.AMBER_SECRET_KEYS = [OLD]
    with pytest.raises(DecryptError):
        read(rows)
