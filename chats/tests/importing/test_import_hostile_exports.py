"""Test that exports built to do harm, and damaged ones, end in sentences: no row, no byte is left."""

import json
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError
from django.utils import timezone

from amber.lib.errors import Invalid
from chats.importing import converted, documents, services
from chats.importing.converted import MAX_IMPORTED_MESSAGES
from chats.importing.formats.chatgpt import convert_chatgpt
from chats.messages import imported_tree
from chats.models import Chat, ChatMessage
from chats.tests.importing import exports
from chats.tests.importing.exports import chatgpt, chatgpt_node, row, send_files, send_json
from chats.tests.importing.import_answers import files_on_disk, only, own_storage, said
from chats.tests.rows import error_of
from libraries.models import File

__all__ = ["own_storage"]

HI = {"role": "user", "content": "Hi"}


# -- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"5", "an object or a list"),
        (b'"chat"', "an object or a list"),
        (b"nothing", "Expecting value"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'[{"mapping": {}}', "broken off"),
        (b'[{"mapping": {}} {}]', "broken off"),
        (b'[{"mapping": NaN}]', "NaN"),
        (b'[{"mapping": ' + b"1" * 5_000 + b"}]", "too many digits"),
        (b"[]", "There is no chat in it."),
        (b"[5]", "none of the forms"),
        (b"[null, null]", "None of its 2 chats"),
        (b'{"chats": []}', "There is no chat in it."),
    ],
)
def test_what_is_no_json_is_told_so(alice, body, words):
    assert words in said(send_json(alice, body))


def test_too_many_brackets_are_refused_before_they_are_parsed(alice, monkeypatch):
    monkeypatch.setattr(documents, "MAX_BRACKETS", 100)
    assert "more than 100 objects and lists" in said(send_json(alice, [[[]] * 200]))


def test_a_body_that_is_too_long_is_refused(alice, settings):
    settings.AMBER_MAX_IMPORT_BYTES = 1_000
    long = [{"role": "user", "content": "x" * 1_000}]
    assert error_of(send_json(alice, long)) == (413, "too_large")
    assert error_of(send_files(alice, {"a.json": json.dumps(long).encode()})) == (413, "too_large")


def test_one_conversation_at_a_time_is_in_memory():
    """Thirty conversations of a megabyte, read one after the other."""
    one = chatgpt(chatgpt_node("q", None, "user", "x" * 1_000_000))
    body = json.dumps([one] * 30).encode()
    tracemalloc.start()
    try:
        count = sum(1 for _ in documents.read_conversations(body))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 30
    assert peak_bytes < len(body) + 5_000_000  # the text, and one of them


# -- Trees -----------------------------------------------------------------------------------------


def test_a_circle_is_left_out_and_told(alice):
    conversation = chatgpt(
        chatgpt_node("q", None, "user", "Hi"),
        chatgpt_node("x", "y", "user", "round"),
        chatgpt_node("y", "x", "assistant", "and round"),
        chatgpt_node("z", "z", "user", "itself"),
        current="x",
    )
    entry, chat = only(send_json(alice, conversation))
    assert [m.content for m in ChatMessage.objects.filter(chat=chat)] == ["Hi"]
    (lost,) = entry["not_taken"]
    assert (lost["kind"], lost["count"]) == ("message", 3)


def test_an_orphan_begins_a_branch_of_its_own(alice):
    conversation = chatgpt(
        chatgpt_node("q", None, "user", "Hi"), chatgpt_node("o", "gone", "user", "Alone")
    )
    _, chat = only(send_json(alice, conversation))
    assert ChatMessage.objects.filter(chat=chat, parent=None).count() == 2


def test_an_id_that_is_used_twice_counts_once(alice):
    message = exports.librechat_message
    given = exports.librechat_conversation()
    given["messages"] = [message("q", is_user=True, text=text) for text in ("One", "Two")]
    entry, chat = only(send_json(alice, given))
    assert [m.content for m in ChatMessage.objects.filter(chat=chat)] == ["One"]
    assert [each["reason"] for each in entry["not_taken"]] == ["Its id is used twice."]


