"""Find explicit statements: what a person asked to be remembered, in so many words.

All that extraction finds without a language model ("remember that …", "记住…"); it understands
nothing else.
"""

import re
from typing import Final

_OPENINGS: Final = (
    r"(?:and\s+)?(?:please\s+)?(?:also\s+)?(?:remember|keep in mind|note|don['’]t forget|do not forget)"
    r"(?:\s+(?:that|this)\b|\s*[:,])\s*",
    r"(?:please\s+)?(?:make a note|take note) that\s+",
    r"for (?:the|your) record[:,]\s*",
    r"(?:请|麻烦)?(?:你|您)?(?:帮我)?(?:要|务必)?(?:记住|记得|记一下|记下|记着)(?:一下|来|了)?[：:，, ]*",
    r"(?:请)?(?:不要|别)忘(?:了|记)[：:，, ]*",
)
_STATEMENT = re.compile(
    # Not \s: a line end begins a sentence itself, and many of them would be looked through from each.
    rf"(?:^|(?<=[.!?。！？\n;；]))[^\S\n]*(?:{'|'.join(_OPENINGS)})(?P<said>[^\n。！？]+?)"
    r"(?=[.!?](?:\s|$)|[。！？\n]|$)",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\s*$|[吗呢]\s*$")
MAX_STATEMENT_CHARS: Final = 500


def explicit_statements(text: str) -> list[str]:
    """Return what follows "remember that" and the like, in order; questions are left out."""
    found = []
    for match in _STATEMENT.finditer(text):
        said = match["said"].strip(" \t,，:：")
        is_question = _QUESTION.search(text[match.start() : match.end() + 1])
        if said and len(said) <= MAX_STATEMENT_CHARS and not is_question:
            found.append(said)
    return found
