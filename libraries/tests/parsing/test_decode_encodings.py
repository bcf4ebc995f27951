"""Texts from before Unicode are read, short ones too, and bytes that are no text are not."""

import random

import pytest

from libraries.parsing import Unreadable, parse
from libraries.parsing.encodings import decode_text

CHINESE = "健康检查：每年一次。请在今年三月之前到公司医务室登记，并带上您的身份证。"
TRADITIONAL = "臺灣大學圖書館提供各種電子資源。讀者可以在網上查詢。"
JAPANESE = "東京都は日本の首都であり、世界最大級の都市の一つです。これはテストです。"
KOREAN = "대한민국의 수도는 서울이며, 인구가 매우 많은 도시이다."
FRENCH = "L'été dernier, nous avons mangé à la plage ; c'était très agréable."
MIXED = "POWER6 是 IBM 的处理器 (see page 4)"

SAMPLES = [
    *((CHINESE, encoding) for encoding in ("gbk", "gb18030", "gb2312")),
    *((TRADITIONAL, encoding) for encoding in ("big5", "big5hkscs")),
    *((JAPANESE, encoding) for encoding in ("shift_jis", "cp932", "euc_jp")),
    (KOREAN, "euc_kr"),
    (FRENCH, "cp1252"),
    (FRENCH, "latin-1"),
    ("Über die Straße läuft ein größerer Bär.", "latin-1"),
    ("El niño pequeño comió mañana en casa.", "latin-1"),
    ("Zażółć gęślą jaźń. Proszę przeczytać.", "cp1250"),
    ("Москва является столицей России.", "cp1251"),
    ("Москва является столицей России.", "koi8_r"),
    ("Η Αθήνα είναι η πρωτεύουσα της Ελλάδας", "cp1253"),
    ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "cp874"),
    (MIXED, "gbk"),
]


@pytest.mark.parametrize(("text", "encoding"), SAMPLES, ids=lambda value: value[:8])
def test_legacy_encodings_are_recognised(text, encoding):
    assert decode_text(text.encode(encoding)) == text


@pytest.mark.parametrize("length", [3, 5, 8, 13])
def test_a_few_chinese_characters_are_enough(length):
    for start in range(len(CHINESE) - length):
        part = CHINESE[start : start + length]
        assert decode_text(part.encode("gbk")) == part


def test_a_long_text_is_recognised_by_its_first_foreign_characters():
    text = "plain ASCII\n" * 5_000 + CHINESE
    assert decode_text(text.encode("gbk")) == text


def test_a_chinese_text_with_a_broken_character_is_still_read():
    broken = (CHINESE * 20).encode("gbk")[:-1]
    assert decode_text(broken).startswith(CHINESE)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
@pytest.mark.parametrize("text", [MIXED, "Plain words.\n"], ids=["mixed", "ascii"])
def test_unicode_is_read_with_and_without_its_mark(text, encoding):
    assert decode_text(text.encode(encoding)) == text


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text",
    [
        "第一章 每天喝八杯水。\n第二章 最好在2024年。",
        "一二三 最好",
        "Привет мир\n",
        "안녕하세요 세계",
        "a\n",
    ],
    ids=["chinese", "one", "russian", "korean", "a letter"],
)
def test_utf_16_without_a_mark_is_told_by_what_its_characters_are(text, order):
    assert decode_text(text.encode(order)) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_mark_is_no_part_of_the_text(encoding):
    assert parse(("\ufeff" + CHINESE).encode(encoding), name="a.txt", mime_type="").text == CHINESE


def test_what_the_sender_names_is_tried_first():
    text = "Київ"
    assert decode_text(text.encode("koi8_u"), charset="koi8-u") == text


def test_a_named_encoding_that_does_not_fit_is_not_believed():
    assert decode_text(CHINESE.encode(), charset="gbk") == CHINESE
    assert decode_text(CHINESE.encode("gbk"), charset="zlib") == CHINESE


def test_a_utf8_text_with_a_broken_byte_keeps_the_rest():
    content = CHINESE.encode()
    assert decode_text(content[:-1]).startswith(CHINESE[:-1])


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 20,
        random.Random(4).randbytes(5_000),
        b"\0\1\2\3" * 500,
    ],
    ids=["all_bytes", "random", "controls"],
)
def test_what_is_no_known_text_is_refused(content):
    with pytest.raises(Unreadable):
        decode_text(content)
