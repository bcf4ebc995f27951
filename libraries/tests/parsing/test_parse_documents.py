"""Each format gives its text, with headings, pages, tables and code."""

import datetime

import pytest

from libraries.parsing import parse
from libraries.tests.documents import (
    chinese_pdf,
    docx_of,
    locked_pdf,
    pdf_of,
    pptx_of,
    raw_docx,
    xlsx_of,
)

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def read(content, name="", mime_type=""):
    content = content.encode() if isinstance(content, str) else content
    return parse(content, name=name, mime_type=mime_type)


# -- Text ------------------------------------------------------------------------------------------


def test_text_comes_as_it_is_with_one_kind_of_line_end():
    parsed = read("One.\r\nTwo.\rThree. 你好\n", "a.txt")
    assert (parsed.text, parsed.pages) == ("One.\nTwo.\nThree. 你好\n", ())
    assert parsed.mime_type == "text/plain"


def test_what_cannot_be_stored_is_left_out():
    assert read("a\0b\x01c" + "d" * 1_000, "a.txt").text == "abc" + "d" * 1_000


def test_markdown_stays_markdown():
    text = "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    parsed = read(text, "a.md")
    assert (parsed.text, parsed.mime_type) == (text, "text/markdown")


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("src/main.py", "python"),
        ("A.JAVA", "java"),
        ("Dockerfile", "docker"),
        ("deep/path/Makefile", "make"),
        ("query.sql", "sql"),
        ("lib.rs", "rust"),
        ("page.vue", "vue"),
        ("config.yaml", "yaml"),
    ],
)
def test_source_code_stays_verbatim_and_names_its_language(name, language):
    code = "<html>\n\tif (a < b) { return '# no heading' }\n\n\n"
    parsed = read(code, name)
    assert (parsed.text, parsed.mime_type) == (code, f"text/x-{language}")


def test_a_hundred_thousand_lines_are_read():
    text = "".join(f"line {n}\n" for n in range(100_000))
    assert read(text, "long.log").text == text


# -- Tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_separated_values_become_a_table(delimiter):
    rows = [["name", "price"], ["bolt M8", "1"], ["", ""], ["nut", ""]]
    text = "\n".join(delimiter.join(row) for row in rows)
    assert read(text, "a.csv").text == ("| name | price |\n| --- | --- |\n| bolt M8 | 1 |\n| nut |")


def test_cells_with_line_ends_and_bars_stay_one_cell():
    assert read('a,b\n"x\ny","p|q"\n', "a.csv").text.splitlines()[-1] == r"| x y | p\|q |"


def test_values_that_are_no_table_stay_text():
    text = 'a,b\n"' + "never closed " * 100_000
    assert read(text, "a.csv").text == text


# -- HTML ------------------------------------------------------------------------------------------

PAGE = """<!DOCTYPE html><html><head><title>Name</title><style>p{}</style></head><body>
<nav>Menu</nav><script>alert(1)</script>
<h1>Pumps &amp; valves</h1><p>First <b>bold</b> and <a href="http://x">a link</a>,
on two lines.<br>After a break.</p>
<h2>Parts</h2><ul><li>one<li>two<ul><li>inner</li></ul></ul>
<table><tr><th>Part</th><th>No</th></tr><tr><td>Pump</td><td>P|102</td></tr></table>
<pre><code class="language-python">def f():

    return "```"
</code></pre>
<p hidden>not shown</p><p style="display: none">nor this</p>
<p>这是第一行，
没有空格。</p></body></html>"""


def test_html_becomes_markdown():
    parsed = read(PAGE, "page.html")
    assert parsed.mime_type == "text/html"
    assert parsed.text == (
        "# Pumps & valves\n\n"
        "First bold and a link, on two lines.\nAfter a break.\n\n"
        "## Parts\n\n"
        "- one\n- two\n  - inner\n\n"
        "| Part | No |\n| --- | --- |\n| Pump | P\\|102 |\n\n"
        '````python\ndef f():\n\n    return "```"\n````\n\n'
        "这是第一行，没有空格。"
    )


def test_the_main_part_of_a_page_is_read_and_its_title_kept():
    page = (
        "<html><title>Name</title><body><div>Around</div><main><p>Inside</p></main></body></html>"
    )
    assert read(page, "x").text == "# Name\n\nInside"


def test_html_in_an_old_encoding_is_read_as_it_says():
    page = '<html><meta charset="gbk"><body><p>健康</p></body></html>'
    assert read(page.encode("gbk")).text == "健康"


