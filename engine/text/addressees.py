"""Find whom a text speaks to by name: "Hi Ann!", "Thanks, Ann.", "Ann, did you hear?".

By capitals and punctuation, so in scripts that have capitals. What it finds may be no name ("Great!"): how
a whole conversation uses a word tells, which is `engine.context.ranking`'s. Pure.
"""

from typing import Final

import regex  # type: ignore[import-untyped]

from engine.text.asking_words import ASKING_WORDS
from engine.text.lexical import COMMON_WORDS

_CALLED: Final = regex.compile(
    r"(?:^|[,.!?…;:]\s*|\b(?:hey|hi|hello|dear|thanks|thank you|bye|oh|yes|no|hallo|danke|liebe[r]?|hola|привет)\s+)"
    r"((?-i:\p{Lu})[\p{L}\p{M}-]+)(?=\s*(?:[,!?.…;]|$))",
    regex.MULTILINE | regex.IGNORECASE,
)


def called_names(text: str) -> set[str]:
    """Return the words, in lower case, that stand where one calls somebody by name."""
    found = {match.casefold() for match in _CALLED.findall(text)}
    return found - ASKING_WORDS - COMMON_WORDS
