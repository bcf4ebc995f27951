"""Documents that cannot be read say why, each in its own words, and harm nobody."""

import random
from pathlib import Path

import pytest

from libraries.parsing import Unreadable, parse
from libraries.parsing.child_pool import ChildPool
from libraries.parsing.confinement import ParserLimits
from libraries.tests.documents import (
    WORD_END,
    WORD_OPENING,
    WORD_RELATIONS,
    WORD_TYPES,
    bomb_pdf,
    docx_of,
    locked_pdf,
    pdf_of,
    pptx_of,
    raw_docx,
    scanned_pdf,
    xlsx_of,
    zip_of,
)


def refusal(content, name="document", mime_type=""):
    with pytest.raises(Unreadable) as caught:
        parse(content, name=name, mime_type=mime_type)
    return str(caught.value)


def own_memory_kilobytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


# -- Nothing in it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b" \r\n\t ", b"\0\0\0\0", "\ufeff \u3000".encode()])
def test_an_empty_document_says_so(content):
    assert refusal(content, "a.txt") == "The document is empty."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html><body><script>x</script></body></html>", "The page contains no text."),
        (docx_of([]), "The document contains no text."),
        (pptx_of([("", "", "")][:0]), "The presentation contains no text."),
        (xlsx_of({"Sheet": []}), "The workbook contains no values."),
        (pdf_of([]), "The PDF has no pages."),
        (b",,\n,,\n", "The document is empty."),
    ],
    ids=["html", "docx", "pptx", "xlsx", "pdf", "csv"],
)
def test_formats_without_text_say_so(content, said):
    assert refusal(content, "a.csv") == said


def test_a_scan_asks_for_text_recognition():
    assert "Run text recognition (OCR)" in refusal(scanned_pdf())


# -- Not readable by nature ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image"),
        (b"GIF89a" + b"\0" * 50, "image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image"),
        (b"\0\0\0\x20ftypheic", "image"),
        (b"ID3\4" + b"\0" * 50, "sound or video"),
        (b"RIFF\0\0\0\0WAVEfmt ", "sound or video"),
        (b"\0\0\0\x20ftypisom", "sound or video"),
        (b"OggS\0\2", "sound or video"),
        (b"\x7fELF\2\1\1", "executable"),
        (b"MZ\x90\0\3" + b"\0" * 100, "executable"),
        (b"\x1f\x8b\x08\0", "archive"),
        (zip_of({"a.txt": "text"}), "archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "with a password"),
        (zip_of({"mimetype": "x", "content.xml": "<a/>"}), "OpenDocument"),
        (zip_of({"META-INF/container.xml": "<a/>"}), "EPUB"),
        (rb"{\rtf1\ansi text}", "RTF"),
        (b"SQLite format 3\0" + b"\0" * 100, "database"),
        (random.Random(7).randbytes(5_000), "binary data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_document_is_named(content, said):
    assert said in refusal(content, "letter.docx", "text/plain")


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_a_locked_pdf_says_so(algorithm):
    assert "protected by a password" in refusal(locked_pdf("open sesame", algorithm))


# -- Damaged ---------------------------------------------------------------------------------------

WHOLE = {
    "pdf": pdf_of(["Some text."] * 3),
    "docx": docx_of([("Normal", "Some text.")]),
    "pptx": pptx_of([("Title", "Some text.", "")]),
    "xlsx": xlsx_of({"Sheet": [["Some text."]]}),
}


@pytest.mark.parametrize("kind", sorted(WHOLE))
def test_a_cut_off_file_is_damaged(kind):
    whole = WHOLE[kind]
    assert "damaged" in refusal(whole[: len(whole) // 3])


@pytest.mark.parametrize("kind", sorted(WHOLE))
def test_flipped_bytes_give_a_text_or_a_refusal(kind):
    """Whatever a parser makes of them, the next document is read."""
    chance = random.Random(11)
    for _ in range(15):
        broken = bytearray(WHOLE[kind])
        for _ in range(30):
            broken[chance.randrange(8, len(broken))] = chance.randrange(256)
        try:
            parse(bytes(broken), name="", mime_type="")
        except Unreadable as refused:
            assert str(refused)
    assert "Some text." in parse(WHOLE[kind], name="", mime_type="").text


def test_a_package_without_its_main_part_is_refused():
    assert refusal(zip_of({"word/document.xml": "<broken"}))
    assert refusal(zip_of({"xl/workbook.xml": "<workbook/>"}))
    assert refusal(zip_of({"ppt/presentation.xml": "<p/>"}))


# -- Bombs -----------------------------------------------------------------------------------------


def test_a_small_file_that_unpacks_to_gigabytes_is_not_opened():
    body = "<w:p><w:r><w:t>bomb</w:t></w:r></w:p>" * 3_000_000
    bomb = raw_docx(body)
    held = own_memory_kilobytes()
    assert len(bomb) < 1_000_000
    assert "unpacks to far more" in refusal(bomb)
    assert own_memory_kilobytes() - held < 20_000, "the parent unpacked something"


def test_a_document_over_the_memory_of_a_parser_is_too_big():
    """Packed less than a hundredfold, so that only the limit of the process stops it."""
    chance = random.Random(3)
    words = [f"{chance.randrange(10**9):x}" for _ in range(500)]
    runs = "".join(f"<w:p><w:r><w:t>{word}</w:t></w:r></w:p>" for word in words)
    bomb = raw_docx(runs * 1_000)
    held = own_memory_kilobytes()
    pool = ChildPool(ParserLimits(address_space_bytes=300_000_000))
    with pytest.raises(Unreadable, match="memory"):
        pool.parse(bomb, kind="PACKAGE")
    assert pool.parse(docx_of([("Normal", "Next.")]), kind="PACKAGE").text == "Next."
    assert own_memory_kilobytes() - held < 20_000
    pool.close()


@pytest.mark.parametrize("part", ["word/document.xml", "word/styles.xml", "_rels/.rels"])
def test_entities_are_refused(part):
    laughs = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    parts = {
        "[Content_Types].xml": WORD_TYPES,
        "_rels/.rels": WORD_RELATIONS,
        "word/document.xml": WORD_OPENING + WORD_END,
        "word/styles.xml": "<a/>",
    }
    parts[part] = f"<!-- {'far away ' * 20_000} -->{laughs}<a>&b;</a>"
    assert "declares XML entities" in refusal(zip_of(parts))


def test_entities_in_another_encoding_are_refused():
    hidden = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a []><a/>'.encode("utf-16")
    assert "declares XML entities" in refusal(zip_of({"word/document.xml": hidden}))


def test_entities_of_a_page_reach_no_file():
    page = b'<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html>here &x;</html>'
    assert "root" not in parse(page, name="", mime_type="").text


def test_a_pdf_that_unpacks_to_far_more_is_a_bomb_and_not_empty():
    assert "unpacks to far more" in refusal(bomb_pdf(200_000_000))


def test_a_pdf_of_too_many_pages_is_refused():
    assert "more than 2,000 pages" in refusal(pdf_of(["x"] * 2_001))


def test_a_workbook_of_too_many_rows_is_refused():
    assert "more than 200,000 rows" in refusal(xlsx_of({"S": ([1] for _ in range(200_001))}))


def test_a_text_over_the_limit_is_refused():
    assert "more than 20,000,000 characters" in refusal(b"a" * 20_000_001)
