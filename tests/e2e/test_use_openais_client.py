"""OpenAI's own client at the real processes: a stream, a round with its own function, leaving, a worker
that is lost.
"""

from typing import Any

import pytest
from openai import APIError

from amber.processes import wait_until
from chats.tests.runs import marker
from public_api.tests.live_server import sdk
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.e2e

WEATHER: Any = {"type": "function", "function": {"name": "weather"}}


@pytest.fixture
def client(platform, ann):
    with sdk(f"http://127.0.0.1:{ann.port}", ann.key) as found:
        yield found


def ask(client: Any, content: Any, **more: Any) -> Any:
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return client.chat.completions.create(model="fake-model", messages=messages, **more)


def test_what_is_streamed_is_what_is_answered_whole(client):
    whole = ask(client, "[[fake tokens=30]]").choices[0].message.content
    chunks = list(ask(client, "[[fake tokens=30]]", stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
    assert whole == answer_text(30)


def test_a_round_with_the_clients_own_function(client):
    question = {"role": "user", "content": marker("weather", {})}
    message = ask(client, [question], tools=[WEATHER]).choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rain"}
    answer = ask(client, [question, message, result], tools=[WEATHER])
    assert answer.choices[0].message.content == answer_text(6)


def test_closing_the_stream_frees_the_provider(client, fake_provider):
    before = fake_provider.stats()["aborted"]
    with ask(client, "[[fake tokens=2000 itl=50]]", stream=True) as stream:
        next(iter(stream))
    assert wait_until(lambda: fake_provider.stats()["aborted"] > before, timeout_seconds=10)


def test_a_lost_worker_is_an_exception_and_no_silent_end(client, platform):
    with ask(client, "[[fake tokens=400 itl=50]]", stream=True) as stream:
        chunks = iter(stream)
        while not next(chunks).choices[0].delta.content:
            pass
        platform.chat_worker.kill()
        platform.start_member("chat")
        with pytest.raises(APIError) as caught:
            list(chunks)
    assert caught.value.code == "worker_lost"
