"""The lists that are streamed, with all of Amber's own doors open: tests/wall/test_open_doors.py.

They are read by connections of their own, so that here the rows are committed.
"""

from typing import Any

import pytest
from django.db import connection

from amber.lib.postgres.base import TENANT_ROLE
from chats.models import ChatMessage
from memory.models import Memory
from tests.personas import Persona, api
from tests.test_tenancy import rows_of
from tests.wall.open_doors import MARK, open_all, shown, text_of
from tests.wall.test_open_doors import STREAMS, only_ids

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hers(alice: Persona) -> dict[str, Any]:
    ids: dict[str, Any] = rows_of(alice)
    ChatMessage.objects.update(content=MARK)
    Memory.objects.update(content=MARK)
    return ids


@pytest.mark.parametrize("address", sorted(STREAMS))
def test_no_stream_shows_another_tenants_rows(hers, mallory, address, monkeypatch):
    open_all(monkeypatch)
    for client in (api(mallory), api(key=mallory.new_key()[1])):
        answer = client.get(f"/{address}")
        text = text_of(answer)
        assert not shown(text, only_ids(hers).values()), text
    assert text or answer.status_code == 403


@pytest.mark.parametrize("address", sorted(STREAMS - {"api/v1/me/export/"}))
def test_without_the_wall_they_do(hers, mallory, address, monkeypatch):
    """All but what is of one person's account, which asks for a user and not at the door."""
    open_all(monkeypatch)
    monkeypatch.delitem(connection.settings_dict, TENANT_ROLE)
    assert shown(text_of(api(mallory).get(f"/{address}")), only_ids(hers).values())
