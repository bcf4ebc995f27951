"""Name the states of what the front page tells of; each has one word and one colour everywhere."""

from dataclasses import dataclass
from typing import Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

State = Literal["ok", "neutral", "warning", "failed"]

WORDS: Final[dict[State, Promise]] = {
    "ok": _("Works"),
    "neutral": _("Idle"),
    "warning": _("Needs attention"),
    "failed": _("Fails"),
}
_WORST_FIRST: Final[tuple[State, ...]] = ("failed", "warning", "ok", "neutral")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that is well or not. `told` is a sentence; `link` leads to where one sees more."""

    name: str
    state: State
    told: str
    link: str = ""

    @property
    def word(self) -> Promise:
        return WORDS[self.state]


def worst(checks: list[HealthCheck]) -> State:
    """Return the worst state of these; "ok" where there are none."""
    states = {check.state for check in checks}
    return next((state for state in _WORST_FIRST if state in states), "ok")
