"""Decide when two statements say the same, and when one makes the other untrue.

Two texts can be near to each other and say the opposite ("my PIN is 1234", "my PIN is 1235"): so
nearness alone never makes them the same. Numbers and negations must agree too. And two texts about
the same thing can both be true ("my cat is old", "my cat is black"): so only what has one value at
a time, and a plain denial, contradicts.
"""

import hashlib
import re
import unicodedata
from typing import Final

from amber.lib.search.stems import rough_stem

NEAR_SAME: Final = 0.95
"""Cosine similarity from which two statements say the same, if numbers and negations agree."""

_NOT_WORDS = re.compile(r"[\W_]+")
_NUMBERS = re.compile(r"\d+")
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|\w+n't|\w+n’t|hardly|stopped|former(?:ly)?)\b|[不没無无未别]"
)
_DENIALS = re.compile(r"\b(?:(?:do|does|did|is|are|was)(?:n['’]t|\s+not)|no longer|not|never)\b")
_AUXILIARIES: Final = frozenset({"do", "does", "did", "anymore", "any", "more"})

_MINE = r"(?:my|the user['’]s|user['’]s)"
_MANY = (
    r"friend|colleague|brother|sister|son|daughter|child|kid|cousin|uncle|aunt|neighbou?r|student"
)
"""People of whom one has several: a second name is no correction."""

_ME = r"(?:i|the user|user)"
_SINGLE = (
    r"(?:\w+ )?name|age|birthday|birth ?date|date of birth|address|home ?town|e-?mail(?: address)?|"
    r"(?:[\w-]+ ){0,2}number|pin|password|code|employer|job|profession|occupation|job title|salary|"
    r"nationality|native language|mother tongue|time ?zone|height|weight|blood type|shoe size|"
    r"(?:favou?rite|preferred) [\w ]{2,40}?"
)
"""What a person, or a thing that belongs to them, has one of at a time."""

_SUBJECTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_MINE} (?P<named>(?!(?:{_MANY})\b)[\w -]{{2,40}}?)(?:['’]s name is| (?:is|are) (?:called|named))\b",
        rf"{_MINE} (?P<subject>(?:[\w-]+['’]s )?(?:{_SINGLE})) (?:is|are)\b",
        rf"{_ME} (?:am|is) (?P<called>called|named)\b",
        rf"{_ME} (?:now )?(?P<lives>lives?) (?:now )?in\b",
        rf"{_ME} (?:am|is) (?P<aged>\d+ years old)\b",
        r"(?:我|用户)的?(?P<named_zh>(?!朋友|同事|兄|弟|姐|妹|哥|儿子|女儿|孩子|邻居)[\u4e00-\u9fff]{1,8}?)(?:的名字是|名叫|叫做|叫)",
        r"(?:我|用户)的?(?P<subject_zh>(?:最喜欢的|最爱的)?[\u4e00-\u9fff]{0,6}?"
        r"(?:名字|姓名|年龄|生日|地址|邮箱|号码|密码|电话|职业|工作|国籍|颜色|身高|体重))(?:是|为)",
        r"(?:我|用户)(?P<called_zh>叫)",
        r"(?:我|用户)(?:现在)?(?P<lives_zh>住)在",
    )
)


def fingerprint(statement: str) -> str:
    """Return the MD5 of the words without case and punctuation: equal for the same words."""
    return hashlib.md5(
        _plain(statement).encode("utf-8", "replace"), usedforsecurity=False
    ).hexdigest()


def can_be_same(one: str, other: str) -> bool:
    """Return whether nearness may make these the same: all numbers and negation must agree."""
    has_same_numbers = _NUMBERS.findall(one) == _NUMBERS.findall(other)
    return has_same_numbers and is_negated(one) == is_negated(other)


def is_negated(statement: str) -> bool:
    return _NEGATIONS.search(statement.casefold()) is not None


def contradicts(one: str, other: str) -> bool:
    """Return whether both cannot be true: another value of a thing that has one, or a denial."""
    if fingerprint(one) == fingerprint(other):
        return False
    subject = subject_of(one)
    return (subject is not None and subject == subject_of(other)) or _denies(one, other)


def subject_of(statement: str) -> str | None:
    """Return what a statement gives the one value of, as "my favourite colour is blue", or None."""
    text = " ".join(statement.strip().split())
    for pattern in _SUBJECTS:
        found = pattern.match(text)
        if found is not None:
            ((kind, words),) = ((k, v) for k, v in found.groupdict().items() if v is not None)
            return (
                f"{kind.removesuffix('_zh')} {words.casefold() if kind in _SAYING else ''}".strip()
            )
    return None


_SAYING: Final = frozenset({"named", "subject", "named_zh", "subject_zh"})
"""Groups whose words say which thing it is; the others stand for one thing each."""


def _plain(statement: str) -> str:
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", statement).casefold()).strip()


def _denies(one: str, other: str) -> bool:
    """Return whether one denies the other: "I eat meat", "I don't eat meat"; "我吃肉", "我不吃肉"."""
    said, denied = _core(one), _core(other)
    return said[0] == denied[0] and said[1] != denied[1]


def _core(statement: str) -> tuple[str, bool]:
    """Return the stemmed words without negation, and whether there was a negation."""
    text = unicodedata.normalize("NFKC", statement).casefold()
    rest = re.sub(r"[不没]", "", _DENIALS.sub(" ", text))
    words = (word for word in _plain(rest).split() if word not in _AUXILIARIES)
    return " ".join(map(rough_stem, words)), rest != text
