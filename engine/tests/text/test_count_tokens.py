"""Token counts: official, offline, and safe from hostile texts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken_ext.openai_public as official  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import UserMessage
from engine.text import tokens
from engine.text.tokens import (
    at_most_message_tokens,
    at_most_tokens,
    count_message,
    count_messages,
    count_text,
)

ROOT = Path(__file__).resolve().parents[3]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("", "o200k_base", 0),
        ("hello world", "o200k_base", 2),
        ("hello world", "cl100k_base", 2),
        ("你好，世界", "cl100k_base", 6),
        ("你好，世界", "o200k_base", 3),
    ],
)
def test_known_counts(text, encoding, expected):
    assert count_text(text, encoding) == expected


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_hash_and_pattern_are_those_of_the_installed_tiktoken(name, monkeypatch):
    asked = []

    def note(address, expected_hash):
        asked.append(expected_hash)
        return {}

    monkeypatch.setattr(official, "load_tiktoken_bpe", note)
    made = official.ENCODING_CONSTRUCTORS[name]()
    vocabulary = tokens._VOCABULARIES[name]
    assert (made["pat_str"], asked) == (vocabulary.pattern, [vocabulary.sha256])


def test_an_unknown_encoding_counts_as_the_default():
    assert count_text("你好，世界", "no_such") == count_text("你好，世界", "o200k_base")


def test_special_tokens_in_a_text_are_plain_text():
    assert count_text("<|endoftext|>") > 1


def test_a_damaged_vocabulary_is_refused(monkeypatch):
    wrong = tokens._VOCABULARIES["cl100k_base"]._replace(sha256="0" * 64)
    monkeypatch.setitem(tokens._VOCABULARIES, "cl100k_base", wrong)
    with pytest.raises(ValueError, match=r"cl100k_base\.tiktoken"):
        tokens._load.__wrapped__("cl100k_base")


def test_importing_loads_no_tiktoken_and_counting_needs_no_network_or_cache(tmp_path):
    script = (
        "import socket, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from engine.text.tokens import at_most_tokens, count_text\n"
        "at_most_tokens('x')\n"
        "assert 'tiktoken' not in sys.modules\n"
        "socket.socket = None\n"
        "assert count_text('hello world') == 2\n"
    )
    environment = {"TIKTOKEN_CACHE_DIR": "/nonexistent/cache"}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, " " * 2_000_000 + "x", "^" * 200_000, "啊" * 200_000, "\n" * 200_000, "\ud800"],
    ids=["letters", "spaces", "signs", "cjk", "newlines", "surrogate"],
)
def test_hostile_texts_are_counted_although_the_tokenizer_panics_on_some_as_a_whole(text):
    assert 0 < count_text(text) <= at_most_tokens(text)


def test_no_piece_is_longer_than_the_tokenizer_stands_and_none_is_lost():
    text = "a" * 150_000 + "\n" + "b" * 250_000
    pieces = list(tokens._pieces(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= tokens._PIECE_CHARS


def test_a_text_counted_in_pieces_counts_as_a_whole():
    line = "The quick brown fox jumps over the lazy dog.\n"
    assert count_text(line * 5_000) == 5_000 * count_text(line)


@settings(deadline=None, max_examples=200)
@given(st.text(), st.sampled_from(["o200k_base", "cl100k_base"]))
def test_the_bound_holds(text, encoding):
    assert count_text(text, encoding) <= at_most_tokens(text)


def test_a_message_costs_its_texts_its_images_and_its_calls():
    plain: Any = {"role": "user", "content": "hello world"}
    assert count_message(plain) == tokens.MESSAGE_TOKENS + 2
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_999}}
    seen: Any = {"role": "user", "content": [image, {"type": "text", "text": "hello world"}]}
    assert count_message(seen) == count_message(plain) + tokens.IMAGE_TOKENS
    assert count_message(seen, image_tokens=10) == count_message(plain) + 10
    calling: Any = {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}
    one = count_message(calling | {"tool_calls": [CALL]})
    assert count_message(calling) - one == one - tokens.MESSAGE_TOKENS > 6
    result: Any = {"role": "tool", "tool_call_id": "c1", "content": "2"}
    assert count_message(result) > tokens.MESSAGE_TOKENS + 1
    for message in (plain, seen, calling, result):
        assert count_message(message) <= at_most_message_tokens(message)


def test_messages_cost_their_sum_and_the_opening_of_the_reply():
    message: UserMessage = {"role": "user", "content": "hello"}
    assert count_messages([message] * 3) == 3 * count_message(message) + tokens.REPLY_TOKENS
