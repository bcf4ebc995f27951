import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries.files.text import capped_text, decode_file

WORDS = "Straße, 东京，café: 1 €\r\n\tend\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_reads_the_encodings_people_use(encoding):
    assert decode_file(WORDS.encode(encoding)) == WORDS


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_reads_either_order_of_bytes(mark):
    assert decode_file(("\ufeff" + WORDS).encode(mark)) == WORDS


def test_reads_gbk():
    assert decode_file("中文文本，逗号。".encode("gbk")) == "中文文本，逗号。"


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
    assert decode_file(data) is None


def test_noise_is_no_text():
    assert decode_file(random.Random(7).randbytes(500)) is None


@given(st.text())
def test_what_is_written_in_utf8_is_read_or_refused(text):
    decoded = decode_file(text.encode())
    assert decoded is None or decoded == text.removeprefix("\ufeff")
    if text.isprintable() and not text.startswith("%PDF-"):
        assert decoded == text


@given(st.binary())
def test_what_is_read_can_be_stored(data):
    text = decode_file(data)
    assert text is None or ("\0" not in text and text.encode().decode() == text)


def test_cuts_what_no_message_would_hold(settings):
    settings.AMBER_MAX_MESSAGE_CHARS = 1_000
    assert capped_text("x" * 1_000) == "x" * 1_000
    cut = capped_text("x" * 1_001)
    assert cut == "x" * 1_000 + "\n[Cut: these are the first 1,000 of 1,001 characters.]"
