"""Decide whether a fact says what the person said in their own words.

A model words facts, and what it has read may have told it which: so all that a fact says must stand
in what the person typed, numbers too, and neither may deny what the other asserts. Only words that
carry nothing of their own ("the user", "lives", "is called") may be added, and the date that the
person gave as "tomorrow". It is made of words alone: what is true in other words is refused.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from amber.lib.search.stems import rough_stem
from engine.text.lexical import COMMON_WORDS
from engine.text.wording import parts_of, plain, unsaid_words
from memory.facts.fact_matching import is_negated

_ADDED_WORDS: Final = """
user users person s t re ve ll isn aren don doesn didn won wasn can cannot never
call called name named live lives living reside resides work works working job
have has having had own owns own like likes love loves enjoy enjoys prefer prefers favourite favorite
want wants need needs plan plans planning intend intends go goes going travel travels
dislike dislikes hate hates avoid avoids
use uses using speak speaks say says said state states mention mentions
currently now today recently always usually often since being located based around during
remember remembered note fact facts information
"""
_ADDED: Final = COMMON_WORDS | frozenset(_ADDED_WORDS.split())
_ADDED_RUN: Final = re.compile(
    r"用户|使用者|我们|喜欢|喜爱|最爱|住在|居住|名字|名叫|叫做|工作|从事|现在|目前|希望|计划|打算|"
    r"不喜欢|讨厌|记住|记得|[我你您他她它的了是在有和与及也都就很这那不没无叫住于为]"
)
_RELATIVE_DAY: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:days|weeks|months|years|week|month|year) ago|"
    r"(?:next|last|this|coming) (?:week(?:end)?|month|year|spring|summer|autumn|fall|winter)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|[今明后昨前]天|[下上这本](?:个)?(?:周|月|年|星期|礼拜)|[今明去后]年|周[一二三四五六日天]|星期"
)
_DATE: Final = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?")
_DISLIKE: Final = re.compile(r"\b(?:hat(?:e|es|ed)|dislik(?:e|es|ed)|avoid(?:s|ed)?)\b|讨厌|厌恶")
_CLAUSE_END: Final = re.compile(
    r"[.!?;,:\n。！？；，：、]+|\b(?:but|and|though|although|however|because)\b|但是?|而且?|不过"
)


def is_in_own_words(fact: str, typed: Iterable[str]) -> bool:
    """Return whether one of these messages, or two that follow each other, say all of the fact.

    `typed` are the person's messages, oldest first.
    """
    said = list(typed)
    both = ("\n".join(pair) for pair in pairwise(said))
    return any(_says(text, fact) for text in (*said, *both))


def adds_nothing(fact: str, known: str) -> bool:
    """Return whether a fact has no telling word that a known one lacks."""
    return not _missing_words(fact, known)


def _says(said: str, fact: str) -> bool:
    if _RELATIVE_DAY.search(plain(said)):
        fact = _DATE.sub(" ", fact)
    if not _missing_words(fact, "") or _missing_words(fact, said):
        return False
    wanted = parts_of(fact, stem=_stem)
    clause = max(_clauses(said), key=lambda each: len(wanted & parts_of(each, stem=_stem)))
    return _is_denied(clause) == _is_denied(fact)


def _missing_words(fact: str, said: str) -> list[str]:
    """Return the fact's words that carry something and were not said; of no text, all of them."""
    return unsaid_words(fact, said, added=_ADDED, added_run=_ADDED_RUN, stem=_stem)


def _stem(word: str) -> str:
    """Return the word's rough_stem, the same for fly and flies."""
    return rough_stem(f"{word[:-3]}y" if word.endswith("ies") else word)


def _clauses(said: str) -> list[str]:
    return [clause for clause in _CLAUSE_END.split(plain(said)) if clause.strip()]


def _is_denied(text: str) -> bool:
    return is_negated(text) != bool(_DISLIKE.search(plain(text)))
