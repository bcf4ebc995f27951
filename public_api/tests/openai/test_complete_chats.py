"""POST /v1/chat/completions with OpenAI's own client, against the web process's handler, a worker and
a provider.
"""

import itertools
import json
import threading
from typing import Any

import openai
import pytest
from django.utils import timezone

from accounts.models import ApiKey
from amber.lib.workers.leases import StopReason
from chats.models import Chat, ChatMessage, Turn
from chats.running.stopping import running_turns
from chats.services import cancel_turn
from chats.tests.rows import new_assistant
from chats.tests.runs import running
from engine.events import TurnStatus
from libraries.models import File
from providers.models import BudgetReservation, UsageRecord
from providers.tests.budgets import new_budget
from public_api.tests.completions import (
    SIX,
    SLOW,
    WEATHER,
    ask,
    deltas,
    png_url,
    said,
    seen_by_model,
    streamed,
    text_of,
)
from public_api.tests.live_server import sdk, until
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)


# -- It answers ----------------------------------------------------------------------------------


def test_answers_whole(client, model):
    answer = ask(client, n=1, extra_body={"unknown": {"x": 1}})
    whole = answer.to_dict()
    turn = Turn.objects.get()
    assert whole["id"] == f"chatcmpl-{turn.pk.hex}"
    assert (whole["object"], whole["model"]) == ("chat.completion", "fake-model")
    assert whole["created"] == int(turn.created_at.timestamp())
    assert whole["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": answer_text(6), "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    used = whole["usage"]
    assert used["completion_tokens"] == 6
    assert used["total_tokens"] == used["prompt_tokens"] + 6
    assert used["prompt_tokens_details"]["cached_tokens"] > 0


def test_streams_what_it_answers_whole(client, model):
    whole = ask(client).to_dict()
    chunks = streamed(client)
    assert text_of(chunks) == whole["choices"][0]["message"]["content"]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    first, *rest = deltas(chunks)
    assert first == {"role": "assistant", "content": "", "refusal": None}
    assert all("role" not in delta for delta in rest)
    ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert ends == [None] * (len(ends) - 1) + ["stop"]
    assert all("usage" not in chunk for chunk in chunks)


def test_usage_comes_only_when_asked_for(client, model):
    chunks = streamed(client, stream_options={"include_usage": True})
    *rest, last = chunks
    assert all(chunk["usage"] is None for chunk in rest)
    assert last["choices"] == []
    assert last["usage"] == ask(client).to_dict()["usage"]


def test_it_is_a_stream_of_events_that_ends_with_done(client, model):
    create = client.chat.completions.with_raw_response.create
    raw = create(model="fake-model", messages=[said(SIX)], stream=True)
    text = raw.http_response.read().decode()
    assert raw.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert raw.headers["cache-control"] == "no-store, no-transform"
    blocks = text.split("\n\n")
    assert all(block.startswith("data: {") for block in blocks[:-2])
    assert blocks[-2:] == ["data: [DONE]", ""]


def test_the_clients_streaming_helper_works(client, model):
    with client.chat.completions.stream(model="fake-model", messages=[said(SIX)]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == answer_text(6)


def test_heartbeats_while_a_model_thinks_disturb_nobody(client, model, settings):
    settings.AMBER_STREAM_HEARTBEAT_SECONDS = 0.2
    chunks = streamed(client, "[[fake tokens=3 ttft=1500 itl=300]]")
    assert text_of(chunks) == answer_text(3)


def test_a_bare_model_is_told_nothing_but_what_is_sent(client, new_model, fake_provider):
    new_model("fake-echo", default=True)
    history = [
        {"role": "developer", "content": "Be brief."},
        said("One"),
        {"role": "assistant", "content": "Two"},
        said("Three, 5c1e"),
    ]
    assert seen_by_model(ask(client, history, model="fake-echo")) == [
        {"role": "system", "content": "Be brief."},
        *history[1:],
    ]
    (asked,) = fake_provider.requests("5c1e")
    assert set(asked) == {"messages", "model", "stream", "stream_options"}


def test_a_conversation_may_be_long(client, model, fake_provider):
    speakers = itertools.cycle(("user", "assistant"))
    history = [{"role": next(speakers), "content": f"{n}"} for n in range(2_500)]
    assert ask(client, [*history, said("And now, 4d70?")]).choices[0].finish_reason == "stop"
    (asked,) = fake_provider.requests("4d70")
    assert asked["messages"][:-1] == history


def test_options_reach_the_model(client, model, fake_provider):
    ask(
        client,
        f"{SIX} 9d2b",
        temperature=0,
        top_p=0.5,
        max_completion_tokens=7,
        max_tokens=9,
        stop="END",
        seed=11,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        parallel_tool_calls=False,
        logit_bias={"50256": -100},
        service_tier="auto",
        metadata={"purpose": "test"},
    )
    (asked,) = fake_provider.requests("9d2b")
    told = ("temperature", "top_p", "max_tokens", "stop", "seed")
    assert [asked[name] for name in told] == [0, 0.5, 7, ["END"], 11]
    assert (asked["presence_penalty"], asked["frequency_penalty"]) == (0.5, -0.5)
    assert not {"parallel_tool_calls", "logit_bias", "service_tier", "metadata"} & set(asked)


def test_a_reply_is_never_longer_than_the_models_longest(client, new_model, fake_provider):
    new_model(max_output_tokens=100)
    ask(client, f"{SIX} 1f3c", max_tokens=100_000)
    assert fake_provider.requests("1f3c")[0]["max_tokens"] == 100


def test_a_reply_that_is_cut_says_so(client, new_model):
    new_model("fake-length")
    assert ask(client, model="fake-length").choices[0].finish_reason == "length"
    new_model("fake-filter")
    chunks = streamed(client, model="fake-filter")
    assert chunks[-1]["choices"][0]["finish_reason"] == "content_filter"


def test_an_answer_in_json(client, model, fake_provider):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "number", "schema": schema}}
    assert json.loads(ask(client, "8e77", response_format=form).choices[0].message.content) == {
        "n": 1
    }
    told = fake_provider.requests("8e77")[0]["response_format"]["json_schema"]
    assert (told["name"], told["schema"]) == ("number", schema)
    ask(client, "8e78", response_format={"type": "json_object"})
    assert fake_provider.requests("8e78")[0]["response_format"] == {"type": "json_object"}
    ask(client, "8e79", response_format={"type": "text"})
    assert "response_format" not in fake_provider.requests("8e79")[0]


