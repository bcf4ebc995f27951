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
class StateBadge:
    tone: Tone
    label: "_StrPromise | str"


STATES: Final = {
    # Work: turns, documents, imports, deliveries.
    "queued": StateBadge(Tone.UNDER_WAY, _("Queued")),
    "running": StateBadge(Tone.UNDER_WAY, _("Running")),
    "waiting": StateBadge(Tone.LOOK, _("Waiting")),
    "completed": StateBadge(Tone.GOOD, _("Completed")),
    "sent": StateBadge(Tone.GOOD, _("Sent")),
    "delivered": StateBadge(Tone.GOOD, _("Delivered")),
    "incomplete": StateBadge(Tone.LOOK, _("Incomplete")),
    "failed": StateBadge(Tone.BAD, _("Failed")),
    "cancelled": StateBadge(Tone.QUIET, _("Cancelled")),
    # The last stage of ingestion that a document has finished.
    "stored": StateBadge(Tone.UNDER_WAY, _("Stored")),
    "parsed": StateBadge(Tone.UNDER_WAY, _("Parsed")),
    "chunked": StateBadge(Tone.UNDER_WAY, _("Chunked")),
    "embedded": StateBadge(Tone.UNDER_WAY, _("Embedded")),
    "ready": StateBadge(Tone.GOOD, _("Ready")),
    # Calls of tools and providers.
    "ok": StateBadge(Tone.GOOD, _("OK")),
    "refused": StateBadge(Tone.LOOK, _("Refused")),
    "timeout": StateBadge(Tone.BAD, _("Timed out")),
    "declined": StateBadge(Tone.QUIET, _("Declined")),
    "released": StateBadge(Tone.QUIET, _("Released")),
    "lost": StateBadge(Tone.BAD, _("Lost")),
    # What is in force, or not any more.
    "active": StateBadge(Tone.GOOD, _("Active")),
    "open": StateBadge(Tone.UNDER_WAY, _("Open")),
    "accepted": StateBadge(Tone.GOOD, _("Accepted")),
    "failing": StateBadge(Tone.LOOK, _("Failing")),
    "disabled": StateBadge(Tone.QUIET, _("Disabled")),
    "revoked": StateBadge(Tone.QUIET, _("Revoked")),
    "expired": StateBadge(Tone.QUIET, _("Expired")),
    "deleted": StateBadge(Tone.QUIET, _("Deleted")),
    "verified": StateBadge(Tone.GOOD, _("Verified")),
    "unverified": StateBadge(Tone.LOOK, _("Not verified")),
    # What somebody thinks of an answer.
    "up": StateBadge(Tone.GOOD, _("Thumb up")),
    "down": StateBadge(Tone.LOOK, _("Thumb down")),
}
"""By the value that rows hold, or that a page makes of several columns."""


def state_of(value: str, *, otherwise: Tone = Tone.QUIET) -> StateBadge:
    """Return a value's state; one that is not in the table is its own label, such as an error's
    code."""
    return STATES.get(value) or StateBadge(otherwise, value.replace("_", " ").capitalize())
