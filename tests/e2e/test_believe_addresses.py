"""Where requests come from, as far as they may say it themselves: not at all without proxies."""

import pytest

from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.e2e


def test_a_forged_address_does_not_begin_another_count(platform: Platform, ann: Client) -> None:
    """Nor from this machine, from where a proxy would call."""
    assistant_id = ann.assistant("fake-model")
    assert ann.request("PATCH", f"assistants/{assistant_id}/", {"public": True}).status == 200
    port = free_port()
    member = platform.start_web(port, AMBER_RATE_GUEST_TOKEN="2")
    try:
        path = f"public/assistants/{assistant_id}/token/"
        told = [
            Client(port).post(path, headers={"X-Forwarded-For": f"203.0.113.{number}"}).status
            for number in range(3)
        ]
    finally:
        platform.stop_member(member)
    assert told == [201, 201, 429]
