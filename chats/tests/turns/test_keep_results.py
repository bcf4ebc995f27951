"""Test tool results beyond a short text: long ones, images, documents; with and without a chat."""

import asyncio
import io
import json
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.utils import timezone
from PIL import Image

from chats import services
from chats.messages.turn_messages import messages_of_turn
from chats.models import ChatMessage, Turn
from chats.running.writer import TurnWriter
from chats.tests.event_streams import stream_of
from chats.tests.rows import new_assistant, new_chat, take_over
from chats.tests.runs import (
    ask,
    ask_in,
    assert_stored_is_what_was_streamed,
    marker,
    prepared_for,
    run,
    unmarked,
)
from chats.tests.turns.approvals import die
from engine.events import TurnStatus
from libraries.files.storage import delete_expired_files
from libraries.models import File
from tests.fixtures.personas import api
from tools.calling.registry import register_tool
from tools.calling.result_files import MAX_FILES
from tools.calling.toolbox import NOTHING_RETURNED
from tools.protocol import ProducedFile, ToolOutput

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "word " * 20_000


@pytest.fixture(autouse=True)
def storage(monkeypatch, settings, tmp_path):
    monkeypatch.setattr("tools.calling.registry._tools", {})
    settings.MEDIA_ROOT = tmp_path


def png(colour: str = "red") -> bytes:
    """With a comment that must not survive."""
    made = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(made, "PNG", comment=b"secret place")
    return made.getvalue()


def image(name: str = "chart.png", colour: str = "red") -> ProducedFile:
    return ProducedFile(name, "image/png", png(colour))


def document(name: str = "speech.mp3", content: bytes = b"\xff\xf3binary") -> ProducedFile:
    return ProducedFile(name, "audio/mpeg", content)


def returns(*outputs: Any) -> None:
    """Registers a tool `make` that returns these, one a call."""
    left = list(outputs)

    @register_tool
    def make() -> ToolOutput:
        """Makes something."""
        output = left.pop(0) if len(left) > 1 else left[0]
        return output if isinstance(output, ToolOutput) else ToolOutput(output)


def answered(persona: Any, *outputs: Any, model: str = "fake-model", content: str = "") -> Any:
    """A turn whose tool returned these, completed."""
    returns(*outputs)
    turn = ask(persona, model, content=content or marker("make", {}))
    assert run(turn) == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(turn)
    return turn


def rows_of(turn: Turn) -> list[Any]:
    rows: Any = ChatMessage.objects.filter(turn=turn, step__isnull=False).order_by("position")
    return list(rows.select_related("file"))


def content_of(persona: Any, file_id: str) -> bytes:
    answer: Any = api(persona).get(f"/api/v1/files/{file_id}/content/")
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


# -- The whole result ------------------------------------------------------------------------------


def test_a_long_result_is_cut_and_kept_whole(alice, mallory, bob, new_model, fake_provider):
    new_model()
    turn = answered(alice, WORDS)
    (_, result, _) = rows_of(turn)
    assert result.content.startswith("word word")
    assert "characters left out" in result.content
    assert len(result.content) < len(WORDS) / 2
    shown = api(alice).get(f"/api/v1/messages/{result.pk}/").json()
    assert shown["file"]["name"] == "make.txt"
    assert shown["file"]["mime_type"] == "text/plain"
    assert content_of(alice, shown["file_id"]).decode() == WORDS
    for other in (bob, mallory):
        assert api(other).get(f"/api/v1/files/{shown['file_id']}/content/").status_code == 404
    told = [e["message"] for e in stream_of(turn) if e["event"] == "message.stored"]
    assert told[1]["file_id"] == shown["file_id"]
    asked = unmarked(fake_provider.requests(marker("make", {}))[-1]["messages"])
    assert asked[-1] == {
        "role": "tool",
        "tool_call_id": result.tool_call["id"],
        "content": result.content,
    }


def test_a_short_result_makes_no_file(alice, new_model):
    new_model()
    turn = answered(alice, "short")
    assert [row.role for row in rows_of(turn)] == ["tool_call", "tool", "assistant"]
    assert not File.objects.exists()


def test_the_file_of_a_guest_is_the_guests(alice, new_model):
    new_model()
    returns(WORDS)
    chat = new_chat(alice, assistant=new_assistant(alice, model="fake-model"))
    turn = ask_in(chat, alice, marker("make", {}))
    for row in (chat, turn):
        row.user, row.guest_id = None, "g1"
        row.save()
    assert run(turn) == TurnStatus.COMPLETED
    file = File.objects.get()
    assert (file.user, file.guest_id, file.organization) == (None, "g1", alice.organization)


@pytest.mark.parametrize(
    ("text", "content"),
    [("a\0b", "ab"), ("a\ud800b", "a?b"), ("", NOTHING_RETURNED), (" \n", NOTHING_RETURNED)],
    ids=["nul", "half", "empty", "blank"],
)
def test_odd_texts_do_not_break_a_turn(alice, new_model, text, content):
    new_model()
    assert rows_of(answered(alice, text))[1].content == content