def test_a_chain_of_ten_thousand_comes_in_one_go(alice, django_assert_max_num_queries):
    nodes = [
        chatgpt_node(str(n), str(n - 1) if n else None, ("user", "assistant")[n % 2], f"said {n}")
        for n in range(10_000)
    ]
    with django_assert_max_num_queries(60):
        entry, chat = only(send_json(alice, [chatgpt(*reversed(nodes), current="9999")]))
    assert (entry["messages"], entry["not_taken"]) == (10_000, [])
    deepest = ChatMessage.objects.filter(chat=chat).order_by("-position")[0]
    assert (deepest.position, deepest.content) == (9_999, "said 9999")
    assert chat.active_leaf == deepest


def thoughts_node(node_id, parent_id, text):
    content = {"content_type": "thoughts", "thoughts": [{"content": text}]}
    return chatgpt_node(node_id, parent_id, "assistant", content)


def test_thoughts_that_wait_for_an_answer_are_held_once():
    """A megabyte of thoughts in a chain of 5,000: joined at each, they would be 2,500 of them."""
    chain = [thoughts_node(str(n), str(n - 1) if n else None, f"{n:0200}") for n in range(5_000)]
    conversation = chatgpt(*chain, chatgpt_node("a", "4999", "assistant", "At last."))
    tracemalloc.start()
    try:
        made = convert_chatgpt(conversation)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (answer,) = made.messages
    assert answer["thoughts"].startswith(f"{0:0200}\n\n{1:0200}\n\n")
    assert len(answer["thoughts"]) == converted.MAX_THOUGHTS_CHARS
    assert peak_bytes < 30_000_000


def test_answers_to_the_same_thoughts_have_no_more_of_them_than_a_chat_may(monkeypatch):
    monkeypatch.setattr(converted, "MAX_ALL_THOUGHTS_CHARS", 1_000)
    answers = [chatgpt_node(f"a{n}", "t", "assistant", f"Answer {n}") for n in range(30)]
    made = convert_chatgpt(chatgpt(thoughts_node("t", None, "x" * 100), *answers))
    thoughts = [message.get("thoughts", "") for message in made.messages]
    assert thoughts == ["x" * 100] * 10 + [""] * 20
    assert sum(count for (kind, _), count in made.not_taken.items() if kind == "thoughts") == 20


def test_a_call_is_read_once_however_many_results_it_has(monkeypatch):
    read = []
    plain = converted._arguments_text

    def record(given):
        read.append(given)
        return plain(given)

    monkeypatch.setattr(converted, "_arguments_text", record)
    code = {"content_type": "code", "text": "x" * 1_000}
    results = [chatgpt_node(f"r{n}", "c", "tool", "done", name="web.run") for n in range(50)]
    called = chatgpt_node("c", None, "assistant", code, recipient="web.run")
    made = convert_chatgpt(chatgpt(called, *results))
    assert read.count("x" * 1_000) == 1
    assert [m["role"] for m in made.messages] == ["tool_call"] + ["tool"] * 50
    calls = [m["tool_call"] or {} for m in made.messages]
    assert {(call["id"], call["name"]) for call in calls} == {("c", "web_run")}


def test_nesting_ends_where_parsing_would(alice):
    """LibreChat nests each message in the one before, if it is asked to."""
    top = exports.librechat_conversation() | {"messages": [], "messagesTree": []}
    inner = top["messagesTree"]
    for number in range(3_000):
        message = exports.librechat_message(str(number), is_user=True, text="Hi")
        message["children"] = []
        inner.append(message)
        inner = message["children"]
    text = _dump_nested(top)
    assert "export the chat without nesting" in said(send_json(alice, text))


