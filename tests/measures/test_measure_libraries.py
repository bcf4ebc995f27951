"""Measures of libraries: the forms of data they read, and what they count."""

import json
from collections import Counter

import pytest

from bench.quality.excerpts import ExcerptSet, about_python, from_squad, read_chroma
from bench.quality.libraries import measure_overlap
from bench.quality.plain import PlainBM25, best_first

TEXT = "The hall is old. The pump is greased in May. Nobody knows why."


def test_a_folder_of_chromas_form_is_read(tmp_path):
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "manual.md").write_text(TEXT)
    reference = {"content": "The pump is greased in May.", "start_index": 17, "end_index": 44}
    said = json.dumps([reference]).replace('"', '""')
    (tmp_path / "questions_df.csv").write_text(
        f'question,references,corpus_id\n"When is the pump greased, if ever?","{said}",manual\n'
    )
    found = read_chroma(tmp_path)
    assert found.texts == {"manual": TEXT}
    (question,) = found.questions
    assert question.question == "When is the pump greased, if ever?"
    assert [TEXT[start:end] for start, end in question.excerpts] == [reference["content"]]


@pytest.mark.parametrize("answer", ["in May", {"text": "in May"}])
def test_the_excerpt_of_an_answer_is_its_sentence(tmp_path, answer):
    path = tmp_path / "set.json"
    asked = {"question": "When?", "answers": [answer]}
    path.write_text(json.dumps([{"context": TEXT, "qas": [asked]}] * 20))
    found = from_squad(path)
    assert len(found.texts) == 2
    assert len(found.questions) == 20
    for each in found.questions:
        ((start, end),) = each.excerpts
        assert found.texts[each.text][start:end] == "The pump is greased in May."


def test_made_questions_are_the_same_each_time():
    found = about_python()
    assert found.questions == about_python().questions
    assert len(found.questions) >= 200
    for each in found.questions:
        assert all(found.texts[each.text][a:b].strip() for a, b in each.excerpts)


def test_what_is_shown_is_compared_by_characters():
    texts = ExcerptSet({"a": "x" * 100, "b": "x" * 100}, [])
    spans = [("a", 10, 30), ("b", 10, 20), ("a", 80, 90)]
    recall, precision, iou, _ = measure_overlap(texts, "a", [(20, 40)], spans)
    assert recall == 0.5
    assert precision == 10 / 40
    assert iou == 10 / 50
    assert measure_overlap(texts, "a", [(20, 40)], [])[:3] == (0, 0, 0)


def test_plain_bm25_knows_no_stems():
    texts = ("a cat sleeps", "cats sleep", "a dog")
    plain = PlainBM25([Counter(text.split()) for text in texts])
    assert best_first(plain.scores(["cats"])) == [1]
    assert best_first(plain.scores(["a", "cat"]))[0] == 0
    assert best_first(plain.scores(["horse"])) == []
