"""Tell whether a question has the form of one about the world: "How do I boil an egg?", "Write a haiku".

What was said is mostly asked for in the past tense, in the first person, or by somebody's name; only the last is
not looked at here. For English, German, Russian and Chinese; a question in another language has no form. Pure.
"""

import re
from typing import Final

from engine.text.speaker import is_about_speaker

_GENERAL: Final = re.compile(
    r"^\W*(?:who|what|which|when|where|why|how|is|are|do|does|can|could|should|would|will|please|explain|describe|write"
    r"|draft|compose|translate|proofread|recommend|suggest|summari[sz]e|list|name|make|fix|help|convert|create|generate"
    r"|define|give me|tell me)\b"
    r"|^\W*(?:erkläre?|beschreibe?|schreibe?|übersetze?|empfiehl|nenne?|gib mir|was (?:ist|sind|bedeutet|macht)"
    r"|wie (?:viele?|lange|weit|groß|\w+ (?:ich|man|eine?))|wo(?:zu|für)|welche[rsnm]?|warum \w+(?:t|en|ind))\b"
    r"|^\W*(?:объясни|опиши|напиши|переведи|посоветуй|предложи|назови|дай|сколько|почему|что (?:такое|значит|означает)"
    r"|как (?:\w+ть|\w+ет|\w+ют|\w+ся)|как(?:ая|ой|ие|ую|ов|ова|овы))\b"
    r"|解释|翻译|推荐|写一|什么是|如何|怎么|怎样|为什么",
    re.IGNORECASE,
)
_PAST: Final = re.compile(
    r"(?<=\s)was\b|\b(?:did|were|had|has|been|said|told|war|waren|hat|hatten?|habt|wurden?"
    r"|был[аио]?|\w+(?:л|ла|ло|ли|лся|лась|лись))\b|[了过]|上次|之前|以前",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(
    r"^\W*(?:wie \w+ (?:ich|wir)|gib mir|nenne? mir|empfiehl mir)\b", re.IGNORECASE
)


def is_general(question: str) -> bool:
    """Return whether a question has the form of one about the world: no past, no first person."""
    if not _GENERAL.search(question) or _PAST.search(question):
        return False
    return not is_about_speaker(_HOW_TO.sub("", question))
