"""Hold what a measure found, and show it: a table for people, JSON for comparing runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.report import align


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under `columns`; the first cell names the row. `notes` say how it was measured."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = field(default=())

    def as_text(self) -> str:
        shown = [[str(column) for column in self.columns]]
        shown += [[_cell(cell) for cell in row] for row in self.rows]
        return "\n".join([f"== {self.title}", align(shown, left=1), *self.notes])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return "" if value is None else str(value)


def percent(shares: Sequence[float]) -> float | None:
    """Return the mean of shares in percent; None of nothing."""
    return 100 * sum(shares) / len(shares) if shares else None
