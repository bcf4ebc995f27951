"""The lists that are streamed, with all of Amber's own doors open: tests/wall/test_open_doors.py.

The web process's own handler serves them here: their bodies are made after the view has ended, by
other threads and connections, which must still be the caller's. So the rows are committed.
"""

from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from amber.lib.postgres.base import TENANT_ROLE
from chats.models import ChatMessage
from memory.models import Memory
from public_api.tests.exchange import request
from tests.fixtures.personas import Persona, api
from tests.tenancy.test_tenancy import rows_of
from tests.wall.open_doors import MARK, open_all, shown
from tests.wall.test_open_doors import STREAMS, only_ids

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hers(alice: Persona, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    ids: dict[str, Any] = rows_of(alice)
    ChatMessage.objects.update(content=MARK)
    Memory.objects.update(content=MARK)
    open_all(monkeypatch)
    return ids


def said_to(persona: Persona, address: str) -> str:
    session = api(persona).cookies[settings.SESSION_COOKIE_NAME].value
    cookie = {"cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}
    answer = request("GET", f"/{address}", headers=cookie)
    assert answer is not None
    assert answer.status == 200, answer.body
    return answer.body.decode()


@pytest.mark.parametrize("address", sorted(STREAMS))
def test_no_stream_shows_another_tenants_rows(hers, mallory, address):
    text = said_to(mallory, address)
    assert text
    assert not shown(text, only_ids(hers).values()), text


@pytest.mark.parametrize("address", sorted(STREAMS))
def test_without_the_wall_they_do(hers, mallory, address, monkeypatch):
    monkeypatch.delitem(connection.settings_dict, TENANT_ROLE)
    assert shown(said_to(mallory, address), only_ids(hers).values())
