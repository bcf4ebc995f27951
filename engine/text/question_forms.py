"""Tell whether a question speaks of whoever asks it ("my dentist", "我的房东"), or asks about the world.

By the words of the first person, in the languages that Amber is tested with and a few more; a language that is not among
them is taken to speak of the world. What was said is mostly asked for in the past tense, in the first person, or by
somebody's name; only the last is not looked at here. The form of questions about the world ("How do I boil an egg?",
"Write a haiku") is known for English, German, Russian and Chinese; a question in another language has none. Pure.
"""

import re
from typing import Final

_SPEAKER: Final = re.compile(
    r"\b(?:my|mine|our|ours|myself|i['’]m|i['’]ve|(?:am|was|were|did|have|had) i|we)\b"
    r"|\b(?<!how )(?:do|does|must|may) i\b|\b(?:i|we) (?:am|was|have|had|live|like|work|told|said|mentioned)\b"
    r"|\b(?:for|about|of|remind|owe|reach|know) me\b"
    r"|\b(?:ich|mein\w*|mir|mich|unser\w*|je|j['’]|mon|ma|mes|moi|yo|mi|mis|mío|eu|meu|minha|io|mio|mia)\b"
    r"|\b(?:я|мой|моя|моё|мои|моего|моей|мне|меня|наш\w*)\b"
    r"|(?<![帮教])(?<!能给)(?<!请给)(?:我(?!讲|说|写|列|举|解释|介绍)|咱|本人)|私|僕|俺|내 |제 |나의|저의",
    re.IGNORECASE,
)


def is_about_speaker(question: str) -> bool:
    """Return whether a question speaks of whoever asks: "my", "am I", "我的"."""
    return _SPEAKER.search(question) is not None


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
