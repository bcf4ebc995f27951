import base64

import pytest

from tools.mcp.results import output_of
from tools.protocol import ProducedFile, ToolOutput


def text(said):
    return {"type": "text", "text": said}


def encoded(content):
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": []}, ""),
        ({"content": [text("one"), text("two")]}, "one\ntwo"),
        ({"content": [], "structuredContent": {"a": 1}}, '{"a":1}'),
        ({"content": [text('{ "a": 1 }')], "structuredContent": {"a": 1}}, '{ "a": 1 }'),
        ({"content": [text("Found.")], "structuredContent": {"a": 1}}, 'Found.\n{"a":1}'),
        ({"content": [text("15")], "structuredContent": {"result": 15}}, "15"),
        ({"content": [], "structuredContent": {"result": 15}}, '{"result":15}'),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "c"}}]},
            "a://b:\nc",
        ),
        (
            {
                "content": [
                    {"type": "resource_link", "uri": "a://b", "name": "c", "description": "d"}
                ]
            },
            "[c](a://b): d",
        ),
        ({"content": [{"type": "hologram"}]}, "[A part of the result is of a kind that"),
    ],
    ids=[
        *("empty", "texts", "structured", "said-already", "beside", "wrapped", "wrapped-alone"),
        *("resource", "link", "unknown"),
    ],
)
def test_texts_are_joined_and_structured_content_is_said_once(result, said):
    output = output_of(result, "f")
    assert output.text.startswith(said)
    assert bool(said) == bool(output.text)
    assert output.files == ()


@pytest.mark.parametrize(
    ("block", "file"),
    [
        (
            {"type": "image", "mimeType": "image/png", "data": encoded(b"p")},
            ProducedFile("f-1.png", "image/png", b"p"),
        ),
        (
            {"type": "audio", "mimeType": "audio/x-strange", "data": encoded(b"a")},
            ProducedFile("f-1", "audio/x-strange", b"a"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a/b/c.pdf", "blob": encoded(b"d")}},
            ProducedFile("c.pdf", "application/octet-stream", b"d"),
        ),
        (
            {"type": "resource", "resource": {"uri": "x://h/../..", "blob": encoded(b"d")}},
            ProducedFile("..", "application/octet-stream", b"d"),
        ),
    ],
    ids=["image", "audio", "resource", "dots"],
)
def test_what_is_no_text_becomes_a_file(block, file):
    assert output_of({"content": [block]}, "f") == ToolOutput("", (file,))


def test_what_is_not_base64_is_said():
    block = {"type": "image", "mimeType": "image/png", "data": "no!"}
    assert output_of({"content": [block]}, "f").text == (
        "[f-1 (image/png) could not be read: it is not base64]"
    )
