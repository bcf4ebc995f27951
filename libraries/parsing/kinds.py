"""Decide what a document is: by its first bytes, then its name, then what its sender called it.

Refuses known formats that cannot be read, each with its own words. What has no known first bytes
and decodes as text is text; tables of suffixes and names say which is source code, in which language.
"""

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from libraries.parsing.result import Unreadable

_ENDINGS: Final = {
    "ada": ".adb .ads",
    "asm": ".asm .s",
    "astro": ".astro",
    "bat": ".bat .cmd",
    "c": ".c .h",
    "clojure": ".clj .cljs .cljc .edn",
    "cmake": ".cmake cmakelists.txt",
    "cobol": ".cob .cbl",
    "cpp": ".cc .cpp .cxx .hh .hpp .hxx .ino .ipp",
    "csharp": ".cs .csx",
    "css": ".css .scss .sass .less",
    "cuda": ".cu .cuh",
    "d": ".d",
    "dart": ".dart",
    "diff": ".diff .patch",
    "docker": ".dockerfile dockerfile containerfile",
    "elixir": ".ex .exs",
    "elm": ".elm",
    "erlang": ".erl .hrl",
    "fortran": ".f .f90 .f95 .for",
    "fsharp": ".fs .fsi .fsx",
    "glsl": ".glsl .frag .vert .hlsl .wgsl",
    "go": ".go go.mod go.sum",
    "gradle": ".gradle",
    "graphql": ".graphql .gql",
    "groovy": ".groovy jenkinsfile",
    "haskell": ".hs .lhs",
    "hcl": ".tf .tfvars .hcl",
    "ini": ".ini .cfg .conf .properties .env .editorconfig .gitignore .dockerignore",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "json": ".json .jsonl .ndjson .json5 .geojson .ipynb",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lisp": ".lisp .el .scm .rkt",
    "lua": ".lua",
    "make": ".mk makefile gnumakefile",
    "matlab": ".matlab",
    "nix": ".nix",
    "objectivec": ".m .mm",
    "ocaml": ".ml .mli",
    "pascal": ".pas .pp .dpr",
    "perl": ".pl .pm",
    "php": ".php .phtml",
    "powershell": ".ps1 .psm1",
    "prisma": ".prisma",
    "protobuf": ".proto",
    "python": ".py .pyi .pyx .pyw",
    "r": ".r",
    "ruby": ".rb .rake gemfile rakefile",
    "rust": ".rs",
    "scala": ".scala .sc",
    "sh": ".sh .bash .zsh .fish .ksh",
    "solidity": ".sol",
    "sql": ".sql",
    "svelte": ".svelte",
    "swift": ".swift",
    "terraform": ".terraform",
    "toml": ".toml",
    "typescript": ".ts .tsx .mts .cts",
    "vb": ".vb .vbs .bas",
    "verilog": ".v .sv .svh",
    "vhdl": ".vhd .vhdl",
    "vim": ".vim",
    "vue": ".vue",
    "xml": ".xml .xsd .xsl .xslt .svg .plist .csproj .pom .resx",
    "yaml": ".yaml .yml",
    "zig": ".zig",
}

LANGUAGES: Final = {
    ending: language for language, endings in _ENDINGS.items() for ending in endings.split()
}


class Kind(StrEnum):
    """The kinds of documents. A value is the `mime_type` of what was parsed.

    Source code has `text/x-<language>`.
    """

    PDF = "application/pdf"
    WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    HTML = "text/html"
    MARKDOWN = "text/markdown"
    TABLE = "text/csv"
    TEXT = "text/plain"
    SOURCE = "text/x-"


IMAGE: Final = "This is an image, not a text. Upload the text, or a PDF with recognised text (OCR)."
SOUND: Final = "This is a sound or video file. Upload its transcript instead."
PROGRAM: Final = "This is an executable program, not a document."
ARCHIVE: Final = "This is an archive. Unpack it and upload the documents in it."
OLD_OFFICE: Final = (
    "This is an Office file in the old format (.doc, .xls, .ppt), or one with a password. "
    "Save it without a password as .docx, .xlsx or .pptx."
)
OPEN_DOCUMENT: Final = (
    "OpenDocument files are not supported. Save it as .docx, .xlsx, .pptx or PDF."
)
BOOK: Final = "EPUB files are not supported. Convert it to PDF, HTML or text."
RICH_TEXT: Final = "RTF files are not supported. Save it as .docx or PDF."
POSTSCRIPT: Final = "PostScript files are not supported. Convert it to PDF."
DATABASE: Final = "This is a database file. Export its tables as CSV."
FONT: Final = "This is a font, not a document."

