"""Fifty ask at once where the budget affords ten: ten are answered, and forty hear of the budget."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.kit.client import PATIENCE_SECONDS, Client, Connection
from tests.e2e.kit.platform import Platform

pytestmark = pytest.mark.e2e

ASKING, AFFORDED = 50, 10
REPLY_TOKENS = 1_000
LIMIT_TOKENS = AFFORDED * REPLY_TOKENS + REPLY_TOKENS // 2
"""So that ten questions fit besides their replies, and an eleventh reply does not."""

SLOW = "[[fake tokens=900 itl=100]]"
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": SLOW}],
        "max_tokens": REPLY_TOKENS,
    },
    "/v1/responses": {"input": SLOW, "max_output_tokens": REPLY_TOKENS},
}


@dataclass
class Crowd:
    """Fifty clients of one key; whoever is answered listens until told to hang up."""

    client: Client
    path: str
    begin: threading.Barrier = field(default_factory=lambda: threading.Barrier(ASKING))
    hang_up: threading.Event = field(default_factory=threading.Event)
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: list[tuple[Message, bytes]] = field(default_factory=list)

    def ask(self) -> None:
        body = {"model": "fake-model", "stream": True, **REQUESTS[self.path]}
        self.begin.wait(PATIENCE_SECONDS)
        with Connection(self.client, "POST", self.path, body, {}) as connection:
            response = connection.response
            if response.status == 200:
                assert response.readline()
            else:
                self.refusals.append((response.headers, response.read()))
            self.statuses[response.status] += 1
            if response.status == 200:
                self.hang_up.wait(PATIENCE_SECONDS)


def new_budget(platform: Platform, name: str) -> Client:
    """Somebody whose organization may use LIMIT_TOKENS in a month."""
    somebody = platform.new_person(name, f"Thrifty {name}")
    sql = """
        INSERT INTO providers_budget
            (id, created_at, updated_at, organization_id, scope, subject, period, unit, "limit")
        SELECT %s, now(), now(), id, 'organization', '', 'month', 'tokens', %s
        FROM accounts_organization WHERE name = %s RETURNING id
    """
    assert len(platform.query(sql, uuid4(), LIMIT_TOKENS, f"Thrifty {name}")) == 1
    return somebody


def reserved_tokens(platform: Platform) -> int:
    return int(
        platform.query("SELECT coalesce(sum(amount), 0) FROM providers_budgetreservation")[0][0]
    )


@pytest.mark.parametrize("path", REQUESTS)
def test_of_fifty_at_once_exactly_ten_are_asked(platform, path):
    crowd = Crowd(new_budget(platform, f"bea-{uuid4().hex[:8]}"), path)
    threads = [threading.Thread(target=crowd.ask) for _ in range(ASKING)]
    for thread in threads:
        thread.start()
    try:
        platform.wait_for(lambda: crowd.statuses.total() == ASKING, "answer to all")
    finally:
        crowd.hang_up.set()
    assert crowd.statuses == {200: AFFORDED, 429: ASKING - AFFORDED}
    for headers, body in crowd.refusals:
        told = json.loads(body)["error"]
        assert (told["type"], told["code"]) == ("insufficient_quota", "insufficient_quota")
        assert "monthly token budget of the organization" in told["message"]
        assert int(headers["Retry-After"]) > 0
        assert headers["x-should-retry"] == "false"
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    platform.wait_for(lambda: reserved_tokens(platform) == 0, "end of what was held")
