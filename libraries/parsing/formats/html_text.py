"""Convert HTML to Markdown: headings, paragraphs, lists, tables and code; no links or pictures.

If a page marks its main part, only that part is read. What a browser would not show (scripts,
`hidden`, `display: none`) is left out.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from lxml import html

from libraries.parsing.formats.tables import table_lines
from libraries.parsing.result import Unreadable

EMPTY: Final = "The page contains no text."
TOO_DEEP: Final = "The page is nested too deeply to be read."

_SKIPPED: Final = frozenset(
    {
        *("script", "style", "noscript", "template", "head", "link", "meta", "nav", "rp", "rt"),
        *("iframe", "object", "embed", "svg", "math", "canvas", "audio", "video", "picture"),
        *("select", "button", "input", "textarea"),
    }
)
_BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details"),
        *("dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
        *("header", "hgroup", "hr", "html", "legend", "main", "ol", "p", "section", "summary"),
        *("ul", "table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"),
    }
)
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_MOST_DEPTH: Final = 200
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]{1,20})")
_SPACE: Final = re.compile(r"[ \t\r\n\f\xa0]+")
_WIDE: Final = "[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]"
# Chinese and Japanese have no spaces; a line end in the source is none.
_WIDE_LINE_END: Final = re.compile(rf"(?<={_WIDE})[ \t]*\r?\n\s*(?={_WIDE})")


def markdown_of_html(content: bytes) -> str:
    """Convert a page. `content` is UTF-8, whatever it declares. Raises Unreadable."""
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True)
    page = html.document_fromstring(content, parser=parser, ensure_head_body=True)
    if any("xcessive depth" in entry.message for entry in parser.error_log):
        raise Unreadable(TOO_DEEP)  # what is further in is not there
    writer = _Writer()
    root = _main_part(page)
    title = " ".join((page.findtext(".//title") or "").split())
    if title and root.find(".//h1") is None:
        writer.add_block(f"# {title}")
    writer.walk(root)
    writer.end_block()
    text = writer.text()
    if not text:
        raise Unreadable(EMPTY)
    return text


def _main_part(page: Any) -> Any:
    """Return the only `<main>` or `<article>`, if it holds text; else the whole page."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = page.findall(path)
        if len(found) == 1 and found[0].text_content().strip():
            return found[0]
    return page


class _Writer:
    """Collects blocks. Inline text gathers until a block ends; items of a list are one block."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._inline: list[str] = []
        self._is_in_list = False
        self._list_depth = 0
        self._prefix = ""

    def walk(self, element: Any, depth: int = 0) -> None:
        """Write `element` and what is in it; its tail is the caller's."""
        if not isinstance(element.tag, str) or element.tag in _SKIPPED or _is_hidden(element):
            return
        if depth > _MOST_DEPTH:
            self._inline.append(element.text_content())
        elif element.tag in _HEADINGS:
            self._heading(element)
        elif element.tag == "pre":
            self._code(element)
        elif element.tag == "table" and _is_data(element):
            self.end_block()
            self.add_block("\n".join(table_lines(_rows(element))))
        elif element.tag == "br":
            self._inline.append("\v")
        elif element.tag == "li":
            self._item(element, depth)
        elif element.tag in _BLOCKS:
            self.end_block()
            self._content(element, depth)
            self.end_block()
        elif element.tag == "code":
            self._inline.append(f"`{' '.join(element.text_content().split())}`")
        else:
            self._content(element, depth)

    def end_block(self) -> None:
        text = inline_text("".join(self._inline))
        self._inline = []
        if text and self._prefix:
            self._parts += ("\n" if self._is_in_list else "\n\n", self._prefix + text)
            self._is_in_list = True
            self._prefix = " " * len(self._prefix)
        else:
            self.add_block(text)

    def add_block(self, block: str) -> None:
        if block:
            self._parts += ("\n\n", block)
            self._is_in_list = False

    def text(self) -> str:
        return "".join(self._parts[1:])

    def _content(self, element: Any, depth: int) -> None:
        self._inline.append(element.text or "")
        for child in element:
            self.walk(child, depth + 1)
            self._inline.append(child.tail or "")

    def _item(self, element: Any, depth: int) -> None:
        self.end_block()
        outer, self._prefix = self._prefix, "  " * self._list_depth + "- "
        self._list_depth += 1
        self._content(element, depth)
        self.end_block()
        self._list_depth -= 1
        self._prefix = outer

    def _heading(self, element: Any) -> None:
        self.end_block()
        text = inline_text(element.text_content()).replace("\n", " ")
        if text:
            self.add_block(f"{'#' * _HEADINGS[element.tag]} {text}")

    def _code(self, element: Any) -> None:
        self.end_block()
        for line_break in element.iter("br"):
            line_break.tail = "\n" + (line_break.tail or "")
        code = element.text_content().strip("\n")
        if code.strip():
            longest = max((len(run) for run in re.findall("`{3,}", code)), default=2)
            fence = "`" * (longest + 1)
            self.add_block(f"{fence}{_language(element)}\n{code}\n{fence}")


def inline_text(text: str) -> str:
    """Collapse white space as a browser does; a vertical tab stands for a line break."""
    text = _SPACE.sub(" ", _WIDE_LINE_END.sub("", text))
    return "\n".join(line.strip() for line in text.split("\v")).strip()


def _is_hidden(element: Any) -> bool:
    return "hidden" in element.attrib or bool(_HIDDEN.search(element.get("style", "")))


def _is_data(table: Any) -> bool:
    """Return whether a table holds data, and does not only arrange a page.

    Then it has no tables in it, and some row has more than one cell.
    """
    if table.find(".//table") is not None:
        return False
    return any(len(row.findall("td")) + len(row.findall("th")) > 1 for row in table.iter("tr"))


def _rows(table: Any) -> Iterator[list[str]]:
    for row in table.iter("tr"):
        yield [inline_text(cell.text_content()) for cell in row if cell.tag in ("td", "th")]


def _language(element: Any) -> str:
    for each in element.iter("pre", "code"):
        if found := _LANGUAGE.search(each.get("class", "")):
            return found[1]
    return ""
