"""Evaluation: the figures are right, the forms are read, and search reaches what it must."""

import json
import math
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from libraries.models import Library
from libraries.retrieval.evaluation import (
    EvaluationResult,
    evaluate,
    ndcg,
    recall,
    reciprocal_rank,
    summary,
)
from libraries.retrieval.question_sets import JudgedQuestion, QuestionSetError, read_question_set
from libraries.tests.ledger import new_library, new_model
from libraries.tests.retrieval.questions import question_set
from libraries.tests.shelf import random_vectors, shelve
from tests.fixtures.tenants import for_organization

# -- Figures -------------------------------------------------------------------------------------


def outcome(found: str, **grades: float) -> EvaluationResult:
    return EvaluationResult("?", grades, found.split(), 1.0, 0.5)


@pytest.mark.parametrize(
    ("given", "depth", "expected"),
    [
        (outcome("a b c", a=1), 1, 1),
        (outcome("b a c", a=1), 1, 0),
        (outcome("b a c", a=1, c=1), 2, 0.5),
        (outcome("b a c", a=1, c=1, x=1, y=1), 3, 0.5),
        (outcome("", a=1), 10, 0),
    ],
    ids=["first", "second", "one of two", "two of four", "nothing"],
)
def test_recall_is_the_share_that_was_found(given, depth, expected):
    assert recall(given, depth) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [(outcome("a b", a=1), 1), (outcome("x y a", a=1), 1 / 3), (outcome("x", a=1), 0)],
    ids=["first", "third", "never"],
)
def test_reciprocal_rank(given, expected):
    assert reciprocal_rank(given) == pytest.approx(expected)


def test_ndcg_discounts_by_place_and_counts_grades():
    assert ndcg(outcome("a b", a=2, b=1), 10) == pytest.approx(1)
    expected = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert ndcg(outcome("b a", a=2, b=1), 10) == pytest.approx(expected)
    assert ndcg(outcome("x", a=1), 10) == 0


def test_summary_is_the_mean():
    said = summary([outcome("a", a=1), outcome("x a", a=1)])
    assert said.recall == {1: 50.0, 5: 100.0, 10: 100.0}
    assert (said.questions, said.mrr, said.latency_ms_median) == (2, 0.75, 1.0)
    assert summary([outcome("a", a=1)]).latency_ms_p95 == 1.0


# -- Forms ---------------------------------------------------------------------------------------


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_ambers_own_form(tmp_path):
    read = read_question_set(written(tmp_path, "q.json", question_set()))
    assert len(read.documents) == 40
    assert read.questions[0] == JudgedQuestion(
        "What does the pump in hall 0 need?", {"en/0.md": 1.0}
    )
    assert read.questions[2].grades == {"en/0.md": 2}


def test_beirs_form(tmp_path):
    written(
        tmp_path,
        "corpus.jsonl",
        '{"_id": "d1", "title": "T", "text": "x"}\n{"_id": "d2", "text": "y"}\n',
    )
    written(
        tmp_path, "queries.jsonl", '{"_id": "q1", "text": "one?"}\n{"_id": "q2", "text": "none?"}\n'
    )
    written(
        tmp_path, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t0\n"
    )
    read = read_question_set(tmp_path)
    assert [(each.path, each.name) for each in read.documents] == [("d1", "T"), ("d2", "d2")]
    assert read.questions == [JudgedQuestion("one?", {"d1": 2.0})]


@pytest.mark.parametrize(
    "said",
    [
        {"data": [{"title": "T", "paragraphs": [{"context": "x", "qas": [{"question": "a?"}]}]}]},
        [{"title": "T", "context_text": "x", "qas": [{"query_text": "a?"}]}],
    ],
    ids=["squad", "cmrc"],
)
def test_squads_form(tmp_path, said):
    read = read_question_set(written(tmp_path, "q.json", said))
    assert [(each.name, each.text) for each in read.documents] == [("T", "x")]
    assert read.questions == [JudgedQuestion("a?", {"paragraph-0": 1.0})]


@pytest.mark.parametrize(
    "said", ["{", "[1]", '{"x": 1}', '{"questions": [{"question": "a"}]}', "7"]
)
def test_other_forms_are_refused(tmp_path, said):
    with pytest.raises(QuestionSetError, match="none of the known forms"):
        read_question_set(written(tmp_path, "q.json", said))


