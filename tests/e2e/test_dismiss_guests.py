"""A public assistant that sends its guests away, or is public no longer, while it answers them."""

import pytest

from tests.e2e.kit.client import Client, Connection
from tests.e2e.kit.platform import Platform

pytestmark = pytest.mark.e2e

SLOW = "Tell me. [[fake tokens=1200 itl=40]]"


def close_door(ann: Client, assistant_id: str) -> None:
    changes = {"public": False}
    assert ann.request("PATCH", f"assistants/{assistant_id}/", changes).status == 200


def dismiss(ann: Client, assistant_id: str) -> None:
    assert ann.post(f"assistants/{assistant_id}/dismiss-guests/").status == 204


@pytest.fixture
def assistant_id(platform: Platform, ann: Client) -> str:
    found = ann.assistant("fake-model")
    assert ann.request("PATCH", f"assistants/{found}/", {"public": True}).status == 200
    return found


@pytest.mark.parametrize("end", [close_door, dismiss])
def test_guests_streams_end(platform, ann, assistant_id, end):
    base = f"public/assistants/{assistant_id}"
    guest = Client(platform.port, key=Client(platform.port).post(f"{base}/token/").body["token"])
    chat_id = guest.post(f"{base}/chats/", {}).body["id"]
    asked = guest.post(f"{base}/chats/{chat_id}/messages/", {"content": SLOW})
    turn_id = asked.body["turn"]["id"]
    with Connection(guest, "GET", f"{base}/turns/{turn_id}/events/", None, {}) as connection:
        events = connection.events()
        seen = [next(events) for _ in range(5)]
        end(ann, assistant_id)
        seen += list(events)
    assert not any(event is not None and event.is_last for event in seen)
    again = guest.get(f"{base}/turns/{turn_id}/events/")
    assert (again.status, again.error["code"]) == (401, "invalid_credential")
    sql = "UPDATE chats_turn SET cancel_requested_at = now() WHERE id = %s RETURNING id"
    assert platform.query(sql, turn_id)
