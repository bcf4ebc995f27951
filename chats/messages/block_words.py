"""Index the words of sealed blocks, piece by piece, and pick the words of a question.

A block is found by one `tsvector`, as before; a word's positions in it are the pieces that have the word,
counted from 1. So one look into the index finds the blocks, and their rows tell which messages were
meant. Beside what was said a piece has the name of the assistant that said it, and words for its day and
for the dates it tells (`engine.text.dates`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Final
from uuid import UUID

import orjson
import regex  # type: ignore[import-untyped]

from amber.lib.search.hybrid import MAX_WORDS, pool_word
from amber.lib.search.languages import common_words, language_of
from amber.lib.search.stems import forms_asked, stem, with_irregular
from amber.lib.search.words import asked_words, stored_word, stored_words, word_literal
from chats.models import ChatMessage
from engine.context.blocks import SpokenMessage
from engine.context.pieces import MessagePiece, date_words_of
from engine.context.ranking import QuestionTerms
from engine.messages import SPEAKERS, MessageRole, facts_of
from engine.text import tokens
from engine.text.addressees import called_names
from engine.text.asking_words import ASKING_WORDS, CHINESE_FUNCTION_CHARACTERS
from engine.text.dates import asked_kind, find_dates
from engine.text.lexical import COMMON_WORDS
from engine.text.question_forms import is_general

INDEX_VERSION: Final = 3
"""Blocks with a lower one are indexed again in the background: count it up with whatever changes the words
of a piece."""

MAX_PLACES: Final = 255
"""Postgres keeps 255 positions of a word: https://www.postgresql.org/docs/18/textsearch-limitations.html.
Only common words are in more pieces of one block."""

MAX_DATES: Final = 6
"""A question has one or two; each is one look into the index."""

_NAME: Final = regex.compile(r"(?<=[\p{L}\p{N},;:)\"'’”]\s+)\p{Lu}[\p{L}\p{M}\p{N}'’-]*")
_CHINESE_NAME: Final = regex.compile(
    r"(?:[小老阿](?=[王李张刘陈杨赵吴徐孙胡朱郭林周黄马高])|[王李张刘陈杨赵吴徐孙胡朱郭罗梁宋郑谢韩冯董曹])\p{Han}"
)
"""Whom one talks of in Chinese: the commonest surnames that hardly begin another word."""

CALLING: Final = "@to:"
"""Begins the words of pieces that call somebody by a name."""

_PLAIN: Final = "en"
"""Words are stored as English ones, too: a short question tells no language, and is cut as if it were
English."""


def chat_word(chat_id: UUID) -> str:
    """Return the word that all blocks of a chat have in their index of words."""
    return pool_word("chat", chat_id)


def spoken_of(row: ChatMessage) -> SpokenMessage:
    """Return a message as blocks hold it. Its file and its assistant must be loaded."""
    label = row.file.name if row.file else (row.tool_call or {}).get("name", "")
    if row.role == MessageRole.ASSISTANT and row.assistant:
        label = row.assistant.name
    return SpokenMessage(
        id=str(row.pk),
        role=row.role,
        content=row.content,
        created_at=row.created_at,
        tokens=tokens.count_text(row.content),
        label=label,
    )


def count_words(text: str) -> int:
    return sum(1 for _ in stored_words(text))


def index_pieces(
    content: str, pieces: Sequence[MessagePiece], run: Sequence[SpokenMessage], chat_id: UUID
) -> str:
    """Return a block's `search` column."""
    lexemes = [
        f"{word_literal(word)}:{','.join(str(place + 1) for place in places[:MAX_PLACES])}"
        for word, places in places_of(content, pieces, run).items()
    ]
    return " ".join([word_literal(chat_word(chat_id)), *lexemes])


def places_of(
    content: str, pieces: Sequence[MessagePiece], run: Sequence[SpokenMessage]
) -> dict[str, Sequence[int]]:
    """Return for each word the pieces that have it, from 0."""
    language = language_of(stored_words(content))
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        text = content[piece.start : piece.end]
        said = set(stored_words(f"{text}\n{run[piece.message].label}"))
        stems = {stem(word, each) for word in said for each in (language, _PLAIN)}
        called = {stem(name, each) for name in called_names(text) for each in (language, _PLAIN)}
        speaker = facts_of(run[piece.message].role).speaker
        of_people = {called_word(name) for name in called} | (
            {said_by(speaker)} if speaker else set()
        )
        for word in stems | date_words_of(text, piece.said_at) | of_people:
            places.setdefault(word, []).append(place)
    return dict(places)


