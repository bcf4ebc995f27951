"""Make documents of every format, good and bad ones, when they are needed."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from pypdf import PdfReader, PdfWriter

WORD_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/'
    'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override '
    'PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
WORD_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    'relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/'
    '2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
WORD_OPENING = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
)
WORD_END = "</w:body></w:document>"


def pdf_of(pages: Sequence[str]) -> bytes:
    """Each page shows its text in Helvetica, a line each; Latin-1 only."""
    return _pdf([_shown(page).encode("latin-1") for page in pages], font=_HELVETICA)


def chinese_pdf(text: str) -> bytes:
    """As printed from a browser: glyph numbers, and a table of what they mean."""
    codes = {char: number for number, char in enumerate(sorted(set(text)), start=1)}
    glyphs = "".join(f"{codes[char]:04x}" for char in text)
    table = "\n".join(f"<{code:04x}> <{ord(char):04x}>" for char, code in codes.items())
    meaning = f"begincmap\n1 begincodespacerange\n<0000> <ffff>\nendcodespacerange\n{len(codes)} beginbfchar\n{table}\nendbfchar\nendcmap"
    font = (
        b"<</Type/Font/Subtype/Type0/BaseFont/F/Encoding/Identity-H/ToUnicode 4 0 R/DescendantFonts"
        b"[<</Type/Font/Subtype/CIDFontType2/BaseFont/F/CIDSystemInfo<</Registry(Adobe)"
        b"/Ordering(Identity)/Supplement 0>>>>]>>"
    )
    page = f"BT /F1 12 Tf 72 700 Td <{glyphs}> Tj ET".encode()
    return _pdf([page], font=font, more=[_stream(meaning.encode())])


def scanned_pdf() -> bytes:
    """A page that is a picture."""
    image = b"q 200 0 0 200 72 500 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"
    return _pdf([image], font=_HELVETICA)


def locked_pdf(password: str, algorithm: str = "AES-256") -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_of(["Secret."]))))
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    return _saved(writer.write)


def bomb_pdf(unpacked_bytes: int) -> bytes:
    """One page whose content unpacks to so many bytes of drawing and a word."""
    packed = zlib.compress(b"BT (word) Tj ET\n" + b"0 0 m\n" * (unpacked_bytes // 6), 9)
    return _pdf([packed], font=_HELVETICA, filters=b"/Filter/FlateDecode")


_HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def _shown(text: str) -> str:
    lines = (
        line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        for line in text.split("\n")
    )
    return "BT /F1 12 Tf 14 TL 72 720 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"


def _stream(data: bytes, filters: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), filters, data)


def _pdf(
    contents: Sequence[bytes], *, font: bytes, more: Sequence[bytes] = (), filters: bytes = b""
) -> bytes:
    """Objects: 1 catalogue, 2 tree of pages, 3 font, `more`, then page and content in turn."""
    first = 4 + len(more)
    kids = b" ".join(b"%d 0 R" % (first + 2 * n) for n in range(len(contents)))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    objects += [b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(contents), kids), font, *more]
    for number, content in enumerate(contents):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>"
            b"/Contents %d 0 R>>" % (first + 2 * number + 1)
        )
        objects.append(_stream(content, filters))
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R>>\n" % (len(objects) + 1)
    return bytes(out) + b"startxref\n%d\n%%%%EOF\n" % table


def docx_of(paragraphs: Iterable[tuple[str, str]], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Paragraphs as (style, text)."""
    document = Document()
    for style, text in paragraphs:
        document.add_paragraph(text, style=style)
    if table:
        cells = document.add_table(len(table), len(table[0]))
        for row, values in enumerate(table):
            for column, value in enumerate(values):
                cells.cell(row, column).text = value
    return _saved(document.save)


def raw_docx(body: str, **parts: str) -> bytes:
    """A document of this XML between its body's tags."""
    return zip_of(
        {
            "[Content_Types].xml": WORD_TYPES,
            "_rels/.rels": WORD_RELATIONS,
            "word/document.xml": WORD_OPENING + body + WORD_END,
            **parts,
        }
    )


def pptx_of(slides: Iterable[tuple[str, str, str]]) -> bytes:
    """Slides as (title, text, notes); the first gets a table, too."""
    presentation = Presentation()
    for title, text, notes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
        if slide is presentation.slides[0]:
            inch = Inches(1)
            table = slide.shapes.add_table(2, 2, inch, inch, inch, inch).table
            for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
                table.cell(row, column).text = f"r{row}c{column}"
    return _saved(presentation.save)


def xlsx_of(sheets: Mapping[str, Iterable[Sequence[object]]]) -> bytes:
    workbook = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return _saved(workbook.save)


def zip_of(members: Mapping[str, str | bytes]) -> bytes:
    def write(stream: io.BytesIO) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as package:
            for name, data in members.items():
                package.writestr(name, data)

    return _saved(write)


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()
