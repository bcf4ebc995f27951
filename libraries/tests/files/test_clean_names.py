import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries.files.names import MAX_NAME_CHARS, clean_name, name_of_url


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("notes.txt", "notes.txt"),
        ("/etc/passwd", "passwd"),
        ("../../x", "x"),
        ("C:\\Users\\a\\b.txt", "b.txt"),
        ("folder/", "folder"),
        (".env", ".env"),
        ("..", "file"),
        (".", "file"),
        ("", "file"),
        ("/", "file"),
        ("\0\x01\x7f", "file"),
        ("  a \n\t b\u3000c.txt ", "a b c.txt"),
        ("a\0b\x1b[31m.txt", "ab[31m.txt"),
        ("safe\u202egpj.exe", "safegpj.exe"),
        ("lone\ud800.txt", "lone.txt"),
        ("报告.pdf", "报告.pdf"),
        ("x" * 300 + ".tar", "x" * 251 + ".tar"),
        ("x." + "y" * 300, "x." + "y" * 253),
    ],
)
def test_keeps_what_is_a_name(given, kept):
    assert clean_name(given) == kept


@given(st.text())
def test_is_always_a_printable_name_of_one_part(given):
    name = clean_name(given)
    assert 0 < len(name) <= MAX_NAME_CHARS
    assert name.isprintable()
    assert not {"/", "\\"} & set(name)
    assert name not in (".", "..")
    assert clean_name(name) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/a/b.png?x=/c.txt#d", "b.png"),
        ("https://example.com/%E6%8A%A5%E5%91%8A.pdf", "报告.pdf"),
        ("https://example.com/a/%2e%2e%2fetc%2fpasswd", "passwd"),
        ("https://example.com/a%00b", "ab"),
        ("https://example.com/folder/", "example.com"),
        ("https://example.com", "example.com"),
        ("https://example.com/..", "file"),
    ],
)
def test_takes_the_last_part_of_an_address(url, name):
    assert name_of_url(url) == name
