"""Read long texts with the excerpts that answer each question, and make some.

Chroma's form (https://github.com/brandonstarxel/chunking_evaluation) is a folder: `questions_df.csv` with
the columns `question`, `references` (JSON: [{"content", "start_index", "end_index"}, …]) and `corpus_id`,
and `corpora/<corpus_id>.md`.

Others are made here: paragraphs of a SQuAD file put together to long texts, where the sentences around an
answer are the excerpt; and Python's documentation of its language, Amber's documents and a collection in
BEIR's form, with questions of some of an excerpt's words, one in five of them replaced by a word that is
not there.
"""

import csv
import json
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amber.lib.search.languages import common_words
from amber.lib.search.words import stored_words

PARAGRAPHS: Final = 16
"""Paragraphs of one long text."""

COLLECTED: Final = 40
"""Abstracts, or the like, of one long text."""

MADE_QUESTIONS: Final = 300
FEWER_QUESTIONS: Final = 150
DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
LEAST_CHARS: Final = 6_000
EXCERPT_CHARS: Final = 900

_END: Final = re.compile(r'(?<=[.!?])\s+(?=[A-Z"(])|(?<=[。！？])|\n\n+')
_ELSEWHERE: Final = ("purpose", "reason", "developer", "result")


@dataclass(frozen=True, slots=True)
class ExcerptQuestion:
    """A question to one text; `excerpts` are the stretches (start, end) of it that answer."""

    question: str
    text: str
    excerpts: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ExcerptSet:
    texts: dict[str, str]
    questions: list[ExcerptQuestion]


def read_chroma(folder: Path) -> ExcerptSet:
    """Read a folder of Chroma's form."""
    csv.field_size_limit(sys.maxsize)
    questions = []
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            spans = [(r["start_index"], r["end_index"]) for r in json.loads(row["references"])]
            questions.append(ExcerptQuestion(row["question"], row["corpus_id"], spans))
    names = dict.fromkeys(each.text for each in questions)
    texts = {
        name: (folder / "corpora" / f"{name}.md").read_text(encoding="utf-8") for name in names
    }
    return ExcerptSet(texts, questions)


def from_squad(path: Path, seed: int = 1) -> ExcerptSet:
    """Put the paragraphs of a file, as it is or flat, together to long texts."""
    said = json.loads(path.read_text(encoding="utf-8"))
    paragraphs = [
        paragraph
        for article in (said if isinstance(said, list) else said["data"])
        for paragraph in article.get("paragraphs", [article])
    ]
    random.Random(seed).shuffle(paragraphs)
    texts: dict[str, str] = {}
    questions: list[ExcerptQuestion] = []
    for start in range(0, len(paragraphs), PARAGRAPHS):
        name, text = f"text-{start // PARAGRAPHS}", ""
        for paragraph in paragraphs[start : start + PARAGRAPHS]:
            context = paragraph.get("context") or paragraph["context_text"]
            for asked in paragraph["qas"]:
                question = asked.get("question") or asked["query_text"]
                first = asked["answers"][0]
                answer = first if isinstance(first, str) else first["text"]
                span = _sentences_around(context, answer)
                if span is not None:
                    excerpt = (len(text) + span[0], len(text) + span[1])
                    questions.append(ExcerptQuestion(question, name, [excerpt]))
            text += f"{context}\n\n"
        texts[name] = text
    return ExcerptSet(texts, questions)


def _sentences_around(context: str, answer: str) -> tuple[int, int] | None:
    at = context.find(answer)
    if at < 0:
        return None
    around = [s for s in sentences(context) if s[0] < at + len(answer) and s[1] > at]
    return (around[0][0], around[-1][1]) if around else None


def sentences(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence."""
    found, start = [], 0
    for mark in [*_END.finditer(text), None]:
        end = mark.start() if mark else len(text)
        if text[start:end].strip():
            found.append((start, end))
        start = mark.end() if mark else end
    return found


def about_python(seed: int = 2) -> ExcerptSet:
    """Make questions to what Python's help says about its language."""
    from pydoc_data.topics import topics

    return _ask_about(
        {
            name: re.sub(r"\*+|\[.*?\]", "", said)
            for name, said in sorted(topics.items())
            if len(said) > LEAST_CHARS
        },
        seed,
        MADE_QUESTIONS,
    )


def about_documents(seed: int = 7) -> ExcerptSet:
    """Make questions to Amber's own documents: Markdown with tables, lists and code."""
    read = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    texts = {name: text for name, text in read.items() if len(text) > LEAST_CHARS}
    return _ask_about(texts, seed, FEWER_QUESTIONS)


def about_collection(folder: Path, seed: int = 5) -> ExcerptSet:
    """Make questions to the documents of a folder of BEIR's form, put together to long texts."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    said = [f"{row.get('title', '')}\n\n{row['text']}" for row in rows]
    texts = {
        f"text-{start}": "\n\n".join(said[start : start + COLLECTED])
        for start in range(0, len(said), COLLECTED)
    }
    return _ask_about(texts, seed, FEWER_QUESTIONS)


def _ask_about(texts: dict[str, str], seed: int, count: int) -> ExcerptSet:
    """Draw excerpts of the texts, and ask for each by some of its words."""
    dice = random.Random(seed)
    questions: list[ExcerptQuestion] = []
    while len(questions) < count:
        name = dice.choice(sorted(texts))
        spans = _drawn(texts[name], dice)
        words = [word for a, b in spans for word in _telling(texts[name][a:b], dice)]
        if len(words) > 1 and sum(b - a for a, b in spans) <= EXCERPT_CHARS:
            asked = (w if dice.random() > 0.2 else dice.choice(_ELSEWHERE) for w in words)
            questions.append(ExcerptQuestion(f"How does the {' '.join(asked)}?", name, spans))
    return ExcerptSet(texts, questions)


def _drawn(text: str, dice: random.Random) -> list[tuple[int, int]]:
    """Draw one to three sentences, and for one question in four another one further on."""
    known = [each for each in sentences(text) if each[1] - each[0] > 60]
    at = dice.randrange(len(known) - 6)
    first = known[at : at + dice.choice((1, 1, 2, 3))]
    spans = [(first[0][0], first[-1][1])]
    other = known[min(len(known) - 1, at + dice.choice((8, 20, 40)))]
    if dice.random() < 0.25 and other[0] >= spans[0][1]:
        spans.append(other)
    return spans


def _telling(excerpt: str, dice: random.Random) -> list[str]:
    """Draw two to four of its words that are not common ones."""
    common = common_words("en")
    words = [
        word
        for word in dict.fromkeys(stored_words(excerpt))
        if word.isalpha() and len(word) > 2 and word not in common
    ]
    dice.shuffle(words)
    return words[: dice.choice((2, 3, 4))]
