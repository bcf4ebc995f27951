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


_TITLES: Final = r"Dr|Mr|Mrs|Ms|Mx|Prof|Rev|Hon|Capt|Sgt|Lt|Col|Gen|Sen|Gov|Mme|Mlle|Hr|Fr|Dipl|Ing"
_SHORT: Final = (
    r"Jr|Sr|St|Mt|Ft|No|Nr|Apt|Ave|Rd|Blvd|Inc|Ltd|Co|Corp|Dept|Ext|approx|ca|vs|etc|e\.g|i\.e|a\.m|p\.m|"
    r"[A-Z](?:\.[A-Z]){0,4}|Ph\.D|M\.Sc|B\.Sc|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun"
)
_STARTERS: Final = (
    r"(?:I|My|The|He|She|It|We|They|You|Your|Our|His|Her|This|That|These|There|And|But|So|Also|Please|Thanks|"
    r"Thank|What|Who|When|Where|Why|How|Which|Can|Could|Will|Would|Do|Does|Is|Are|Remember|Note|Don)\b"
)
_ABBREVIATED: Final = re.compile(
    rf"\b(?:{_TITLES})\.(?=\s+\S)|\b(?:{_SHORT})\.(?=[ \t]+(?!{_STARTERS})\S)", re.ASCII
)
"""A full stop that ends no sentence: after a title always, after other short forms unless the next word is one
that often begins a sentence."""

_HELD: Final = "\ue000"
"""Stands for such a full stop while sentences are looked for; in no text by Unicode's own promise."""


def explicit_statements(text: str) -> list[str]:
    """Return what follows "remember that" and the like, in order; questions are left out."""
    found = []
    text = _ABBREVIATED.sub(lambda match: f"{match[0][:-1]}{_HELD}", text.replace(_HELD, ""))
    for match in _STATEMENT.finditer(text):
        said = match["said"].replace(_HELD, ".").strip(" \t,，:：")
        is_question = _QUESTION.search(text[match.start() : match.end() + 1])
        if said and len(said) <= MAX_STATEMENT_CHARS and not is_question:
            found.append(said)
    return found
