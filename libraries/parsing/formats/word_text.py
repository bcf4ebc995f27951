"""Convert Word documents to Markdown: headings by style, lists, tables, footnotes at the end.

Text that was deleted or moved away under tracked changes is left out; page headers and footers too.
python-docx opens the package; its elements are walked here, since its own objects look every
paragraph's style up anew (100,000 paragraphs would take minutes).
"""

import io
import re
from collections.abc import Iterator
from typing import Any, Final

from docx import Document
from docx.exceptions import PythonDocxError
from docx.opc.exceptions import OpcError
from docx.oxml import parse_xml
from docx.oxml.ns import qn

from libraries.parsing.formats.damage import damage_means
from libraries.parsing.formats.tables import table_lines
from libraries.parsing.result import Unreadable

DAMAGED: Final = "The document is damaged or incomplete and cannot be read."
EMPTY: Final = "The document contains no text."

_PARAGRAPH: Final = qn("w:p")
_TABLE: Final = qn("w:tbl")
_PROPERTIES: Final = qn("w:pPr")
_TEXTS: Final = {qn("w:t"), qn("m:t")}
_BREAKS: Final = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_NOTES: Final = {qn("w:footnoteReference"), qn("w:endnoteReference")}
_COMPATIBILITY: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# Deleted and moved text, properties (their tabs are settings), and the same drawing a second time.
_SKIPPED: Final = {
    *(qn(name) for name in ("w:del", "w:moveFrom", "w:pPr", "w:rPr", "w:sectPr")),
    f"{_COMPATIBILITY}Fallback",
}
_HEADING: Final = re.compile(r"heading (\d)$")
_MOST_STYLE_STEPS: Final = 20


def markdown_of_word(content: bytes) -> str:
    """Convert a document. Raises Unreadable."""
    with damage_means(DAMAGED, PythonDocxError, OpcError):
        document = Document(io.BytesIO(content))
        styles = _Styles(document.styles.element)
        blocks = [*_blocks(document.element.body, styles), *_notes(document.part)]
    text = "\n\n".join(block for block in blocks if block.strip())
    if not text:
        raise Unreadable(EMPTY)
    return text


class _Styles:
    """Knows what the styles of paragraphs mean. Word's own names are English in every language."""

    def __init__(self, element: Any) -> None:
        self._levels: dict[str, int] = {}
        self._lists: set[str] = set()
        self._parents: dict[str, str] = {}
        for style in element.iter(qn("w:style")):
            self._read(style)

    def level(self, paragraph: Any) -> int:
        """Return the level of a heading, 1 to 6; 0 for text."""
        key = next((key for key in self._ancestry(paragraph) if key in self._levels), "")
        return min(self._levels.get(key, 0), 6)

    def is_list(self, paragraph: Any) -> bool:
        return any(key in self._lists for key in self._ancestry(paragraph))

    def _read(self, style: Any) -> None:
        key = style.get(qn("w:styleId"), "")
        name = _value(style, "w:name").lower()
        outline = _value(style.find(_PROPERTIES), "w:outlineLvl")
        self._parents[key] = _value(style, "w:basedOn")
        if found := _HEADING.match(name):
            self._levels[key] = int(found[1])
        elif name == "title":
            self._levels[key] = 1
        elif outline.isdecimal() and int(outline) < 9:
            self._levels[key] = int(outline) + 1
        elif name.startswith("list "):
            self._lists.add(key)

    def _ancestry(self, paragraph: Any) -> Iterator[str]:
        """Yield the paragraph's style and those it is based on.

        Bounded: the styles of a broken file may be based on one another in a circle.
        """
        key = _value(paragraph.find(_PROPERTIES), "w:pStyle")
        for _ in range(_MOST_STYLE_STEPS):
            if not key:
                return
            yield key
            key = self._parents.get(key, "")


def _blocks(parent: Any, styles: _Styles) -> Iterator[str]:
    """Yield the blocks; the items of a list stay together as one block."""
    items: list[str] = []
    for element in _block_elements(parent):
        if element.tag == _PARAGRAPH and (item := _item(element, styles)) is not None:
            items.append(item)
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield _table(element) if element.tag == _TABLE else _paragraph(element, styles)
    if items:
        yield "\n".join(items)


def _block_elements(parent: Any) -> Iterator[Any]:
    """Yield paragraphs and tables in their order; content controls are opened."""
    for element in parent:
        if element.tag in (_PARAGRAPH, _TABLE):
            yield element
        elif element.tag == qn("w:sdt"):
            yield from _block_elements(element.find(qn("w:sdtContent")) or ())
        elif element.tag in (qn("w:ins"), qn("w:moveTo"), qn("w:customXml")):
            yield from _block_elements(element)


def _paragraph(element: Any, styles: _Styles) -> str:
    text = _text(element).strip()
    level = styles.level(element)
    return f"{'#' * level} {' '.join(text.split())}" if level and text else text


def _item(element: Any, styles: _Styles) -> str | None:
    """Return a list item's line; None outside lists. A heading with a number is a heading."""
    numbering = element.find(f"{_PROPERTIES}/{qn('w:numPr')}")
    if styles.level(element) or (numbering is None and not styles.is_list(element)):
        return None
    depth = _value(numbering, "w:ilvl")
    text = " ".join(_text(element).split())
    return f"{'  ' * min(int(depth or 0), 8)}- {text}" if text else None


def _table(element: Any) -> str:
    rows = [list(_cells(row)) for row in element.iter(qn("w:tr"))]
    if len(rows) == 1 and len(rows[0]) == 1:  # a frame around text
        return rows[0][0]
    return "\n".join(table_lines(rows))


def _cells(row: Any) -> Iterator[str]:
    """Yield the cells. One over several columns is followed by empty ones; one merged upwards is
    empty.
    """
    for cell in row.iter(qn("w:tc")):
        properties = f"{qn('w:tcPr')}/"
        merged = cell.find(properties + qn("w:vMerge"))
        is_continued = merged is not None and merged.get(qn("w:val")) != "restart"
        yield "" if is_continued else "\n".join(_text(each) for each in cell.iter(_PARAGRAPH))
        span = cell.find(properties + qn("w:gridSpan"))
        width = 1 if span is None else min(int(span.get(qn("w:val"), 1)), 100)
        yield from [""] * (width - 1)


def _text(paragraph: Any) -> str:
    parts: list[str] = []
    waiting = list(reversed(paragraph))
    while waiting:
        element = waiting.pop()
        if element.tag in _TEXTS:
            parts.append(element.text or "")
        elif element.tag in _BREAKS:
            parts.append(_BREAKS[element.tag])
        elif element.tag in _NOTES:
            parts.append(f"[^{element.get(qn('w:id'), '')}]")
        elif element.tag not in _SKIPPED:
            if element.tag == _PARAGRAPH:  # in a text box
                parts.append("\n")
            waiting.extend(reversed(element))
    return "".join(parts)


def _notes(part: Any) -> Iterator[str]:
    for relation in part.rels.values():
        if relation.reltype.endswith(("/footnotes", "/endnotes")):
            for note in parse_xml(relation.target_part.blob):
                text = " ".join(_text(each).strip() for each in note.iter(_PARAGRAPH)).strip()
                if text and note.get(qn("w:type")) is None:  # others draw the line above notes
                    yield f"[^{note.get(qn('w:id'), '')}]: {text}"


def _value(element: Any, child: str) -> str:
    found = None if element is None else element.find(qn(child))
    return "" if found is None else str(found.get(qn("w:val"), ""))
