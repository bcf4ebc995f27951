"""Convert slides to pages: the title as heading, then text, tables and speaker notes."""

import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pptx import Presentation
from pptx.exc import PythonPptxError
from pptx.slide import Slide

from libraries.parsing.formats.damage import damage_means
from libraries.parsing.formats.tables import table_lines
from libraries.parsing.result import Unreadable

MAX_SLIDES: Final = 2_000

DAMAGED: Final = "The presentation is damaged or incomplete and cannot be read."
EMPTY: Final = "The presentation contains no text."
TOO_MANY_SLIDES: Final = f"The presentation has more than {MAX_SLIDES:,} slides. Split it up."


def pages_of_slides(content: bytes) -> Iterator[str]:
    """Yield the Markdown of each slide. Raises Unreadable."""
    with damage_means(DAMAGED, PythonPptxError):
        slides = Presentation(io.BytesIO(content)).slides
    if len(slides) > MAX_SLIDES:
        raise Unreadable(TOO_MANY_SLIDES)
    has_text = False
    for slide in slides:
        with damage_means(DAMAGED, PythonPptxError):
            text = _slide_markdown(slide)
        has_text = has_text or bool(text)
        yield text
    if not has_text:
        raise Unreadable(EMPTY)


def _slide_markdown(slide: Slide) -> str:
    title = slide.shapes.title
    blocks: list[str] = []
    if title is not None and title.text_frame.text.strip():
        blocks.append(f"# {' '.join(title.text_frame.text.split())}")
    others = (each for each in slide.shapes if title is None or each.shape_id != title.shape_id)
    blocks += _shape_blocks(others)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            blocks.append(f"Notes: {notes}")
    return "\n\n".join(blocks)


def _shape_blocks(shapes: Iterable[Any]) -> Iterator[str]:
    """Yield the blocks in the order of the file, which is from back to front; groups are opened."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shape_blocks(shape.shapes)
        elif getattr(shape, "has_table", False):
            rows = ([cell.text for cell in row.cells] for row in shape.table.rows)
            yield "\n".join(table_lines(rows))
        elif shape.has_text_frame and shape.text_frame.text.strip():
            yield "\n".join(_paragraph_lines(shape.text_frame.paragraphs))


def _paragraph_lines(paragraphs: Iterable[Any]) -> Iterator[str]:
    for paragraph in paragraphs:
        # A vertical tab is a line break inside a paragraph.
        text = paragraph.text.replace("\v", "\n").strip()
        if text:
            yield f"{'  ' * (paragraph.level - 1)}- {text}" if paragraph.level else text