def _dump_nested(value):
    """As json.dumps, which gives up at a depth of a thousand."""
    out, waiting = [], [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            pairs = list(item.items())
            waiting.append(_Raw("}"))
            for place, (name, inner) in enumerate(reversed(pairs)):
                waiting += [inner, _Raw(json.dumps(name) + ":")]
                waiting.append(_Raw("" if place == len(pairs) - 1 else ","))
            waiting.append(_Raw("{"))
        elif isinstance(item, list):
            waiting.append(_Raw("]"))
            for place, inner in enumerate(reversed(item)):
                waiting += [inner, _Raw("" if place == len(item) - 1 else ",")]
            waiting.append(_Raw("["))
        else:
            out.append(item if isinstance(item, _Raw) else json.dumps(item))
    return "".join(out).encode()


class _Raw(str):
    """Is written as it is."""


def test_more_messages_than_a_chat_may_have_are_refused(alice):
    nodes = [chatgpt_node(str(n), None, "user", "Hi") for n in range(MAX_IMPORTED_MESSAGES + 1)]
    assert "more than 20,000 messages" in said(send_json(alice, [chatgpt(*nodes)]))


# -- Values ----------------------------------------------------------------------------------------

GARBAGE: list[Any] = [
    None,
    True,
    5,
    -1e300,
    "x",
    [],
    {},
    [None],
    [[]],
    {"a": {}},
    "\0\ud800",
    10**30,
]


@pytest.mark.parametrize("value", GARBAGE, ids=repr)
@pytest.mark.parametrize(
    "sample",
    [
        exports.chatgpt_conversation,
        exports.open_webui_chat,
        exports.librechat_conversation,
        lambda: {"messages": exports.openai_messages()},
    ],
    ids=["chatgpt", "open_webui", "librechat", "openai"],
)
def test_whatever_stands_in_a_field_ends_in_an_answer(alice, sample, value):
    """Every field of every sample, one after the other, holds this."""
    spoilt = list(exports.unlike(exports.spoilt(sample(), value)))
    answer = send_json(alice, [[HI], *spoilt])
    assert answer.status_code == 201, answer.json()
    assert len(answer.json()["chats"] + answer.json()["refused"]) == len(spoilt) + 1
    assert answer.json()["is_complete"]


def test_texts_are_made_fit_to_be_stored(alice, settings):
    settings.AMBER_MAX_MESSAGE_CHARS = 100
    conversation = chatgpt(
        chatgpt_node("q", None, "user", "a\0b\ud800c"),
        chatgpt_node("r", "q", "assistant", "x" * 1_000, metadata={"model_slug": "m" * 1_000}),
        title="\u202e" + "n" * 1_000,
    )
    entry, chat = only(send_json(alice, conversation))
    first, second = ChatMessage.objects.filter(chat=chat).order_by("position")
    assert first.content == "ab�c"
    assert (second.content, second.model, chat.name) == ("x" * 100, "m" * 200, "n" * 255)
    assert [each["kind"] for each in entry["not_taken"]] == ["text"]


def test_times_that_are_none_are_left_out(alice):
    times = (0, -5, 1e30, "yesterday", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", True)
    nodes = [chatgpt_node(str(t), None, "user", "Hi", create_time=t) for t in times]
    _, chat = only(send_json(alice, chatgpt(*nodes, create_time="x")))
    rows = ChatMessage.objects.filter(chat=chat)
    assert {m.created_at.date() for m in rows} == {chat.created_at.date()}


@pytest.mark.parametrize("ahead", [timedelta(hours=23), timedelta(days=3_650)], ids=str)
def test_times_in_the_future_are_those_of_the_import(alice, ahead):
    late = (timezone.now() + ahead).timestamp()
    given = chatgpt(chatgpt_node("q", None, "user", "Hi", create_time=late), create_time=late)
    _, chat = only(send_json(alice, given))
    assert max(chat.created_at, row(chat=chat).created_at) <= timezone.now()
    assert only(send_json(alice, given))[0]["is_new"] is False


def test_a_time_far_east_is_kept_as_what_it_is_here(alice):
    nodes = [chatgpt_node("q", None, "user", "Hi", create_time="2024-01-01T00:00:00+20:00")]
    _, chat = only(send_json(alice, chatgpt(*nodes)))
    assert row(chat=chat).created_at.isoformat() == "2023-12-31T04:00:00+00:00"


def test_a_character_of_thousands_of_digits_stays_text(alice):
    chat = exports.open_webui_chat()
    odd = f'<details type="x" a="&#{"9" * 5_000};">&#{"9" * 5_000};</details>Hi there'
    for message in chat["chat"]["history"]["messages"].values():
        message |= {"content": odd, "output": None}
    _, made = only(send_json(alice, [chat]))
    assert ChatMessage.objects.filter(chat=made, content="Hi there").exists()


@pytest.mark.parametrize(
    "odd",
    [{"n": 2**70}, {"reply_id": 2**70}, {"reply_id": "\ud800"}, {"n\ud800": "\ud800"}],
    ids=repr,
)
def test_what_a_call_has_besides_is_not_read(alice, odd):
    call = {"id": "c\ud800", "name": "add", "arguments": "{}"} | odd
    given = {"messages": [{"role": "tool_call", "content": "", "tool_call": call}]}
    _, chat = only(send_json(alice, given))
    assert row(chat=chat).tool_call["name"] == "add"
    assert send_json(alice, given).json()["chats"][0]["is_new"] is False


@pytest.mark.parametrize("role", ["tool_call", "tool", "file"])
@pytest.mark.parametrize("odd", [{"n": 1}, {"id": "c", "name": "add", "arguments": {}}], ids=repr)
def test_a_call_that_no_turn_could_read_is_refused(alice, role, odd):
    given = {"messages": [{"role": role, "content": "here", "tool_call": odd}]}
    assert error_of(send_json(alice, given)) == (400, "invalid")


def test_a_file_keeps_the_call_that_made_it(alice):
    call = {"id": "c", "name": "draw", "arguments": "", "reply_id": "r"}
    given = {"messages": [{"role": "file", "content": "here", "tool_call": call}]}
    _, chat = only(send_json(alice, given))
    assert row(chat=chat).tool_call == call


@pytest.mark.parametrize("error", [ValueError, TypeError, RecursionError, OverflowError, DataError])
def test_an_odd_value_refuses_its_chat_alone_and_leaves_nothing(alice, monkeypatch, error):
    """The second of three chats with an image each fails when its rows are written already."""
    plain = services._keep_dates
    calls = []

    def fail_once(*given):
        calls.append(given)
        plain(*given)
        if len(calls) == 2:
            raise error

    monkeypatch.setattr(services, "_keep_dates", fail_once)
    chats = [[*exports.openai_messages(), HI | {"content": f"{n}"}] for n in range(3)]
    report = send_json(alice, chats).json()
    assert [each["reason"] for each in report["refused"]] == [services.ODD]
    assert {each["chat"]["id"] for each in report["chats"]} == {
        str(chat.pk) for chat in Chat.objects.all()
    }
    assert len(report["chats"]) == 2
    assert len(files_on_disk()) == File.objects.count() > 0


def test_a_value_that_the_database_refuses_refuses_its_chat_alone(alice, monkeypatch):
    """What Postgres refuses spoils a transaction; the other chats' goes on."""
    monkeypatch.setattr(services, "_keep_dates", lambda *_: None)
    plain = imported_tree.build_tree

    def too_long(chat, messages, **given):
        rows = plain(chat, messages, **given)
        if messages[0]["content"] == "bad":
            chat.name = "x" * 1_000
        return rows

    monkeypatch.setattr(services, "build_tree", too_long)
    chats = [[HI | {"content": content}] for content in ("good", "bad", "better")]
    report = send_json(alice, chats).json()
    assert len(report["chats"]) == Chat.objects.count() == 2
    assert [each["reason"] for each in report["refused"]] == [services.ODD]


def test_names_of_tools_are_made_ones_that_providers_take(alice):
    call = {"id": "", "function": {"name": "../a b\n", "arguments": "not JSON"}}
    given = [HI, {"role": "assistant", "tool_calls": [call, call, 5]}]
    _, chat = only(send_json(alice, given))
    one, two = ChatMessage.objects.filter(chat=chat, role="tool_call").order_by("position")
    assert one.tool_call["name"] == "_a_b_"
    assert json.loads(one.tool_call["arguments"]) == {"input": "not JSON"}
    assert one.tool_call["id"] != two.tool_call["id"]


@pytest.mark.parametrize("form", ["openai", "amber"])
def test_a_call_is_taken_without_arguments_that_are_too_long(alice, form):
    long = json.dumps({"text": "x" * 200_000})
    short = json.dumps({"text": "x" * 199_000})
    calls = [{"id": "a", "name": "f", "arguments": a} for a in (long, short)]
    if form == "amber":
        given: Any = {
            "messages": [{"role": "tool_call", "content": "", "tool_call": c} for c in calls]
        }
    else:
        functions = [{"id": c["id"], "function": c} for c in calls]
        given = [HI, {"role": "assistant", "tool_calls": functions}]
    entry, chat = only(send_json(alice, given))
    rows = ChatMessage.objects.filter(chat=chat, role="tool_call").order_by("position")
    assert entry["format"].startswith(form)
    assert [m.tool_call["arguments"] for m in rows if m.tool_call] == ["{}", short]
    assert [(e["kind"], e["count"]) for e in entry["not_taken"]] == [("arguments of a call", 1)]


def test_kinds_that_nobody_knows_are_listed_up_to_fifty(alice):
    pieces = [{"content_type": f"kind {n}"} for n in range(70)]
    content = {"content_type": "multimodal_text", "parts": ["Hi", *pieces]}
    entry, _ = only(send_json(alice, chatgpt(chatgpt_node("q", None, "user", content))))
    assert len(entry["not_taken"]) == 51
    (others,) = [each for each in entry["not_taken"] if each["kind"] == "others"]
    assert others["count"] == 20


# -- Several ---------------------------------------------------------------------------------------


def test_one_bad_chat_does_not_keep_the_others_out(alice):
    bad = {"title": "Corrupted entry", "conversation_id": "x"}
    answer = send_json(alice, [exports.chatgpt_conversation(), bad, 5])
    assert answer.status_code == 201
    report = answer.json()
    assert len(report["chats"]) == 1
    assert [each["name"] for each in report["refused"]] == ["Corrupted entry", ""]


def test_what_is_too_much_for_one_request_goes_on_with_the_next(alice, monkeypatch):
    monkeypatch.setattr(services, "MAX_MESSAGES_AT_ONCE", 4)
    many = [[HI | {"content": f"{n}"}, HI] for n in range(5)]
    first = send_json(alice, many).json()
    assert ([len(first["chats"]), first["is_complete"]]) == [2, False]
    second = send_json(alice, many).json()
    assert [each["is_new"] for each in second["chats"]] == [False, False, True, True]
    third = send_json(alice, many).json()
    assert (len(third["chats"]), third["is_complete"]) == (5, True)
    assert Chat.objects.count() == 5
    copies = send_json(alice, many, "?again=true")
    assert error_of(copies) == (400, "invalid")
    assert Chat.objects.count() == 5


def test_an_export_of_more_chats_than_one_request_takes_is_done_with_the_second(alice, monkeypatch):
    monkeypatch.setattr(services, "MAX_CHATS_AT_ONCE", 3)
    many = [5, *([HI | {"content": f"{n}"}] for n in range(5))]
    first = send_json(alice, many).json()
    assert (len(first["chats"]), len(first["refused"]), first["is_complete"]) == (3, 1, False)
    second = send_json(alice, many).json()
    assert [each["is_new"] for each in second["chats"]] == [False] * 3 + [True] * 2
    assert second["is_complete"]
    third = send_json(alice, many).json()
    assert (len(third["chats"]), third["is_complete"]) == (3, True)  # known ones, no more of them
    assert Chat.objects.count() == 5


def test_very_many_refusals_end_a_request(alice, monkeypatch):
    monkeypatch.setattr(services, "MAX_REFUSED_AT_ONCE", 3)
    report = send_json(alice, [[HI], *([5] * 9)]).json()
    assert (len(report["refused"]), report["is_complete"]) == (3, False)


# -- Files -----------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_count_like_the_others(alice, monkeypatch):
    monkeypatch.setattr(services, "MAX_FILES_AT_ONCE", 3)
    prepared = []

    def prepare(*_, name, **__):
        prepared.append(name)
        raise Invalid("The image is damaged.")

    monkeypatch.setattr(services, "prepare_file", prepare)
    files = [{"name": f"{n}.png", "url": "data:image/png;base64,AAAA"} for n in range(10)]
    chat = exports.open_webui_chat()
    for message in chat["chat"]["history"]["messages"].values():
        message["files"] = files
    entry, _ = only(send_json(alice, [chat]))
    assert len(prepared) == 3
    assert "Only the first 3 files are taken in." in {lost["reason"] for lost in entry["not_taken"]}


def test_bytes_go_with_an_import_that_fails(alice, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(services, "_keep_dates", fail)
    assert send_json(alice, exports.openai_messages()).status_code == 500
    assert files_on_disk() == []
    assert not Chat.objects.exists()
