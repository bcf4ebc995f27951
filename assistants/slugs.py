"""Make slugs of assistants.

`assistant:<slug or id>` names one, so a slug never looks like an id.
"""

from collections.abc import Collection
from itertools import count
from typing import Final
from uuid import UUID

from django.utils.text import slugify

MAX_CHARS: Final = 70
"""Ten fewer than the column holds, so that a number can be appended."""


def slug_base(name: str, pk: UUID) -> str:
    """Make a slug of the name if it has Latin letters or digits, else of the id's random end."""
    base = slugify(name)[:MAX_CHARS].strip("-_")
    return f"assistant-{pk.hex[-8:]}" if not base or looks_like_id(base) else base


def find_free_slug(base: str, taken: Collection[str]) -> str:
    """Return the base, or the base with the first free number from 2 appended."""
    if base not in taken:
        return base
    return next(slug for n in count(2) if (slug := f"{base}-{n}") not in taken)


def looks_like_id(slug: str) -> bool:
    try:
        UUID(slug)
    except ValueError:
        return False
    return True