def test_what_no_json_is_is_told_and_nothing_of_the_reader_s_own(tmp_path):
    with pytest.raises(QuestionSetError, match=r"forms \(Expecting .* line 1 column 2"):
        read_question_set(written(tmp_path, "q.json", "{"))
    with pytest.raises(QuestionSetError, match=r"none of the known forms\. Amber's own is"):
        read_question_set(written(tmp_path, "q.json", '[{"question": "a?"}]'))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(QuestionSetError, match="No such file"):
        read_question_set(tmp_path / "gone.json")


# -- What search reaches on the small set -----------------------------------------------------------


@pytest.fixture(params=["offline", "random"])
def library(request, alice):
    library = new_library(alice, embedding_model=new_model(dimensions=512))
    for number, each in enumerate(question_set()["documents"]):
        noise = random_vectors(1, 512, number) if request.param == "random" else None
        shelve(library, each["text"], path=each["path"], name=each["path"], vectors=noise)
    return library


@pytest.mark.django_db
@pytest.mark.parametrize("retrievers", [("words", "vectors"), ("words",)], ids=["both", "words"])
def test_every_question_finds_its_document(library, retrievers, tmp_path):
    """In Chinese as in English, by part number and by name; random vectors do no harm."""
    questions = read_question_set(written(tmp_path, "q.json", question_set())).questions
    with for_organization(library.organization_id):
        reached = summary(evaluate(library, questions, retrievers=retrievers))
    assert reached.recall[1] >= 95
    assert reached.recall[5] == 100


@pytest.mark.django_db
@pytest.mark.parametrize("library", ["random"], indirect=True)
def test_one_retriever_can_be_asked_alone(library, tmp_path):
    """Or nobody would see that these vectors mean nothing."""
    questions = read_question_set(written(tmp_path, "q.json", question_set())).questions
    alone = summary(evaluate(library, questions, retrievers=["vectors"]))
    assert alone.recall[10] < 60


@pytest.mark.django_db
def test_documents_of_one_name_count_as_one(alice):
    """Nothing is found better than perfectly."""
    library = new_library(alice)
    for folder in ("old", "new"):
        shelve(library, "The pump is bled at its valve.", path=f"{folder}/pump.md", name="pump.md")
    with for_organization(library.organization_id):
        (asked,) = evaluate(library, [JudgedQuestion("How is the pump bled?", {"pump.md": 1})])
    assert list(asked.found) == ["pump.md"]
    assert ndcg(asked, 10) == 1


@pytest.mark.django_db
def test_questions_about_other_documents_are_refused(library):
    with pytest.raises(QuestionSetError, match="none of the documents"):
        evaluate(library, [JudgedQuestion("?", {"elsewhere.md": 1})])


# -- The command --------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_command_loads_measures_and_writes(alice, tmp_path):
    library = new_library(alice)
    path = written(tmp_path, "q.json", question_set())
    out, told = tmp_path / "out.json", StringIO()
    call_command("evaluate_library", str(library.pk), str(path), "--load", out=out, stdout=told)
    head, both, words, vectors = told.getvalue().splitlines()
    assert head.split()[:4] == ["retrievers", "questions", "recall@1", "recall@5"]
    assert both.split()[:2] == ["both", "80"]
    assert (words.split()[0], vectors.split()[0]) == ("words", "vectors")
    said = json.loads(out.read_text())
    assert said["both"]["recall"]["5"] == 100
    assert said["words"]["questions"] == len(said["words"]["outcomes"]) == 80
    first = said["both"]["outcomes"][0]
    assert first["expected"] == {"en/0.md": 1.0}
    assert first["found"][0] == "en/0.md"
    assert Library.objects.get().survey.sample


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("library", "said", "told"),
    [
        ("00000000-0000-7000-8000-000000000000", {"questions": []}, "There is no library"),
        ("nonsense", {"questions": []}, "There is no library"),
    ],
    ids=["absent", "no id"],
)
def test_the_command_says_what_is_wrong(tmp_path, library, said, told):
    path = written(tmp_path, "q.json", said)
    with pytest.raises(CommandError, match=told):
        call_command("evaluate_library", library, str(path))


@pytest.mark.django_db(transaction=True)
def test_a_set_without_questions_is_refused(alice, tmp_path):
    library = new_library(alice)
    shelve(library, "x")
    path = written(tmp_path, "q.json", {"questions": []})
    with pytest.raises(CommandError, match="no questions"):
        call_command("evaluate_library", str(library.pk), str(path))
