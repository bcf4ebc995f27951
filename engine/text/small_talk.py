"""Tell whether a message is a greeting, thanks or the like, which needs no search.

A table of whole phrases, compared without case, punctuation and emoji; a message that says anything
else beside them is no small talk. Pure.
"""

import re
import unicodedata
from typing import Final

_PHRASES: Final = """
hi|hello|hey|hi there|hello there|hey there|good morning|good afternoon|good evening|good night|
howdy|greetings|bye|goodbye|see you|see you later|take care|welcome|
thanks|thank you|thank you very much|thank you so much|many thanks|thanks a lot|thx|ty|cheers|
ok|okay|k|fine|great|good|nice|cool|perfect|awesome|excellent|wonderful|super|got it|i see|
understood|sure|alright|all right|yes|yeah|yep|yup|no|nope|please|go on|continue|go ahead|
well done|good job|you are welcome|youre welcome|no problem|never mind|nevermind|sorry|
how are you|how are you doing|how are you today|how do you do|whats up|who are you|what are you|
haha|hahaha|lol|hmm|hm|wow|oh|ah|test|testing|ping|
你好|您好|你好啊|您好啊|哈喽|嗨|大家好|早|早上好|上午好|中午好|下午好|晚上好|晚安|再见|拜拜|
谢谢|谢谢你|谢谢您|多谢|非常感谢|感谢|好|好的|好吧|行|可以|嗯|嗯嗯|哦|噢|知道了|明白|明白了|
了解|收到|是|是的|对|对的|不|不是|没事|没关系|对不起|抱歉|不客气|继续|请继续|接着说|
你好吗|最近好吗|最近怎么样|你是谁|在吗|在么|哈哈|哈哈哈|测试|
hallo|guten tag|guten morgen|danke|vielen dank|tschüss|ja|nein|bonjour|salut|merci|au revoir|
hola|gracias|buenos días|adiós|ciao|grazie|olá|obrigado|привет|спасибо|
こんにちは|ありがとう|おはよう|はい|いいえ|안녕하세요|감사합니다
"""
_KNOWN: Final = frozenset(
    phrase.strip() for phrase in _PHRASES.replace("\n", "").split("|") if phrase.strip()
)
_MAX_CHARS: Final = 120
_APOSTROPHE = re.compile(r"['’]")


def is_small_talk(text: str) -> bool:
    """Return whether a message has nothing but such phrases, or no words at all."""
    if len(text) > _MAX_CHARS:
        return False
    plain = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text).casefold())
    parts = [" ".join(part.split()) for part in re.split(r"[^\w\s]+|\n+", plain)]
    return all(part in _KNOWN or _is_list_of_phrases(part) for part in parts if part)


def _is_list_of_phrases(part: str) -> bool:
    """ "ok thanks", "hello good morning": phrases one after the other without commas."""
    words = part.split()
    reachable = {0}
    for end in range(1, len(words) + 1):
        if any(" ".join(words[start:end]) in _KNOWN for start in reachable):
            reachable.add(end)
    return len(words) in reachable
