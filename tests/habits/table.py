"""All habits, and the table of them in docs/providers.md.

`make habits` writes the table anew (AMBER_WRITE_HABITS=1 lets the test do it);
without it the test compares the page with what was found.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.habits import calls, errors, parameters, streams, thoughts, vendors
from tests.habits.habit import Habit

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
BEGIN, END = "<!-- habits: made by a test -->\n", "<!-- end of habits -->\n"

GROUPS: Mapping[str, Sequence[Habit]] = {
    "Streams": streams.HABITS,
    "Errors": errors.HABITS,
    "Parameters": parameters.HABITS,
    "Calls": calls.HABITS,
    "Thoughts and fields": thoughts.HABITS,
    "Other APIs": vendors.HABITS,
}
HABITS: Mapping[str, Habit] = {
    f"habit-{habit.name}": habit for habits in GROUPS.values() for habit in habits
}
"""By the names of their models."""


def written(found: Mapping[str, Mapping[str, str]], columns: Sequence[str]) -> str:
    """The table: for each model and column what went wrong, "" where all holds."""
    lines = []
    for group, habits in GROUPS.items():
        lines.append(f"| **{group}** | whose | {' | '.join(columns)} |")
        if len(lines) == 1:
            lines.append("|---|---|" + "---|" * len(columns))
        for habit in habits:
            met = found[f"habit-{habit.name}"]
            cells = " | ".join(met[column] or "yes" for column in columns)
            lines.append(f"| {habit.does} | {habit.servers} | {cells} |")
    return "\n".join(lines) + "\n"


def on_page() -> str:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return rest.partition(END)[0]


def write(table: str) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")