def test_a_deeply_nested_page_is_read():
    page = "<html><body>" + "<div>" * 1_500 + "deep" + "</div>" * 1_500 + "</body></html>"
    assert read(page).text == "deep"


def test_a_list_of_many_items_is_read():
    page = "<html><body><ul>" + "<li>item</li>" * 50_000 + "</ul></body></html>"
    assert read(page).text == "\n".join(["- item"] * 50_000)


# -- PDF -------------------------------------------------------------------------------------------


def test_a_pdf_is_read_page_by_page():
    parsed = read(pdf_of(["First page.\nIts second line.", "", "Third page."]))
    assert parsed.mime_type == "application/pdf"
    first, second, third = parsed.pages
    assert parsed.text[first:second].split("\n") == ["First page.", "Its second line.", "", ""]
    assert parsed.text[second:third].strip() == ""
    assert parsed.text[third:] == "Third page."


def test_a_chinese_pdf_is_read():
    assert read(chinese_pdf("健康检查：每年一次。")).text == "健康检查：每年一次。"


def test_a_pdf_that_only_forbids_printing_is_read():
    assert read(locked_pdf("")).text == "Secret."


# -- Office ----------------------------------------------------------------------------------------


def test_a_word_document_becomes_markdown():
    parsed = read(
        docx_of(
            [
                ("Title", "Manual"),
                ("Heading 1", "安装"),
                ("Normal", "Plug it in."),
                ("List Bullet", "one"),
                ("List Bullet", "two"),
                ("Heading 2", "Parts"),
            ],
            table=[["Part", "No"], ["Pump", "P-102"]],
        )
    )
    assert parsed.mime_type == WORD
    assert parsed.text == (
        "# Manual\n\n# 安装\n\nPlug it in.\n\n- one\n- two\n\n## Parts\n\n"
        "| Part | No |\n| --- | --- |\n| Pump | P-102 |"
    )


def test_tracked_changes_are_read_as_accepted():
    body = (
        "<w:p><w:r><w:t>kept </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>added</w:t></w:r></w:ins></w:p>"
    )
    assert read(raw_docx(body)).text == "kept added"


def test_merged_cells_keep_their_columns():
    cell = "<w:tc><w:tcPr>{}</w:tcPr><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    wide, plain = cell.format('<w:gridSpan w:val="2"/>', "wide"), cell.format("", "x")
    body = f"<w:tbl><w:tr>{wide}{plain}</w:tr><w:tr>{plain * 3}</w:tr></w:tbl>"
    assert read(raw_docx(body)).text.splitlines()[0] == "| wide |  | x |"


def test_slides_are_pages():
    parsed = read(pptx_of([("Plan", "First\nSecond", "Say hello"), ("结束", "Thanks", "")]))
    assert parsed.mime_type == SLIDES
    first, second = parsed.pages
    assert parsed.text[first:second] == (
        "# Plan\n\nFirst\nSecond\n\n| r0c0 | r0c1 |\n| --- | --- |\n| r1c0 | r1c1 |\n\n"
        "Notes: Say hello\n\n"
    )
    assert parsed.text[second:] == "# 结束\n\nThanks"


def test_sheets_are_tables_under_their_names():
    rows: list[list[object]] = [
        ["item", "count"],
        ["泵", 3.0],
        [],
        ["on", True],
        ["at", datetime.datetime(2024, 1, 2)],  # noqa: DTZ001
    ]
    parsed = read(xlsx_of({"Stock": rows, "Empty": [], "More": [[0.5]]}))
    assert parsed.mime_type == SHEETS
    assert parsed.text == (
        "# Stock\n\n| item | count |\n| --- | --- |\n| 泵 | 3 |\n| on | TRUE |\n| at | 2024-01-02 |"
        "\n\n# More\n\n| 0.5 |\n| --- |"
    )


# -- What its sender says counts for less than what it is ------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.docx", "a.png", "a", "a.py"])
def test_a_pdf_is_a_pdf_whatever_its_name(name):
    assert read(pdf_of(["Text."]), name).mime_type == "application/pdf"


@pytest.mark.parametrize("name", ["a.pdf", "a.xlsx", "a.zip", ""])
def test_a_text_is_a_text_whatever_its_name(name):
    assert read("Only text.", name) == read("Only text.", "a.txt")


def test_a_page_with_another_name_is_a_page():
    assert read("<html><body>Hello</body></html>", "a.txt").text == "Hello"


def test_without_a_telling_name_the_senders_type_counts():
    assert read("a,b\n1,2", "export", "text/csv").mime_type == "text/csv"
    assert read("<p>x</p>", "page", "text/html; charset=utf-8").text == "x"
