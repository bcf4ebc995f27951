import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries.files.payload import Payload
from libraries.files.text import capped_text, read_text


def decoded_of(data: bytes) -> str | None:
    return read_text(Payload.of(data))


WORDS = "Straße, 东京，café: 1 €\r\n\tend\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_reads_the_encodings_people_use(encoding):
    assert decoded_of(WORDS.encode(encoding)) == WORDS


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_reads_either_order_of_bytes(mark):
    assert decoded_of(("\ufeff" + WORDS).encode(mark)) == WORDS


def test_reads_gbk():
    assert decoded_of("中文文本，逗号。".encode("gbk")) == "中文文本，逗号。"


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"text\0text",
        b"\x7fELF",
        b"\xff\xfe\xff",
        b"\xff\xfe\x00\xd8",
        b"\xff\xff\xff",
        b"\xef\xbb\xbf\xff",
        b"%PDF-1.4 in plain characters",
        "\ufefftext\0".encode("utf-16-le"),
    ],
)
def test_other_bytes_are_no_text(data):
    assert decoded_of(data) is None


def test_a_text_of_many_pieces_is_read_as_one(settings, monkeypatch):
    monkeypatch.setattr("libraries.files.payload.PIECE_BYTES", 3)
    settings.AMBER_MAX_MESSAGE_CHARS = 4
    assert decoded_of(("京" * 9).encode()) == (
        "京京京京\n[Cut: these are the first 4 of 9 characters.]"
    )
    assert decoded_of("京".encode() * 9 + b"\0") is None, "the end counts, too"


def test_noise_is_no_text():
    assert decoded_of(random.Random(7).randbytes(500)) is None


@given(st.text())
def test_what_is_written_in_utf8_is_read_or_refused(text):
    decoded = decoded_of(text.encode())
    assert decoded is None or decoded == text.removeprefix("\ufeff")
    if text.isprintable() and not text.startswith("%PDF-"):
        assert decoded == text


@given(st.binary())
def test_what_is_read_can_be_stored(data):
    text = decoded_of(data)
    assert text is None or ("\0" not in text and text.encode().decode() == text)


def test_cuts_what_no_message_would_hold(settings):
    settings.AMBER_MAX_MESSAGE_CHARS = 1_000
    assert capped_text("x" * 1_000) == "x" * 1_000
    cut = capped_text("x" * 1_001)
    assert cut == "x" * 1_000 + "\n[Cut: these are the first 1,000 of 1,001 characters.]"
