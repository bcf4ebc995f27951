"""What goes in and what comes back, as values: tables, and that the way there and back is none."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from public_api.openai.messages import (
    Image,
    RemoteImage,
    RequestMessage,
    from_output,
    images_of,
    to_input,
)
from public_api.openai.serializers import MAX_ENTRIES, MAX_IMAGES, MessagesField

PNG = b"\x89PNG\r\n\x1a\n"
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
USER = {"role": "user", "content": "Hi"}


def call(call_id="c1", name="f", arguments="{}"):
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def calling(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(call_id="c1", content="ok"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def image(url=PNG_URL):
    return {"type": "image_url", "image_url": {"url": url}}


def read(*messages: Any) -> list[RequestMessage]:
    given: list[RequestMessage] = MessagesField().run_validation(list(messages))
    return given


def entries_of(*messages, file_ids=None):
    return to_input(read(*messages), file_ids or {})


# -- In ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "entry"),
    [
        ({"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be brief."}),
        ({"role": "developer", "content": "Do."}, {"role": "system", "content": "Do."}),
        (USER, {"role": "human", "content": "Hi"}),
        (USER | {"name": "ann"}, {"role": "human", "content": "Hi", "name": "ann"}),
        (
            {"role": "assistant", "content": "Yes?", "name": "bo"},
            {"role": "assistant", "content": "Yes?", "name": "bo"},
        ),
        (USER | {"unknown": 1, "tool_calls": None}, {"role": "human", "content": "Hi"}),
        (
            {"role": "assistant", "content": "Ok", "tool_calls": []},
            {"role": "assistant", "content": "Ok"},
        ),
    ],
    ids=range(7),
)
def test_a_message_becomes_an_entry(message, entry):
    assert entries_of(message, USER)[0] == entry


def test_texts_in_parts_are_told_one_after_the_other():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert entries_of({"role": "system", "content": parts}, USER)[0]["content"] == "a\nb"
    said = entries_of({"role": "user", "content": parts})
    assert [entry["content"] for entry in said] == ["a", "b"]


def test_images_keep_their_place():
    message = {"role": "user", "content": [{"type": "text", "text": "a"}, image(), image()]}
    messages = read(USER, message | {"name": "ann"})
    places = ["messages.1.content.1", "messages.1.content.2"]
    assert images_of(messages) == dict.fromkeys(places, Image(PNG))
    assert to_input(messages, dict(zip(places, "xy", strict=True)))[1:] == [
        {"role": "human", "content": "a", "name": "ann"},
        {"role": "file", "content": "", "file_id": "x", "name": "ann"},
        {"role": "file", "content": "", "file_id": "y", "name": "ann"},
    ]


def test_images_may_be_addresses_for_amber_to_fetch():
    url = "https://example.com/a.png"
    assert images_of(read({"role": "user", "content": [image(url)]})) == {
        "messages.0.content.0": RemoteImage(url)
    }


def test_an_image_alone_is_a_question():
    said = to_input(read({"role": "user", "content": [image()]}), {"messages.0.content.0": "x"})
    assert [(entry["role"], entry["content"]) for entry in said] == [("human", ""), ("file", "")]


def test_functions_of_old_are_read_as_tools():
    history = [
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "ok"},
    ]
    asked, answered = entries_of(*history)[1:]
    assert (asked["role"], asked["tool_call"]["name"]) == ("tool_call", "f")
    assert (answered["role"], answered["content"]) == ("tool", "ok")
    assert asked["tool_call"]["id"] == answered["tool_call"]["id"] != ""


def test_calls_of_a_reply_stay_together():
    replies = [calling(call("a"), call("b"), content="Wait."), result("b"), result("a", "no")]
    entries = entries_of(USER, *replies)[1:]
    assert [entry["role"] for entry in entries] == ["tool_call", "tool_call", "tool", "tool"]
    assert [entry["content"] for entry in entries] == ["Wait.", "", "ok", "no"]
    assert {entry["tool_call"]["reply_id"] for entry in entries[:2]} == {"given:1"}
    assert [entry["tool_call"]["id"] for entry in entries] == ["a", "b", "b", "a"]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], ""),
        ("Hi", ""),
        ([{"role": "system", "content": "x"}], ""),
        ([{"role": "user", "content": " \n"}], ""),
        ([{"role": "user", "content": []}], ""),
        ([USER] * (MAX_ENTRIES + 1), ""),
        ([{"role": "user", "content": [image()] * (MAX_IMAGES + 1)}], ""),
        (["Hi"], 0),
        ([{"content": "x"}], 0),
        ([USER, {"role": "function", "name": "f", "content": "x"}], 1),
        ([USER, {"role": "assistant", "content": None, "function_call": "f"}], 1),
        ([{"role": "user"}], 0),
        ([{"role": "user", "content": None}], 0),
        ([{"role": "user", "content": 1}], 0),
        ([{"role": "user", "content": {"type": "text"}}], 0),
        ([{"role": "user", "content": ["x"]}], 0),
        ([{"role": "user", "content": [{"type": "text"}]}], 0),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], 0),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": PNG_URL}]}], 0),
        ([{"role": "user", "content": [image("ftp://example.com/x.png")]}], 0),
        ([{"role": "user", "content": [image("https://example.com/" + "x" * 2_000)]}], 0),
        (
            [{"role": "user", "content": [image("https://example.com/x.png")] * (MAX_IMAGES + 1)}],
            "",
        ),
        ([{"role": "user", "content": [image("file:///etc/passwd")]}], 0),
        ([{"role": "user", "content": [image("data:image/svg+xml;base64,AAAA")]}], 0),
        ([{"role": "user", "content": [image("data:image/png;base64,%%%")]}], 0),
        ([{"role": "user", "content": "x" * 200_001}], 0),
        ([USER | {"name": "two words"}], 0),
        ([USER | {"name": "x" * 65}], 0),
        ([USER | {"tool_calls": [call()]}], 0),
        ([{"role": "system", "content": [image()]}, USER], 0),
        ([USER, {"role": "assistant", "content": None}], 1),
        ([USER, {"role": "assistant", "content": None, "tool_calls": []}], 1),
        ([USER, calling({"id": "c1"}), result()], 1),
        ([USER, calling(call(arguments={"a": 1})), result()], 1),
        ([USER, calling(call(call_id="")), result("")], 1),
        ([USER, calling(call() | {"type": "custom"}), result()], 1),
        ([USER, calling(call())], 1),
        ([USER, calling(call()), USER], 1),
        ([USER, calling(call("a"), call("b")), result("a"), USER], 1),
        ([USER, result()], 1),
        ([USER, calling(call()), result(), result()], 3),
        ([USER, calling(call()), result("other")], 2),
        ([USER, calling(call()), USER, result()], 3),
        ([USER, calling(call()), {"role": "tool", "content": "ok"}], 2),
        ([USER, calling(call()), {"role": "tool", "tool_call_id": "c1"}], 2),
    ],
    ids=range(45),
)
def test_what_breaks_the_form_is_named(messages, field):
    with pytest.raises(ValidationError) as caught:
        MessagesField().run_validation(messages)
    detail = caught.value.detail
    assert field in detail if isinstance(detail, dict) else field == ""


# -- Back ----------------------------------------------------------------------------------------


def row(role, content="", **fields):
    return {"role": role, "content": content, "tool_call": None, "file": None} | fields


def called(call_id, reply_id, content=""):
    asked = {"id": call_id, "name": "f", "arguments": "{}", "reply_id": reply_id}
    return row("tool_call", content, tool_call=asked)


def answered(call_id, content="ok", **fields):
    return row("tool", content, tool_call={"id": call_id, "name": "f", "arguments": ""}, **fields)


def test_what_a_turn_wrote_comes_back_in_openais_form():
    written = [
        called("a", "r1", "Wait."),
        called("b", "r1"),
        answered("b", "two"),
        answered("a", "one"),
        called("a", "r2"),
        answered("a", "three"),
        row("assistant", "Done."),
    ]
    assert from_output(written) == [
        calling(call("a"), call("b"), content="Wait."),
        result("b", "two"),
        result("a", "one"),
        calling(call("a")),
        result("a", "three"),
        {"role": "assistant", "content": "Done."},
    ]


def test_what_a_call_made_stands_with_its_result():
    song = {"id": "1", "name": "a.mp3", "mime_type": "audio/mpeg", "size": 3, "url": None}
    picture = song | {"id": "2", "name": "b.png"}
    shown = row("file", tool_call={"id": "a"}, file=picture)
    written = [called("a", "r1"), answered("a", file=song), shown, row("assistant", "Done.")]
    messages = from_output(written)
    assert [file["id"] for file in messages[1]["files"]] == ["1", "2"]
    assert set(messages[1]["files"][0]) == {"id", "name", "mime_type", "size"}
    assert len(messages) == 3


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
IDS = st.sampled_from(["a", "b", "c"])


@st.composite
def turns_output(draw):
    """What turns write: rounds of calls, all answered in any order, then an answer."""
    written = []
    for number in range(draw(st.integers(0, 3))):
        ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
        for position, call_id in enumerate(ids):
            entry = called(call_id, f"r{number}", "" if position else draw(TEXT))
            entry["tool_call"]["name"] = draw(TEXT.filter(bool))
            entry["tool_call"]["arguments"] = draw(TEXT)
            written.append(entry)
        written += [answered(call_id, draw(TEXT)) for call_id in draw(st.permutations(ids))]
    return [*written, row("assistant", draw(TEXT))]


def plain(entries):
    """Without what the form of OpenAI has no place for: whose reply, the name in a result."""
    return [
        (
            entry["role"],
            entry["content"],
            (entry.get("tool_call") or {}).get("id"),
            entry["role"] == "tool_call"
            and (entry["tool_call"]["name"], entry["tool_call"]["arguments"]),
        )
        for entry in entries
    ]


@given(turns_output())
def test_what_comes_back_is_taken_back(written):
    history = [USER, *from_output(written)]
    entries = to_input(read(*history), {})
    assert plain(entries[1:]) == plain(written), "the model sees the same conversation"
    replies = [entry["tool_call"]["reply_id"] for entry in entries if entry["role"] == "tool_call"]
    own = [each["tool_call"]["reply_id"] for each in written if each["role"] == "tool_call"]
    assert len(set(replies)) == len(set(own))


@given(turns_output(), turns_output())
def test_a_history_grows_by_what_is_new(first, second):
    history = [USER, *from_output(first), USER, *from_output(second)]
    assert len(read(*history)) == len(history)


@given(st.binary(min_size=1, max_size=30))
def test_an_image_is_read_as_it_was_sent(data):
    url = f"data:image/webp;base64,{base64.b64encode(data).decode()}"
    (message,) = read({"role": "user", "content": [image(url)]})
    assert message.parts == (Image(data),)
