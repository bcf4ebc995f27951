"""POST /chat on real processes: tools, the history fed back, a client that hangs up."""

import http.client
import json
from typing import Any

import pytest

from amber.processes import wait_until
from tests.e2e.kit.client import Client
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e


def ask(client: Client, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = client.post("/chat", {"messages": messages})
    assert answer.status == 200, answer
    return list(answer.body["messages"])


def test_a_conversation_grows_by_being_sent_again(platform, ann):
    question = {"role": "user", "content": "Hi [[fake tokens=6]]"}
    history = ask(ann, [question])
    assert history == [question, {"role": "assistant", "content": answer_text(6)}]
    grown = ask(ann, [*history, question])
    assert grown == [*history, question, history[-1]]


def test_a_client_that_hangs_up_frees_the_provider(platform, ann, fake_provider):
    before = fake_provider.stats()
    connection = http.client.HTTPConnection("127.0.0.1", ann.port)
    content = "Tell me. [[fake ttft=60000]]"
    connection.request(
        "POST",
        "/chat",
        json.dumps({"messages": [{"role": "user", "content": content}]}),
        {"Authorization": f"Bearer {ann.key}", "Content-Type": "application/json"},
    )
    assert wait_until(
        lambda: fake_provider.stats()["active"] > before["active"], timeout_seconds=10
    )
    connection.close()
    assert wait_until(
        lambda: fake_provider.stats()["aborted"] > before["aborted"], timeout_seconds=10
    )