def called_word(name: str) -> str:
    """Return the word of pieces that call somebody by this name."""
    return f"{CALLING}{name}"


def said_by(speaker: str) -> str:
    """Return the word of pieces that this speaker said."""
    return f"@by:{speaker}"


def terms_of(question: str, today: date) -> QuestionTerms:
    """Return what a question asks for, asked on this day."""
    dates = find_dates(question, today)
    asked = asked_words(dates.rest)
    language = language_of(asked)
    dull = ASKING_WORDS | common_words(language)
    named = _names_in(dates.rest) - called_names(question)
    forms: dict[str, Sequence[str]] = {}
    weak, names = set(), set()
    for word in asked:
        if word in COMMON_WORDS or len(forms) == MAX_WORDS:
            continue
        known = forms_asked(word, dict.fromkeys((language, _PLAIN)), is_early=True)
        first, *others = with_irregular(known, word, language)
        forms.setdefault(first, [first, *others])
        if word in named:
            names.add(first)
        elif word in dull or _is_grammar(word):
            weak.add(first)
    return QuestionTerms(
        words=list(forms),
        forms=forms,
        weak=weak,
        names=names,
        dates=dates.words[:MAX_DATES],
        kinds=asked_kind(question) if forms else (),
        is_general=is_general(question),
    )


def _is_grammar(word: str) -> bool:
    """Whether it is a pair of Chinese characters that tells nothing."""
    return len(word) == 2 and not CHINESE_FUNCTION_CHARACTERS.isdisjoint(word)


def _names_in(question: str) -> frozenset[str]:
    """Return the words that have a capital and begin no sentence; in Chinese a surname with what follows
    it."""
    named = (match[0] for names in (_NAME, _CHINESE_NAME) for match in names.finditer(question))
    return frozenset(word for name in named for word in asked_words(name))


def literals_of(asked: QuestionTerms, chat_id: UUID) -> list[str]:
    """Return a query for each word asked for, which finds it in blocks of this chat in all its forms."""
    mine = word_literal(chat_word(chat_id))
    forms = (map(word_literal, asked.forms_of(word)) for word in asked.all_words)
    return [f"{mine} & ({' | '.join(some)})" for some in forms]


def lexemes_of(asked: QuestionTerms) -> list[str]:
    """Return the words of a block's index that may matter to a question; speakers only if it has a name."""
    words = [*chain.from_iterable(map(asked.forms_of, asked.all_words))]
    if asked.names:
        forms = chain.from_iterable(map(asked.forms_of, asked.names))
        words += [*map(called_word, forms), *map(said_by, SPEAKERS)]
    return [*map(stored_word, words)]


def stored_forms(asked: QuestionTerms) -> dict[str, list[str]]:
    """Return the words asked for by the beginnings of what a block's `search` column holds them as."""
    return _by_beginning((form, word) for word in asked.all_words for form in asked.forms_of(word))


def stored_calls(asked: QuestionTerms) -> dict[str, list[str]]:
    """Return the names asked for by the words of pieces that call somebody so, as `stored_forms` does."""
    return _by_beginning(
        (called_word(form), name) for name in asked.names for form in asked.forms_of(name)
    )


def stored_speech() -> dict[str, list[str]]:
    """Return the speakers by the words of pieces that they said, as `stored_forms` does."""
    return _by_beginning((said_by(speaker), speaker) for speaker in SPEAKERS)


def _by_beginning(forms: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_beginning: dict[str, list[str]] = {}
    for form, word in forms:
        by_beginning.setdefault(word_literal(form)[:-1], []).append(word)
    return by_beginning


def places_in(search: str, stored: Mapping[str, Sequence[str]]) -> dict[str, Sequence[int]]:
    """Return in which of a block's pieces (from 0) words stand, read from its `search` column.

    That looks like 'cat':2,13 'dog':1. A block without pieces has no numbers there: it counts as one piece.
    """
    found: dict[str, Sequence[int]] = {}
    for entry in search.split(" "):  # no word has one
        beginning, behind, numbers = entry.rpartition("':")
        for word in stored.get(beginning if behind else entry[:-1], ()):
            places = [number - 1 for number in orjson.loads(f"[{numbers if behind else 1}]")]
            found[word] = sorted({*found[word], *places}) if word in found else places
    return found