def test_images_are_shown_to_a_model_that_sees(client, new_model, alice, settings):
    settings.AMBER_PUBLIC_URL = ""
    new_model("fake-echo", vision=True)
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": png_url(), "detail": "low"}},
    ]
    (message,) = seen_by_model(ask(client, [said(parts)], model="fake-echo"))
    assert message["content"][0] == {"type": "text", "text": "What is it?"}
    assert message["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert File.objects.get().expired_at is not None
    (alone,) = seen_by_model(ask(client, [said(parts[1:])], model="fake-echo"))
    assert [part["type"] for part in alone["content"]] == ["image_url"]


# -- An assistant answers ------------------------------------------------------------------------


def test_an_assistant_brings_its_prompt_and_its_temperature(
    client, alice, new_model, fake_provider
):
    new_model("fake-echo")
    made = new_assistant(
        alice, model="fake-echo", prompt="You are Ada.", temperature=1.8, slug="ada"
    )
    for name in ("assistant:ada", f"assistant:{made.pk}"):
        answer = ask(client, [{"role": "system", "content": "Be brief."}, said("Hi")], model=name)
        assert answer.model == name
        prompt, question = seen_by_model(answer)
        assert prompt["content"].endswith("You are Ada.\nBe brief.")
        assert question == said("Hi")
    ask(client, "6b0d", model="assistant:ada")
    ask(client, "6b0e", model="assistant:ada", temperature=0)
    assert fake_provider.requests("6b0d")[0]["temperature"] == 1, "clamped"
    assert fake_provider.requests("6b0e")[0]["temperature"] == 0, "as it was given"


def test_its_own_tools_are_run_here_and_not_shown(client, alice, new_model):
    new_model("fake-parallel-tools")
    new_assistant(alice, model="fake-parallel-tools", slug="ada")
    whole = ask(client, "both", model="assistant:ada").to_dict()
    assert "tool_calls" not in whole["choices"][0]["message"]
    assert Turn.objects.get().step == 2
    chunks = streamed(client, "both", model="assistant:ada")
    assert not any(delta.get("tool_calls") for delta in deltas(chunks))
    assert text_of(chunks) == whole["choices"][0]["message"]["content"]


# -- It fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "raised", "status", "code"),
    [
        ("fake-400", openai.BadRequestError, 400, "provider_rejected"),
        ("fake-context-too-long", openai.BadRequestError, 400, "context_length_exceeded"),
        ("fake-429", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("fake-401", openai.InternalServerError, 502, "provider_auth"),
        ("fake-500", openai.InternalServerError, 502, "provider_unavailable"),
        ("fake-malformed-first", openai.InternalServerError, 502, "provider_malformed"),
    ],
)
def test_a_failure_before_the_first_word_has_its_status(
    client, new_model, settings, name, raised, status, code, stream
):
    settings.AMBER_PROVIDER_RETRIES = 0
    new_model(name)
    with pytest.raises(raised) as caught:
        ask(client, model=name, stream=stream)
    error = caught.value
    assert (error.status_code, error.code) == (status, code)
    assert set(error.body) == {"message", "type", "param", "code"}
    retried = code in ("rate_limit_exceeded", "provider_unavailable", "provider_malformed")
    assert error.response.headers["x-should-retry"] == ("true" if retried else "false")


def test_a_failure_later_is_told_in_the_stream(client, new_model):
    new_model("fake-cut-mid")
    read: list[Any] = []
    with pytest.raises(openai.APIError) as caught:
        read.extend(ask(client, model="fake-cut-mid", stream=True))
    assert read[0].choices[0].delta.role == "assistant"
    assert caught.value.code == "provider_lost"
    create = client.chat.completions.with_raw_response.create
    raw = create(model="fake-cut-mid", messages=[said(SIX)], stream=True)
    *_, error, done, _ = raw.http_response.read().decode().split("\n\n")
    assert set(json.loads(error.removeprefix("data: "))["error"]) == {
        "message",
        "type",
        "param",
        "code",
    }
    assert done == "data: [DONE]"
    with pytest.raises(openai.InternalServerError):
        ask(client, model="fake-cut-mid")


def test_a_client_that_retries_gets_its_answer(address, alice, new_model, settings):
    settings.AMBER_PROVIDER_RETRIES = 0
    new_model("fake-429-once")
    with sdk(address, alice.new_key(scopes=["public"])[1]) as client:
        answer = ask(client.with_options(max_retries=2), model="fake-429-once")
    assert answer.choices[0].message.content == answer_text(6)
    assert Turn.objects.count() == 2


def test_a_worker_that_dies_after_the_first_word_breaks_the_stream_off(client, model):
    """What was shown cannot be taken back in this form."""
    with ask(client, SLOW, stream=True) as stream:
        words = iter(stream)
        for chunk in words:
            if chunk.choices[0].delta.content:
                break
        turn = Turn.objects.get()
        running_turns.stop(turn.pk, StopReason.RELEASED)
        until(lambda: Turn.objects.get(pk=turn.pk).status == TurnStatus.QUEUED)
        with running(turn, "w2"), pytest.raises(openai.APIError) as caught:
            list(words)
    assert caught.value.code == "worker_lost"
    assert turn.status == TurnStatus.CANCELLED


# -- The client leaves ---------------------------------------------------------------------------


def test_closing_the_stream_closes_the_providers(client, model, fake_provider):
    before = fake_provider.stats()["aborted"]
    with ask(client, SLOW, stream=True) as stream:
        next(iter(stream))
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)
    until(lambda: fake_provider.stats()["aborted"] == before + 1)


