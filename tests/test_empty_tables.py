"""The database after a test that commits: whatever it wrote is gone, and what is still written."""

import threading
import time

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction

from accounts.models import Organization
from chats.tests.rows import new_chat
from tests.empty_tables import empty_tables

pytestmark = pytest.mark.django_db(transaction=True)


def filled_tables() -> set[str]:
    models = apps.get_models(include_auto_created=True)
    return {model._meta.db_table for model in models if model._base_manager.exists()}


def test_only_what_migrate_left_remains(alice, mallory):
    new_chat(alice)
    before = (ContentType.objects.count(), Permission.objects.count())
    assert {"chats_chat", "accounts_user", "accounts_membership"} <= filled_tables()
    empty_tables()
    assert filled_tables() == {"django_content_type", "auth_permission"}
    assert (ContentType.objects.count(), Permission.objects.count()) == before


def test_whoever_still_writes_is_waited_for():
    has_written = threading.Event()

    def write() -> None:
        with transaction.atomic():
            Organization.objects.create(name="Late")
            has_written.set()
            time.sleep(0.2)
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    assert has_written.wait(10)
    empty_tables()
    writer.join()
    assert not Organization.objects.exists()