_REFUSED_STARTS: Final = (
    *((start, IMAGE) for start in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")),
    *((start, IMAGE) for start in (b"\0\0\1\0", b"8BPS", b"\0\0\0\x0cjP  ", b"\xff\x0a")),
    *((start, SOUND) for start in (b"ID3", b"OggS", b"fLaC", b"\x1aE\xdf\xa3", b"MThd", b"FLV\1")),
    *((start, SOUND) for start in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\0\0\1\xba")),
    *((start, PROGRAM) for start in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")),
    *((start, PROGRAM) for start in (b"\xce\xfa\xed\xfe", b"\0asm", b"dex\n")),
    *((start, ARCHIVE) for start in (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf", b"Rar!")),
    *((start, ARCHIVE) for start in (b"\x28\xb5\x2f\xfd", b"!<arch>\n", b"MSCF")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLD_OFFICE),
    (b"{\\rtf", RICH_TEXT),
    (b"%!PS", POSTSCRIPT),
    (b"SQLite format 3\0", DATABASE),
    *((start, FONT) for start in (b"OTTO\0", b"\0\1\0\0\0", b"wOFF", b"wOF2")),
)
# The format's name stands behind a length or a size: (offset, bytes, answer).
_REFUSED_INSIDE: Final = (
    (4, b"ftypavif", IMAGE),
    (4, b"ftypheic", IMAGE),
    (4, b"ftypmif1", IMAGE),
    (4, b"ftyp", SOUND),
    (8, b"WEBP", IMAGE),
    (8, b"WAVE", SOUND),
    (8, b"AVI ", SOUND),
    (257, b"ustar", ARCHIVE),
)
_BY_PART: Final = {
    "word/document.xml": Kind.WORD,
    "ppt/presentation.xml": Kind.SLIDES,
    "xl/workbook.xml": Kind.SHEETS,
}
_BY_SUFFIX: Final = {
    **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd", ".rmd"), Kind.MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), Kind.HTML),
    **dict.fromkeys((".csv", ".tsv", ".tab"), Kind.TABLE),
    **dict.fromkeys((".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex", ".srt"), Kind.TEXT),
}
HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_BY_MIME_TYPE: Final = {
    **dict.fromkeys(HTML_TYPES, Kind.HTML),
    "text/markdown": Kind.MARKDOWN,
    "text/csv": Kind.TABLE,
    "text/tab-separated-values": Kind.TABLE,
}
# PDFs may begin with up to 1,024 other bytes (ISO 32000-2, annex I).
_PDF_WITHIN_BYTES: Final = 1_024
# Possessive throughout: a comment ends at its first `-->` and is never looked at again. With
# backtracking, `<!---->` 25 times took seconds, and each further one twice as long.
_HTML: Final = re.compile(
    r"\s*+(?:<!--(?:(?!-->).){0,2000}+-->\s*+)*+<(?:!doctype html|html)\b",
    re.IGNORECASE | re.DOTALL,
)


def binary_kind(content: bytes) -> Kind | None:
    """Return the kind that the bytes announce, or None if the content must be a text.

    None for a zip too, which `zip_kind` knows by its parts. Raises Unreadable for known formats
    that cannot be read.
    """
    if b"%PDF-" in content[:_PDF_WITHIN_BYTES]:
        return Kind.PDF
    for start, answer in _REFUSED_STARTS:
        if content.startswith(start):
            raise Unreadable(answer)
    for offset, name, answer in _REFUSED_INSIDE:
        if content[offset : offset + len(name)] == name:
            raise Unreadable(answer)
    if content.startswith(b"MZ") and b"\0" in content[:128]:
        raise Unreadable(PROGRAM)
    return None


def is_zip(content: bytes) -> bool:
    return content.startswith((b"PK\3\4", b"PK\5\6"))


def zip_kind(parts: frozenset[str]) -> Kind:
    """Return the kind of a zip by the names of its parts. Raises Unreadable."""
    for part, kind in _BY_PART.items():
        if part in parts:
            return kind
    if "META-INF/container.xml" in parts:
        raise Unreadable(BOOK)
    if "mimetype" in parts and "content.xml" in parts:
        raise Unreadable(OPEN_DOCUMENT)
    raise Unreadable(ARCHIVE)


def text_kind(text: str, *, name: str, mime_type: str) -> Kind:
    """Return the kind of a text. HTML is HTML whatever it is called, unless that is source code."""
    if language_of(name):
        return Kind.SOURCE
    if _HTML.match(text[:10_000]):
        return Kind.HTML
    by_name = _BY_SUFFIX.get(_suffix(name))
    return by_name or _BY_MIME_TYPE.get(_bare(mime_type), Kind.TEXT)


def is_html_type(content_type: str) -> bool:
    return _bare(content_type) in HTML_TYPES


def language_of(name: str) -> str:
    """Return the language of source code by its file's name; empty for other files."""
    last = PurePosixPath(name.replace("\\", "/")).name.lower()
    return LANGUAGES.get(last) or LANGUAGES.get(_suffix(name), "")


def _bare(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _suffix(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()