def test_ten_megabytes_cost_little_memory(alice, new_model):
    """The text itself, its bytes, the pieces that are read: far below 50 MiB."""
    new_model()
    text = "line of a log file\n" * 550_000
    assert len(text) > 10_000_000
    returns(text)
    turn = ask(alice, content=marker("make", {}))
    run(ask(alice, content="[[fake tokens=1]]"))  # what is loaded once is loaded
    tracemalloc.start()
    try:
        assert run(turn) == TurnStatus.COMPLETED
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 50 * 2**20
    (_, result, _) = rows_of(turn)
    assert result.file is not None
    assert result.file.size == len(text)
    assert len(result.content) < 100_000


# -- Images ----------------------------------------------------------------------------------------


def test_a_vision_model_sees_an_image_in_the_next_step(alice, new_model, fake_provider):
    new_model(vision=True)
    question = marker("make", {}, tokens=7)
    turn = answered(alice, ToolOutput("Here.", (image(),)), content=question)
    roles = [row.role for row in rows_of(turn)]
    assert roles == ["tool_call", "tool", "file", "assistant"]
    (call, result, shown, _) = rows_of(turn)
    assert result.content == "Here.\n[image: chart.png]"
    assert result.file is None
    assert shown.tool_call["id"] == call.tool_call["id"]
    assert (shown.step, shown.turn_id) == (1, turn.pk)
    assert shown.file is not None
    assert (shown.file.mime_type, shown.file.user) == ("image/png", alice.user)
    assert b"secret" not in content_of(alice, str(shown.file_id)), "not made anew"
    asked = unmarked(fake_provider.requests(question)[-1]["messages"])
    assert [m["role"] for m in asked] == ["user", "assistant", "tool", "user"]
    (part,) = asked[-1]["content"]
    assert part["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_text_model_reads_its_name(alice, new_model, fake_provider):
    new_model()
    question = marker("make", {}, tokens=8)
    answered(alice, ToolOutput("Here.", (image(),)), content=question)
    asked = unmarked(fake_provider.requests(question)[-1]["messages"])
    assert asked[-1] == {"role": "user", "content": "[image: chart.png]"}


@pytest.mark.parametrize("vision", [True, False])
@pytest.mark.parametrize("public_url", ["", "https://amber.example"])
def test_the_next_request_is_the_same_when_it_is_made_from_the_rows(
    alice, new_model, fake_provider, settings, vision, public_url
):
    """A crash after the results, or no crash: the model is asked the same."""
    settings.AMBER_PUBLIC_URL = public_url
    new_model("fake-parallel-tools", vision=vision)
    one, two = (image("one.png", "red"), document()), (image("two.png", "blue"),)

    @register_tool
    async def first() -> ToolOutput:
        """The slower one."""
        await second_done.wait()
        return ToolOutput("", one)

    @register_tool
    async def second() -> ToolOutput:
        """The faster one."""
        asyncio.get_running_loop().call_later(0.05, second_done.set)
        return ToolOutput("Two.", two)

    second_done = asyncio.Event()
    question = f"Both of them, {vision}{public_url} [[fake tokens=3]]"
    turn = ask(alice, "fake-parallel-tools", content=question)
    assert run(turn) == TurnStatus.COMPLETED
    asked = unmarked(fake_provider.requests(question)[-1]["messages"])
    roles = ["user", "assistant", "tool", "tool", "user"]
    assert [m["role"] for m in asked] == roles
    answer = ChatMessage.objects.get(role="assistant")
    turn.tip = answer.parent
    again = prepared_for(turn).request.messages
    assert unmarked(again) == asked
    assert turn.question_id == rows_of(turn)[0].parent_id


def test_what_a_tool_made_is_no_question(alice, new_model, fake_provider):
    """A turn that broke off behind an image: the next question is what counts."""
    new_model(vision=True)
    turn = answered(alice, ToolOutput("Here.", (image(),)))
    ChatMessage.objects.filter(turn=turn, role="assistant").update(content=" ")
    following = f"And now? {turn.pk} [[fake tokens=1]]"
    assert run(ask_in(turn.chat, alice, following)) == TurnStatus.COMPLETED
    last = fake_provider.requests(following)[-1]["messages"][-1]
    assert last["role"] == "user"
    assert [part["type"] for part in last["content"]] == ["image_url", "text"]
    assert following in last["content"][1]["text"]


@pytest.mark.parametrize(
    ("made", "note"),
    [
        (
            ProducedFile("x.png", "image/png", b"\x89PNG\r\n\x1a\nnot one"),
            "x.png was left out: The",
        ),
        (ProducedFile("x.png", "image/png", b""), "x.png was left out: The file is empty."),
        (ProducedFile("big", "a/b", b"0" * 101), "big was left out: A file may have at most 100"),
    ],
    ids=["damaged", "empty", "too large"],
)
def test_a_file_that_is_none_becomes_a_note(alice, new_model, settings, made, note):
    settings.AMBER_MAX_UPLOAD_BYTES = 100
    new_model()
    turn = answered(alice, ToolOutput("Here.", (made,)))
    (_, result, _) = rows_of(turn)
    assert result.content.startswith(f"Here.\n[{note}")
    assert not File.objects.exists()


def test_too_many_files_are_counted(alice, new_model):
    new_model()
    files = tuple(image(f"{n}.png") for n in range(MAX_FILES + 2))
    turn = answered(alice, ToolOutput("Here.", files))
    assert [row.role for row in rows_of(turn)].count("file") == MAX_FILES
    assert rows_of(turn)[1].content.endswith(
        f"[2 more were left out: a result brings at most {MAX_FILES} files.]"
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [("../../etc/passwd", "passwd"), ("a\0b\n.png", "ab .png"), ("", "file"), ("..", "file")],
)
def test_names_are_cleaned(alice, new_model, given, name):
    new_model()
    answered(alice, ToolOutput("", (ProducedFile(given, "x/y", b"\x00\x01"),)))
    file = File.objects.get()
    assert file.name == name
    assert "etc" not in file.path


# -- Documents -------------------------------------------------------------------------------------


def test_a_document_belongs_to_the_result(alice, new_model, fake_provider):
    new_model()
    question = marker("make", {}, tokens=9)
    turn = answered(alice, ToolOutput("Spoken.", (document(),)), content=question)
    (_, result, _) = rows_of(turn)
    assert result.file is not None
    assert result.file.name == "speech.mp3"
    assert content_of(alice, str(result.file_id)) == b"\xff\xf3binary"
    assert unmarked(fake_provider.requests(question)[-1]["messages"])[-1]["content"] == (
        "Spoken.\n[file: speech.mp3]"
    )


def test_further_documents_follow_and_are_only_named_to_the_model(alice, new_model, fake_provider):
    new_model()
    question = marker("make", {}, tokens=10)
    made = (document("a.bin"), document("b.txt", b"a long text"), image())
    turn = answered(alice, ToolOutput("Done.", made), content=question)
    (_, result, second, third, _) = rows_of(turn)
    assert [row.file and row.file.name for row in (result, second, third)] == [
        *("a.bin", "b.txt", "chart.png")
    ]
    assert unmarked(fake_provider.requests(question)[-1]["messages"])[-1]["content"] == (
        "[file: b.txt]\n[image: chart.png]"
    )


# -- Without a chat, and when it goes wrong --------------------------------------------------------


def test_files_of_a_turn_without_a_chat_expire_with_it(alice, new_model, settings, fake_provider):
    new_model(vision=True)
    returns(ToolOutput(WORDS, (image(),)))
    question = {"role": "human", "content": marker("make", {}, tokens=11)}
    assistant = new_assistant(alice, model="fake-model")
    turn: Any = services.start_stateless_turn(
        alice.principal, assistant=assistant, messages=[question]
    )
    assert run(turn) == TurnStatus.COMPLETED
    assert_stored_is_what_was_streamed(turn)
    (_, result, shown, _) = turn.output["messages"]
    assert shown["role"] == "file"
    assert content_of(alice, result["file_id"]).decode() == WORDS
    keep = timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)
    for file in File.objects.all():
        assert timedelta(0) < keep - (file.expired_at - timezone.now()) < timedelta(minutes=1)
    asked = fake_provider.requests(question["content"])[-1]["messages"]
    turn.output["messages"].pop()
    assert json.loads(json.dumps(prepared_for(turn).request.messages)) == asked
    File.objects.update(expired_at=timezone.now())
    delete_expired_files()
    assert api(alice).get(f"/api/v1/files/{result['file_id']}/content/").status_code == 404
    assert "image_url" not in json.dumps(prepared_for(turn).request.messages)


