"""Responses that are continued, fetched later, left and taken up again, cancelled and forgotten: with
OpenAI's own client, against the web process's handler, a worker, a provider.
"""

import json
import threading
from typing import Any

import openai
import pytest

from amber.lib.workers.leases import StopReason
from chats.models import Chat, ChatMessage, Turn
from chats.running.stopping import running_turns
from chats.turns.stateless import erase_stateless
from engine.events import TurnStatus
from libraries.models import File
from public_api.tests.completions import png_url
from public_api.tests.live_server import until
from public_api.tests.responses.test_create_responses import SIX, SLOW, streamed, text_of
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)


# -- What came before --------------------------------------------------------------------------------


def test_previous_response_gives_the_whole_conversation(client, new_model):
    new_model("fake-model", default=True)
    new_model("fake-echo")
    first = client.responses.create(model="fake-model", input=SIX, instructions="Only now.")
    second = client.responses.create(
        model="fake-model", input="[[fake tokens=2]]", previous_response_id=first.id
    )
    third = client.responses.create(model="fake-echo", input="And?", previous_response_id=second.id)
    said = [(m["role"], m["content"]) for m in json.loads(third.output_text)]
    assert said == [
        ("user", SIX),
        ("assistant", answer_text(6)),
        ("user", "[[fake tokens=2]]"),
        ("assistant", answer_text(2)),
        ("user", "And?"),
    ]


def test_images_of_the_response_before_are_kept_as_long_as_the_next(client, new_model):
    new_model("fake-model", default=True)
    part = {"type": "input_image", "image_url": png_url(), "detail": "auto"}
    first = client.responses.create(model="fake-model", input=[{"role": "user", "content": [part]}])
    before = File.objects.get().expired_at
    client.responses.create(model="fake-model", input="So?", previous_response_id=first.id)
    assert File.objects.filter(expired_at__gt=before).exists()


def test_a_response_that_is_no_longer_kept_is_404(client, model, settings):
    first = client.responses.create(model="fake-model", input=SIX)
    settings.AMBER_STATELESS_KEEP_SECONDS = 0
    erase_stateless()
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="fake-model", input="And?", previous_response_id=first.id)
    assert caught.value.param == "previous_response_id"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_what_is_not_to_be_stored_cannot_be_retrieved_or_continued(client, model):
    first = client.responses.create(model="fake-model", input=SIX, store=False)
    assert first.to_dict()["store"] is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="fake-model", input="And?", previous_response_id=first.id)
    with pytest.raises(openai.NotFoundError):
        named: Any = [{"type": "item_reference", "id": first.output[0].id}]
        client.responses.create(
            model="fake-model", input=[*named, {"role": "user", "content": "?"}]
        )


def test_a_stored_chat_goes_on(client, new_model):
    new_model("fake-model", default=True)
    new_model("fake-echo")
    first = client.responses.create(model="fake-model", input=SIX, metadata={"chat_id": "new"})
    chat = Chat.objects.get()
    second = client.responses.create(
        model="fake-echo",
        input="And?",
        previous_response_id=first.id,
        instructions="Be brief.",
    )
    prompt, *said = json.loads(second.output_text)
    assert "Be brief." in prompt["content"]
    assert [m["content"].split("\n")[-1] for m in said] == [SIX, answer_text(6), "And?"]
    assert ChatMessage.objects.filter(chat=chat).count() == 4
    with pytest.raises(openai.ConflictError) as caught:
        client.responses.create(model="fake-model", input="No", previous_response_id=first.id)
    assert caught.value.param == "previous_response_id"


# -- In the background -------------------------------------------------------------------------------


def ended(client, response_id):
    def is_over():
        return client.responses.retrieve(response_id).status not in ("queued", "in_progress")

    until(is_over)
    return client.responses.retrieve(response_id)


def test_background_is_answered_at_once_and_retrieved_later(client, model):
    first = client.responses.create(model="fake-model", input=SIX, background=True)
    assert first.status in ("queued", "in_progress")
    assert first.background is True
    done = ended(client, first.id)
    assert (done.status, done.output_text) == ("completed", answer_text(6))
    assert done.usage.output_tokens == 6


def test_prefer_respond_async_is_the_background(client, model):
    raw = client.responses.with_raw_response.create(
        model="fake-model", input=SIX, extra_headers={"Prefer": "wait=5, respond-async"}
    )
    response = raw.parse()
    assert raw.http_response.status_code == 202
    assert raw.headers["location"] == f"/v1/responses/{response.id}"
    assert raw.headers["preference-applied"] == "respond-async"
    assert ended(client, response.id).status == "completed"


