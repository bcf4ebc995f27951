"""Draw what went into a turn's request as a bar: which parts, how large, and what was left out.

It reads the manifest as it was recorded, also by older releases: a field that is missing is drawn as
nothing. It takes sizes and reasons, never what people wrote.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from amber.lib.operator_pages.cells import write_number

PARTS: Final = {
    "system": gettext_lazy("System prompt"),
    "tools": gettext_lazy("Tools"),
    "blocks": gettext_lazy("Recalled parts of the chat"),
    "memories": gettext_lazy("Memories"),
    "passages": gettext_lazy("Passages of the library"),
    "messages": gettext_lazy("Latest messages"),
}
"""The manifest's parts in the order of the request."""

REPLY: Final = "reply"
OUTSIDE_LIMIT: Final = "tools"
"""The prompt's limit is what is left of the model's window beside tools and reply."""

_KINDS: Final = {
    "block": gettext_lazy("Older part of the chat"),
    "tool": gettext_lazy("Tool"),
    "file": gettext_lazy("File"),
    "messages": gettext_lazy("Messages"),
    "earlier messages": gettext_lazy("Earlier messages"),
}


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One part: `count` is how many things it is made of, None where that says nothing.

    `x` and `width` are its place in the bar, in percent, as SVG wants them.
    """

    name: str
    label: str
    tokens: int
    count: int | None
    x: str
    width: str
    share: str


@dataclass(frozen=True, slots=True)
class LeftOutRow:
    kind: str
    names: str
    count: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ContextBar:
    """The whole: `total_tokens` is all of the bar; `limit_tokens` is 0 where it was not recorded.

    `filled` is the share of the prompt's limit that is used, in percent as SVG wants it.
    """

    parts: tuple[ContextPart, ...]
    total_tokens: int
    prompt_tokens: int
    limit_tokens: int
    filled: str
    filled_percent: str
    left_out: tuple[LeftOutRow, ...]

    @property
    def summary(self) -> str:
        """Say in one sentence what the picture shows."""
        shown = ", ".join(f"{part.label} {part.tokens}" for part in self.parts)
        return _("Tokens of the request and its reply: %(parts)s.") % {"parts": shown}


def draw_context(
    manifest: Mapping[str, Any] | None, usage: Mapping[str, Any] | None
) -> ContextBar | None:
    """Return the bar, or None if nothing was recorded."""
    if not manifest or not isinstance(manifest.get("tokens"), Mapping):
        return None
    sizes = {name: _size_of(manifest["tokens"], name) for name in PARTS}
    limited = sum(size for name, size in sizes.items() if name != OUTSIDE_LIMIT)
    limit = _size_of(manifest["tokens"], "limit")
    sizes[REPLY] = _size_of(usage or {}, "completion_tokens")
    total = sum(sizes.values())
    filled = min(100 * limited / limit, 100) if limit else 0
    return ContextBar(
        _place_parts(sizes, total, manifest),
        total_tokens=total,
        prompt_tokens=limited,
        limit_tokens=limit,
        filled=_percent(filled),
        filled_percent=write_number(filled, 1 if 0 < filled < 10 else 0),
        left_out=_left_out(manifest.get("left_out")),
    )


def _place_parts(
    sizes: Mapping[str, int], total: int, manifest: Mapping[str, Any]
) -> tuple[ContextPart, ...]:
    parts, before = [], 0
    for name, size in sizes.items():
        if size:
            share = 100 * size / total
            parts.append(
                ContextPart(
                    name,
                    str(PARTS.get(name, _("Reply"))),
                    size,
                    _count_of(manifest, name),
                    x=_percent(100 * before / total),
                    width=_percent(share),
                    share=f"{share:.0f}" if share >= 1 else "<1",
                )
            )
        before += size
    return tuple(parts)


def _count_of(manifest: Mapping[str, Any], name: str) -> int | None:
    given = manifest.get("system_prompts" if name == "system" else name)
    return len(given) if isinstance(given, list) else None


def _left_out(given: Any) -> tuple[LeftOutRow, ...]:
    """Return what was left out, the same kinds for the same reason together, in their order."""
    rows = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    keys = [(str(each.get("kind", "")), str(each.get("reason", ""))) for each in rows]
    return tuple(
        LeftOutRow(
            str(_KINDS.get(kind, kind)),
            ", ".join(_names_in(rows, kind, reason)),
            _count_in(rows, kind, reason, seen),
            reason,
        )
        for (kind, reason), seen in Counter(keys).items()
    )


def _names_in(rows: list[Mapping[str, Any]], kind: str, reason: str) -> list[str]:
    same = [r for r in rows if (r.get("kind", ""), r.get("reason", "")) == (kind, reason)]
    return [str(each["name"]) for each in same if "name" in each]


def _count_in(rows: list[Mapping[str, Any]], kind: str, reason: str, seen: int) -> int | None:
    """Return how many were left out: as the manifest says, else how often it names one.

    None for "earlier messages", which nobody counted.
    """
    for each in rows:
        if (each.get("kind"), each.get("reason")) == (kind, reason) and "count" in each:
            return _size_of(each, "count")
    return None if kind == "earlier messages" else seen


def _size_of(sizes: Mapping[str, Any], name: str) -> int:
    size = sizes.get(name)
    return max(size, 0) if isinstance(size, int) else 0


def _percent(value: float) -> str:
    return f"{value:.3f}%"
