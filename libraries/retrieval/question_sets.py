"""Read questions with the documents that answer them, to measure search; three forms of files.

- Amber's own, one JSON file. `documents` are ids, paths or names; a mapping grades them:

      {"documents": [{"path", "name"?, "text"}, …]?,
       "questions": [{"question", "documents": ["guide.md", …] or {"guide.md": 2, …}}, …]}

- BEIR's, a folder: `corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`
  (https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset).
- SQuAD's, one JSON file, as it is (https://rajpurkar.github.io/SQuAD-explorer/) or flat, as CMRC's:
  each paragraph is a document, which its questions must find.

Raises QuestionSetError for what is none of these.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

EXPECTED: Final = (
    'Amber\'s own is {"questions": [{"question": "…", "documents": ["path or name", …]}, …]}; '
    "BEIR's folders and SQuAD's files can be read too."
)


class QuestionSetError(Exception):
    """The file cannot be used; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class SetDocument:
    """A document of a set. `path` is what questions name it by."""

    path: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question. `grades` say how well each of these documents answers it, above 0.

    Other documents do not answer it.
    """

    text: str
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    questions: list[JudgedQuestion]
    documents: list[SetDocument] = field(default_factory=list)


def read_question_set(path: Path) -> QuestionSet:
    """Read a file or folder of any of the forms. Raises QuestionSetError."""
    try:
        return _read(path)
    except OSError as error:
        raise QuestionSetError(f"{error.filename}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f" ({error})" if isinstance(error, ValueError) else ""  # what is wrong with its JSON
        said = f"{path} has none of the known forms{why}. {EXPECTED}"
        raise QuestionSetError(said) from error


def _read(path: Path) -> QuestionSet:
    if path.is_dir():
        return _beir(path)
    said = json.loads(path.read_text())
    if isinstance(said, Mapping) and "questions" in said:
        return _own(said)
    return _squad(said)


def _own(said: Mapping[str, Any]) -> QuestionSet:
    documents = [
        SetDocument(each["path"], each.get("name", each["path"]), each["text"])
        for each in said.get("documents", [])
    ]
    return QuestionSet([_own_question(each) for each in said["questions"]], documents)


def _own_question(said: Mapping[str, Any]) -> JudgedQuestion:
    named = said["documents"]
    grades = dict(named) if isinstance(named, Mapping) else dict.fromkeys(named, 1.0)
    return JudgedQuestion(str(said["question"]), grades)


def _beir(folder: Path) -> QuestionSet:
    documents = [
        SetDocument(each["_id"], each.get("title") or each["_id"], each["text"])
        for each in _lines(folder / "corpus.jsonl")
    ]
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        question_id, document_id, grade = line.split("\t")
        if float(grade) > 0:
            grades[question_id][document_id] = float(grade)
    questions = [
        JudgedQuestion(each["text"], grades[each["_id"]])
        for each in _lines(folder / "queries.jsonl")
        if each["_id"] in grades
    ]
    return QuestionSet(questions, documents)


def _lines(path: Path) -> Iterator[Any]:
    return (json.loads(line) for line in path.read_text().splitlines() if line.strip())


def _squad(said: Any) -> QuestionSet:
    documents: list[SetDocument] = []
    questions: list[JudgedQuestion] = []
    for number, (title, text, asked) in enumerate(_paragraphs(said)):
        path = f"paragraph-{number}"
        documents.append(SetDocument(path, title or path, text))
        questions += [JudgedQuestion(each, {path: 1.0}) for each in asked]
    return QuestionSet(questions, documents)


def _paragraphs(said: Any) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (title, text, questions) of each paragraph."""
    for article in said if isinstance(said, list) else said["data"]:
        for each in article.get("paragraphs", [article]):
            text = each.get("context") or each["context_text"]
            asked = [str(qa.get("question") or qa["query_text"]) for qa in each["qas"]]
            yield str(article.get("title", "")), str(text), asked