def test_closing_before_the_first_word_does_too(client, model, fake_provider):
    with pytest.raises(openai.APITimeoutError):
        ask(client.with_options(timeout=1), "[[fake ttft=60000]]", stream=True)
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)


def test_with_an_idempotency_key_it_may_come_back(client, model):
    headers = {"Idempotency-Key": "once"}
    with ask(client, "[[fake tokens=40 itl=20]]", stream=True, extra_headers=headers) as stream:
        next(iter(stream))
    whole = ask(client, "[[fake tokens=40 itl=20]]", stream=True, extra_headers=headers)
    assert "".join(c.choices[0].delta.content or "" for c in whole) == answer_text(40)
    assert Turn.objects.count() == 1


def test_a_key_that_is_revoked_ends_its_streams(client, model, monkeypatch):
    monkeypatch.setattr("chats.events.viewers.WELCOME_SECONDS", 0.2)
    with ask(client, SLOW, stream=True) as stream:
        chunks = iter(stream)
        next(chunks)
        ApiKey.objects.update(revoked_at=timezone.now())
        with pytest.raises(openai.APIError) as caught:
            list(chunks)
    assert caught.value.code == "invalid_api_key"
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)


# -- What it may cost ----------------------------------------------------------------------------


def test_of_fifty_at_once_ten_are_asked_where_the_budget_affords_ten(client, alice, model):
    per_request = 100 + 10
    new_budget(alice, 10 * per_request)
    refused: list[str] = []

    def try_it() -> None:
        try:
            ask(client, "[[fake ttft=60000]]", max_tokens=100)
        except openai.RateLimitError as error:
            refused.append(error.code or "")
        except openai.ConflictError:
            pass  # it was asked, and is cancelled below

    threads = [threading.Thread(target=try_it) for _ in range(50)]
    for thread in threads:
        thread.start()
    until(lambda: len(refused) == 40)
    assert set(refused) == {"insufficient_quota"}
    turns = Turn.objects.live()
    until(lambda: turns.filter(status=TurnStatus.RUNNING).count() == 10)
    for turn in turns:
        cancel_turn(turn)
    for thread in threads:
        thread.join(60)
    assert len(refused) == 40
    assert Turn.objects.count() == 10
    assert not BudgetReservation.objects.exists()


# -- What is kept --------------------------------------------------------------------------------


def test_nothing_is_kept_but_the_turn_for_a_while(client, alice, model, settings):
    from chats.turns.stateless import erase_stateless

    ask(client, f"{SIX} secret", tools=[WEATHER], stop="secret")
    assert not Chat.objects.exists()
    assert not ChatMessage.objects.exists()
    turn = Turn.objects.get()
    assert (turn.user, turn.organization, turn.guest_id) == (alice.user, alice.organization, None)
    settings.AMBER_STATELESS_KEEP_SECONDS = 0
    erase_stateless()
    turn.refresh_from_db()
    assert (turn.input, turn.output, turn.options) == (None, None, {})
    assert "secret" not in json.dumps(turn.manifest)


def test_usage_goes_on_the_keys_and_the_guests_account(client, alice, model):
    ask(client, user="visitor 7")
    (record,) = UsageRecord.objects.all()
    turn = Turn.objects.get()
    assert record.api_key_id == turn.api_key_id is not None
    assert record.guest_id == turn.guest_id == f"{alice.user.pk}:visitor 7"
    assert record.user_id == alice.user.pk