def test_what_is_not_stored_is_waited_for_whatever_is_preferred(client, model):
    raw = client.responses.with_raw_response.create(
        model="fake-model", input=SIX, store=False, extra_headers={"Prefer": "respond-async"}
    )
    assert raw.http_response.status_code == 200
    assert "preference-applied" not in raw.headers
    assert raw.parse().output_text == answer_text(6)


def test_a_failure_in_the_background_is_told_when_it_is_retrieved(client, new_model):
    new_model("fake-400")
    first = client.responses.create(model="fake-400", input="Hi", background=True)
    done = ended(client, first.id)
    assert (done.status, done.error.code) == ("failed", "invalid_prompt")


def test_cancels_what_is_in_the_background(client, model):
    first = client.responses.create(model="fake-model", input=SLOW, background=True)
    until(lambda: Turn.objects.get().partial_text)
    cancelled = client.responses.cancel(first.id)
    assert cancelled.status == "cancelled"
    assert answer_text(200).startswith(cancelled.output_text)
    assert cancelled.output_text
    assert client.responses.cancel(first.id).status == "cancelled"


def test_a_stream_goes_on_where_it_was_left(client, model):
    stream = client.responses.create(
        model="fake-model", input="[[fake tokens=40 itl=20]]", background=True, stream=True
    )
    seen = []
    with stream:
        for event in stream:
            seen.append(event.to_dict())
            if len(text_of(seen)) > 30:
                break
    response_id = seen[0]["response"]["id"]
    rest = streamed(
        client.responses.retrieve(
            response_id, stream=True, starting_after=seen[-1]["sequence_number"]
        )
    )
    assert text_of(seen) + text_of(rest) == answer_text(40)
    assert rest[-1]["response"]["status"] == "completed"
    whole = streamed(client.responses.retrieve(response_id, stream=True))
    assert text_of(whole) == answer_text(40)
    assert whole[-1]["sequence_number"] == rest[-1]["sequence_number"]


def test_whoever_comes_back_goes_on_at_the_very_character(client, model):
    done = client.responses.create(model="fake-model", input=SIX)
    whole = streamed(client.responses.retrieve(done.id, stream=True))
    first = next(e for e in whole if e["type"] == "response.output_text.delta")
    number = first["sequence_number"] - len(first["delta"]) + 2
    rest = streamed(client.responses.retrieve(done.id, stream=True, starting_after=number))
    assert text_of(rest) == answer_text(6)[2:]


def test_a_stream_says_that_it_was_cancelled(client, model):
    stream = client.responses.create(model="fake-model", input=SLOW, background=True, stream=True)
    seen = []
    with stream:
        for event in stream:
            seen.append(event.to_dict())
            if event.type == "response.output_text.delta" and len(text_of(seen)) < 20:
                threading.Thread(
                    target=running_turns.stop,
                    args=(Turn.objects.get().pk, StopReason.CANCELLED),
                ).start()
    assert seen[-1]["type"] == "response.incomplete"
    assert seen[-1]["response"]["status"] == "cancelled"


def test_a_stream_that_is_left_cancels_what_nobody_could_fetch(client, model):
    stream = client.responses.create(model="fake-model", input=SLOW, stream=True)
    with stream:
        next(event for event in stream if event.type == "response.output_text.delta")
    until(lambda: Turn.objects.get().status == TurnStatus.CANCELLED)


def test_deletes(client, model):
    first = client.responses.create(model="fake-model", input=SIX)
    client.responses.delete(first.id)
    assert not Turn.objects.exists()
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_deleting_what_is_under_way_stops_it(client, model):
    first = client.responses.create(model="fake-model", input=SLOW, background=True)
    client.responses.delete(first.id)
    assert not Turn.objects.exists()


def test_a_stored_chat_keeps_the_messages_of_a_deleted_response(client, model):
    first = client.responses.create(model="fake-model", input=SIX, metadata={"chat_id": "new"})
    client.responses.delete(first.id)
    assert ChatMessage.objects.count() == 2
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_the_same_key_twice_starts_once(client, model):
    header = {"Idempotency-Key": "k1"}
    ask = {"model": "fake-model", "input": SIX, "extra_headers": header}
    assert client.responses.create(**ask).id == client.responses.create(**ask).id
    assert Turn.objects.count() == 1
