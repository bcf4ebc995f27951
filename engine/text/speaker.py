"""Tell whether a question speaks of whoever asks it: "my dentist", "am I", "我的房东".

By the words of the first person, in the languages that Amber is tested with and a few more; a language that
is not among them is taken to speak of the world. Pure.
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