def test_a_result_that_was_not_stored_leaves_neither_row_nor_bytes(
    alice, new_model, monkeypatch, tmp_path
):
    new_model()
    returns(ToolOutput(WORDS, (image(),)))
    turn = ask(alice, content=marker("make", {}))
    monkeypatch.setattr(TurnWriter, "store_result", die)
    assert run(turn) is None
    assert not File.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_nor_does_that_of_a_worker_that_lost_its_turn(alice, new_model, tmp_path):
    """Its transaction is refused after the rows were prepared."""
    new_model()

    @register_tool
    def make() -> ToolOutput:
        """Makes something while another worker takes the turn."""
        take_over(Turn.objects.get())
        return ToolOutput(WORDS, (image(),))

    turn = ask(alice, content=marker("make", {}))
    assert run(turn) is None
    assert not File.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_storage_that_is_away_costs_the_file_not_the_turn(alice, new_model, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(FileSystemStorage, "save", full)
    new_model()
    turn = answered(alice, ToolOutput(WORDS, (image(),)))
    (_, result, _) = rows_of(turn)
    assert "chart.png was left out: Files cannot be stored" in result.content
    assert "The whole result could not be kept" in result.content


def test_deleting_the_file_leaves_the_message(alice, new_model):
    new_model(vision=True)
    turn = answered(alice, ToolOutput("Here.", (image(),)))
    file = File.objects.get()
    assert api(alice).delete(f"/api/v1/files/{file.pk}/").status_code == 204
    assert run(ask_in(turn.chat, alice, "And? [[fake tokens=1]]")) == TurnStatus.COMPLETED
    assert messages_of_turn(turn)[2]["file"] is None
