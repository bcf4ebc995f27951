"""Shorten a text that is only to be recognised."""


def shorten(text: str, chars: int) -> str:
    """Return its first `chars` characters, with a mark where the rest is left out."""
    return text if len(text) <= chars else f"{text[:chars]}…"
