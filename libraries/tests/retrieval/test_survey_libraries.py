"""Surveys tell vectors that mean something from those that do not, script by script."""

from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from engine.provider.embedding import OfflineEmbedder
from libraries.models import Library, VectorSurvey
from libraries.retrieval.survey import (
    LEAST,
    OTHER,
    SAMPLE,
    lift,
    lift_of,
    script_of,
    survey,
    survey_libraries,
    surveys_of,
)
from libraries.tests.ledger import new_library, new_model
from libraries.tests.shelf import random_vectors, shelve

TOPICS = [
    "valve pump pressure",
    "cat dog fur",
    "tax letter office",
    "bread oven flour",
    "rain cloud sky",
]
ENGLISH = [f"{topic} {topic.split()[n % 3]} number {n}" for n in range(10) for topic in TOPICS]
CHINESE = [
    f"{topic}第{n}章"
    for n in range(10)
    for topic in ["健康的饮食", "汽车的阀门", "税务局的信", "面包和烤箱"]
]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("The valve opens to the left.", "latin"),
        ("打开左边的阀门", "east_asian"),
        ("バルブを開ける", "east_asian"),
        ("밸브를 여세요", "east_asian"),
        ("Откройте клапан", "cyrillic"),
        ("افتح الصمام", "arabic"),
        ("用Nexon开发的游戏", "east_asian"),
        ("The word 健康 means health in this sentence.", "latin"),
        ("1234 !?", OTHER),
        ("", OTHER),
    ],
)
def test_the_script_of_a_text(text, script):
    assert script_of(text) == script


def embedded(texts: list[str]) -> Any:
    import asyncio

    return asyncio.run(OfflineEmbedder().embed(texts))


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_vectors_with_meaning_lift_what_shares_words(texts):
    words = [text.split() if text.isascii() else list(text) for text in texts]
    assert lift(words, list(embedded(texts))) > 0.6


@pytest.mark.parametrize("seed", range(5))
def test_random_vectors_lift_nothing(seed):
    words = [text.split() for text in ENGLISH]
    assert abs(lift(words, list(random_vectors(len(words), 256, seed)))) < 0.25


def test_vectors_that_are_all_the_same_lift_nothing():
    assert lift([text.split() for text in ENGLISH], [np.ones(8, np.float32)] * len(ENGLISH)) == 0


@pytest.fixture
def same_ids(monkeypatch):
    """Chunks have the same ids each time: a survey orders them by these, and takes whichever comes
    first of pairs that share as much. One order in a thousand lifts random vectors above 0.25."""
    bits = Random(1)
    monkeypatch.setattr(
        "libraries.chunking.chunk_writer.new_id",
        lambda: UUID(int=bits.getrandbits(128), version=4),
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("same_ids")
def test_each_script_is_judged_by_itself(alice):
    """An embedder that knows English only."""
    library = new_library(alice, embedding_model=new_model(dimensions=512))
    shelve(library, *ENGLISH)
    shelve(library, *CHINESE, vectors=random_vectors(len(CHINESE), 512))
    found = survey(library)
    assert set(found.lifts) == {"latin", "east_asian"}
    assert found.lifts["latin"] > 0.6
    assert found.lifts["east_asian"] < 0.25
    assert len(found.sample) == len(ENGLISH) + len(CHINESE)
    surveys = surveys_of([library.pk], library.embedding_model_id)
    assert lift_of(surveys, "a valve") == found.lifts["latin"]
    assert lift_of(surveys, "阀门") == found.lifts["east_asian"]
    between = lift_of(surveys, "клапан")
    assert between == pytest.approx(sum(found.lifts.values()) / 2)


@pytest.mark.django_db
def test_of_few_chunks_nothing_is_said(alice):
    library = new_library(alice)
    shelve(library, *ENGLISH[: LEAST - 1])
    assert survey(library).lifts == {}
    assert lift_of(surveys_of([library.pk], library.embedding_model_id), "a valve") is None


@pytest.mark.django_db
def test_nobody_looked_yet():
    assert lift_of([], "a valve") is None


@pytest.mark.django_db
def test_a_library_is_surveyed_when_it_changed(alice):
    library = new_library(alice)
    small = new_library(alice)
    shelve(small, "one")
    shelve(library, *ENGLISH)
    survey_libraries()
    first = VectorSurvey.objects.get()
    assert first.library_id == library.pk
    survey_libraries()
    assert VectorSurvey.objects.get().updated_at == first.updated_at
    shelve(library, *ENGLISH)
    survey_libraries()
    second = VectorSurvey.objects.get()
    assert (second.pk, second.chunk_count) == (first.pk, len(ENGLISH) * 2)
    other = new_model()
    Library.objects.filter(pk=library.pk).update(embedding_model=other)
    survey_libraries()
    assert VectorSurvey.objects.get().embedding_model_id == other.pk
    assert surveys_of([library.pk], library.embedding_model_id) == []


@pytest.mark.django_db
def test_a_sample_is_bounded(alice):
    library = new_library(alice)
    shelve(library, *[f"{text} {n}" for n in range(4) for text in ENGLISH])
    assert len(survey(library).sample) == SAMPLE
