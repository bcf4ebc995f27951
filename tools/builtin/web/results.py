"""Read the results of a web search, from any engine, and write them for a model.

Titles and excerpts are strangers' words: each becomes one line, cut and without control characters.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

MAX_RESULTS: Final = 10
MAX_TITLE_CHARS: Final = 200
MAX_URL_CHARS: Final = 2_000
MAX_EXCERPT_CHARS: Final = 600
"""Ten results are then at most about 2,500 tokens of ordinary text."""

Freshness = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search that every engine can do. With `freshness` None results are of any age."""

    query: str
    count: int
    freshness: Freshness | None = None


@dataclass(frozen=True, slots=True)
class WebResult:
    title: str
    url: str
    excerpt: str


def read_results(rows: object, *, count: int) -> list[WebResult]:
    """Read an engine's list of objects with `title`, `url` and `content`; skip anything else."""
    found: dict[str, WebResult] = {}
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping):
            result = _read_result(row)
            if result is not None:
                found.setdefault(result.url, result)
    return list(found.values())[:count]


def _read_result(row: Mapping[str, Any]) -> WebResult | None:
    url = row.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    if len(url) > MAX_URL_CHARS or any(char.isspace() for char in url):
        return None
    title = _one_line(row.get("title"), MAX_TITLE_CHARS) or url[:MAX_TITLE_CHARS]
    return WebResult(title, url, _one_line(row.get("content"), MAX_EXCERPT_CHARS))


def _one_line(text: object, most_chars: int) -> str:
    if not isinstance(text, str):
        return ""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1]}…"


def render_results(results: Iterable[WebResult]) -> str:
    """Write the results, numbered from 1: title, address and excerpt on a line each."""
    return "\n\n".join(
        "\n".join(filter(None, (f"{number}. {each.title}", each.url, each.excerpt)))
        for number, each in enumerate(results, 1)
    )
