"""Say which colour each state has, in one table for all pages of operators.

A colour means the same everywhere: green is as it should be, blue is under way, orange wants
somebody to look, red went wrong, grey was ended on purpose or means nothing. Nothing else is
coloured: a "no" is no state.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Tone(StrEnum):
    """The values are Unfold's names of colours."""

    GOOD = "success"
    UNDER_WAY = "info"
    LOOK = "warning"
    BAD = "danger"
    QUIET = "default"


@dataclass(frozen=True, slots=True)
class State:
    tone: Tone
    label: "_StrPromise | str"


STATES: Final = {
    # Work: turns, documents, imports, deliveries.
    "queued": State(Tone.UNDER_WAY, _("Queued")),
    "running": State(Tone.UNDER_WAY, _("Running")),
    "waiting": State(Tone.LOOK, _("Waiting for approval")),
    "completed": State(Tone.GOOD, _("Completed")),
    "delivered": State(Tone.GOOD, _("Delivered")),
    "incomplete": State(Tone.LOOK, _("Incomplete")),
    "failed": State(Tone.BAD, _("Failed")),
    "cancelled": State(Tone.QUIET, _("Cancelled")),
    # The last stage of ingestion that a document has finished.
    "stored": State(Tone.UNDER_WAY, _("Stored")),
    "parsed": State(Tone.UNDER_WAY, _("Parsed")),
    "chunked": State(Tone.UNDER_WAY, _("Chunked")),
    "embedded": State(Tone.UNDER_WAY, _("Embedded")),
    "ready": State(Tone.GOOD, _("Ready")),
    # Calls of tools and providers.
    "ok": State(Tone.GOOD, _("OK")),
    "refused": State(Tone.LOOK, _("Refused")),
    "timeout": State(Tone.BAD, _("Timed out")),
    "declined": State(Tone.QUIET, _("Declined")),
    "released": State(Tone.QUIET, _("Released")),
    "lost": State(Tone.BAD, _("Lost")),
    # What is in force, or not any more.
    "active": State(Tone.GOOD, _("Active")),
    "open": State(Tone.UNDER_WAY, _("Open")),
    "accepted": State(Tone.GOOD, _("Accepted")),
    "failing": State(Tone.LOOK, _("Failing")),
    "disabled": State(Tone.QUIET, _("Disabled")),
    "revoked": State(Tone.QUIET, _("Revoked")),
    "expired": State(Tone.QUIET, _("Expired")),
    "deleted": State(Tone.QUIET, _("Deleted")),
    "verified": State(Tone.GOOD, _("Verified")),
    "unverified": State(Tone.LOOK, _("Not verified")),
    # What somebody thinks of an answer.
    "up": State(Tone.GOOD, _("Thumb up")),
    "down": State(Tone.LOOK, _("Thumb down")),
}
"""By the value that rows hold, or that a page makes of several columns."""


def state_of(value: str, *, otherwise: Tone = Tone.QUIET) -> State:
    """Return a value's state; one that is not in the table is its own label, such as an error's
    code."""
    return STATES.get(value) or State(otherwise, value.replace("_", " ").capitalize())
