"""What makes a memory matter: whom a question is about, its words, and the embedder's own scale."""

from uuid import UUID, uuid4

import numpy as np
import pytest

from amber.lib.search.hybrid import KeywordMatches, NearestVectors
from bench.quality.concept_embedder import ConceptEmbedder
from engine.provider.faults import fault
from engine.text.question_forms import is_about_speaker
from memory.recall import calibration
from memory.recall.calibration import calibrate, scales_of
from memory.recall.calibration_texts import HAN, LATIN
from memory.recall.floors import NearnessScale, measure_nearness, script_of
from memory.recall.relevance import relevances

PERSONAL, WORLDLY = "Who is my dentist?", "How does a heat pump work?"
SCALE = NearnessScale(chance=0.2, answer=0.6)
ONE = UUID(int=1)


def near(
    *similarities: float, count: int = 0, mean: float = 0.1, deviation: float = 0.05
) -> NearestVectors:
    found = {UUID(int=n): value for n, value in enumerate(similarities, 1)}
    return NearestVectors(found, count or len(found), mean, deviation)


def by_words(held: set[str], asked: dict[str, int], total: int = 20) -> KeywordMatches:
    return KeywordMatches({ONE: frozenset(held)}, asked, total)


@pytest.mark.parametrize(
    "question",
    [
        "Who is my landlord?",
        "When am I flying?",
        "What do I not eat?",
        "Remind me where we live",
        "我的房东是谁？",
        "我住在哪里？",
        "Wie heißt mein Hund?",
        "Как зовут мою кошку? Где моя кошка?",
    ],
)
def test_a_question_speaks_of_whoever_asks(question):
    assert is_about_speaker(question)


@pytest.mark.parametrize(
    "question",
    [
        "How do I reverse a list?",
        "What should I see in Rome?",
        "Who wrote Dune?",
        "Write a mime play about the mining of coal",
        "帮我写一首诗",
        "太阳系有几颗行星？",
    ],
)
def test_a_question_speaks_of_the_world(question):
    assert not is_about_speaker(question)


def test_one_of_three_words_is_enough_for_a_personal_question_alone():
    words = by_words({"dentist"}, {"dentist": 1, "clinic": 0, "near": 0})
    assert relevances(PERSONAL, words, NearestVectors())
    words = by_words({"pump"}, {"pump": 1, "heat": 0, "efficiency": 0})
    assert not relevances(WORLDLY, words, NearestVectors())


def test_a_general_word_is_evidence_in_a_personal_question_alone():
    words = by_words({"work"}, {"work": 2, "pump": 0})
    assert relevances("What do I work as?", words, NearestVectors())
    assert not relevances(WORLDLY, words, NearestVectors())


def test_a_personal_question_needs_less_nearness():
    between = near(SCALE.at(0.6))
    assert relevances(PERSONAL, KeywordMatches(), between, scale=SCALE)
    assert not relevances(WORLDLY, KeywordMatches(), between, scale=SCALE)
    assert relevances(WORLDLY, KeywordMatches(), near(SCALE.at(0.9)), scale=SCALE)
    assert not relevances(PERSONAL, KeywordMatches(), near(SCALE.at(0.2)), scale=SCALE)


def test_of_those_that_are_hardly_near_the_nearest_count_alone():
    hardly = near(*(SCALE.at(0.45 - n / 100) for n in range(6)))
    assert len(relevances(PERSONAL, KeywordMatches(), hardly, scale=SCALE)) == 3
    clearly = near(*(SCALE.at(0.9 - n / 100) for n in range(6)))
    assert len(relevances(PERSONAL, KeywordMatches(), clearly, scale=SCALE)) == 6


def test_an_embedder_that_does_not_know_the_script_says_nothing():
    blind = NearnessScale(chance=0.6, answer=0.61, is_known=False)
    assert not relevances(PERSONAL, KeywordMatches(), near(0.99), scale=blind)


def test_without_a_scale_a_memory_must_stand_out_of_the_others():
    crowd = near(0.5, 0.16, 0.15, count=40, deviation=0.08)
    assert list(relevances(PERSONAL, KeywordMatches(), crowd)) == [ONE]
    assert not relevances(PERSONAL, KeywordMatches(), near(0.2, 0.19, 0.18, count=40))


def test_of_several_the_most_relevant_comes_first_and_agreement_helps():
    words = by_words({"dentist"}, {"dentist": 1})
    found = relevances(PERSONAL, words, near(0.9, 0.6), scale=SCALE)
    assert list(found) == [ONE, UUID(int=2)]
    alone = relevances(PERSONAL, words, NearestVectors())
    assert found[ONE] >= alone[ONE]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Who is my dentist?", "latin"),
        ("Wer ist mein Zahnarzt?", "latin"),
        ("我的牙医是谁？", "han"),
        ("我的MacBook在哪里？", "han"),
        ("Кто мой врач?", None),
        ("من هو طبيبي؟", None),
        ("", None),
    ],
)
def test_the_script_of_a_text(text, script):
    assert script_of(text) == script


def vectors_with(*, answered: float, chance: float) -> "np.ndarray":
    """Vectors of the calibration's texts: answers and chance as near as given."""
    count, others = len(LATIN.facts), len(LATIN.unanswered)
    size = 2 * count + others
    basis = np.eye(3 * size, dtype=np.float32)
    facts = basis[:count]
    made = [
        answered * fact + np.sqrt(1 - answered**2) * basis[size + n] for n, fact in enumerate(facts)
    ]
    rest = [
        chance * facts[n % count] + np.sqrt(1 - chance**2) * basis[2 * size + n]
        for n in range(others)
    ]
    return np.stack([*facts, *made, *rest]).astype(np.float32)


def test_the_scale_lies_between_chance_and_answers():
    scale = measure_nearness(LATIN, vectors_with(answered=0.6, chance=0.2))
    assert scale.is_known
    assert (scale.chance, scale.answer) == pytest.approx((0.2, 0.6), abs=1e-4)
    assert scale.at(0.5) == pytest.approx(0.4, abs=1e-4)
    assert scale.share_of(0.4) == pytest.approx(0.5, abs=1e-3)


def test_answers_that_are_no_nearer_than_chance_are_no_answers():
    assert not measure_nearness(LATIN, vectors_with(answered=0.6, chance=0.7)).is_known


def test_each_fact_of_the_calibration_has_its_question():
    for texts in (LATIN, HAN):
        assert len(texts.facts) == len(texts.answered)
        assert len(set(texts.all)) == len(texts.all)


def test_a_model_is_calibrated_once_and_other_processes_know_it(monkeypatch):
    model_id, calls = uuid4(), []

    def embed(texts):
        calls.append(len(texts))
        return ConceptEmbedder().embed(texts)

    assert scales_of(model_id) == {}
    calibrate(model_id, embed)
    known = scales_of(model_id)
    assert known["latin"].is_known
    assert known["han"].is_known
    calibrate(model_id, embed)
    monkeypatch.setattr(calibration, "_read", {})
    assert scales_of(model_id) == known
    assert calls == [len(LATIN.all) + len(HAN.all)]


def test_an_embedder_that_fails_is_asked_again_later(monkeypatch):
    model_id, calls = uuid4(), []

    def fail(texts):
        calls.append(texts)
        raise fault("provider_unavailable")

    calibrate(model_id, fail)
    calibrate(model_id, fail)
    assert len(calls) == 1
    assert scales_of(model_id) == {}
    monkeypatch.setattr(calibration, "_tried", {})
    calibrate(model_id, ConceptEmbedder().embed)
    assert scales_of(model_id)["latin"].is_known
