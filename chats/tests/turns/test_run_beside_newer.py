"""A worker and a web process of this release beside those of the next: what they do not know, they pass over."""

import json
from typing import Any

import pytest

from chats import services
from chats.context.call_options import CallOptions
from chats.events.viewers import StreamEvent
from chats.models import ChatMessage, Turn
from chats.streaming import turn_follower
from chats.tests.runs import ask, ask_in, run
from engine.context.blocks import line_of
from engine.events import TextDelta
from engine.messages import Message

pytestmark = pytest.mark.django_db(transaction=True)

LATER = "2030"


def test_options_of_a_turn_that_are_not_known_are_passed_over():
    tool = {"name": "look", "description": "", "parameters": {}, "colour": "red"}
    read = CallOptions.read({"seed": 1, "mood": "calm", "tools": [tool]})
    assert (read.seed, read.tools[0].name) == (1, "look")


def test_events_with_new_fields_are_read_and_new_events_passed_over():
    told = {"seq": 1, "turn_id": "t", "event": "text.delta", "step": 1, "text": "a", "voice": LATER}
    read = turn_follower._read(StreamEvent(1, "text.delta", json.dumps(told).encode()))
    assert isinstance(read, TextDelta)
    assert turn_follower._read(StreamEvent(2, "image.delta", b'{"seq": 2, "image": ""}')) is None


def test_a_turn_is_answered_whose_rows_hold_what_a_newer_release_wrote(alice, new_model):
    """A message of an unknown role, options and a manifest with unknown fields."""
    new_model()
    first = ask(alice)
    assert run(first) == "completed"
    posted = services.post_message(first.chat.pk, alice.principal, role="system", content="Calm.")
    ChatMessage.objects.filter(pk=posted.message.pk).update(role="mood")
    second = ask_in(first.chat, alice, "And now?")
    newer = {"options": {"mood": "calm"}, "manifest": {"release": LATER, "weather": {"sun": 1}}}
    Turn.objects.filter(pk=second.pk).update(**newer)
    assert run(second) == "completed"
    assert ChatMessage.objects.filter(turn=second, role="assistant").exists()
    said: Any = Message("mood", "Calm.")
    assert line_of(said) == "", "nor does a block say it"
