"""What tests of hostile exports ask of the answer to an import, and a storage of their own."""

from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from chats.models import Chat
from libraries.models import File


def only(answer):
    assert answer.status_code == 201, answer.json()
    (entry,) = answer.json()["chats"]
    return entry, Chat.objects.get(pk=entry["chat"]["id"])


def said(answer):
    """The words of a refusal, which left nothing behind."""
    assert answer.status_code in (400, 413), answer.json()
    assert not Chat.objects.exists()
    assert not File.objects.exists()
    assert files_on_disk() == []
    return answer.json()["error"]["message"]


def files_on_disk():
    root = Path(default_storage.path(""))
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.MEDIA_ROOT.mkdir()
