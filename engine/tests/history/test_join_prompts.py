"""The texts of the protocol between Amber and a model."""

import json

from engine.history import prompt
from engine.tests.history.cases import CASES


def test_the_constant_texts_are_those_of_the_cases():
    head = json.loads(CASES.read_text(encoding="utf-8"))
    assert head["library_prompt"] == prompt.LIBRARY_PROMPT
    assert head["library_empty_prompt"] == prompt.LIBRARY_EMPTY_PROMPT
    assert head["tool_failed"] == prompt.TOOL_FAILED


def test_empty_texts_are_skipped_and_others_kept_as_they_are():
    assert prompt.join_texts(["", " a ", " \n\t", "b\n"]) == " a \nb\n"
    assert prompt.join_texts([]) == ""


def test_knowledge_says_when_nothing_was_found():
    assert prompt.knowledge_prompt("[1] a") == "Relevant passages from the library:\n[1] a"
    assert prompt.knowledge_prompt(" \n") == prompt.LIBRARY_EMPTY_PROMPT


def test_a_passage_is_headed_by_its_path_or_else_its_name():
    named = prompt.render_passage(2, name="a.md", path="docs/a.md", content="text")
    assert named == "[2] docs/a.md\ntext"
    assert prompt.render_passage(1, name="a.md", path=None, content="x") == "[1] a.md\nx"
    assert prompt.render_passage(1, name="a.md", path="", content="x") == "[1] a.md\nx"


def test_the_ask_prompt_has_a_section_each_for_turns_passages_and_question():
    asked = prompt.ask_prompt(
        "Why?",
        passages=[("a.md", "one"), (None, "two")],
        turns=[("Hi", "Hello"), ("What?", "That.")],
    )
    assert asked == (
        "<conversation>\n1. User: Hi\nYou: Hello\n2. User: What?\nYou: That.\n</conversation>\n"
        "<context>\n1. File Path: a.md\nContent: one\n2. File Path: unknown\nContent: two\n"
        "</context>\n"
        "<question>\nWhy?\n</question>"
    )


def test_sections_without_content_are_left_out():
    assert prompt.ask_prompt("Why?") == "<question>\nWhy?\n</question>"
    assert prompt.ask_prompt(" ", passages=[(None, "x")]).startswith("<context>\n1. File Path: unk")
