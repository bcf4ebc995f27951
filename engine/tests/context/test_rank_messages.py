"""Test which messages of a conversation come first, and when none has to do with the question."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.ranking import (
    LEAST_SHARE,
    MEANING_SHARE,
    RELATED,
    STANDS_OUT,
    Conversation,
    FoundBlock,
    QuestionTerms,
    Ranking,
    is_related,
    rank_pieces,
    worth_showing,
)
from engine.relevance.gates import Evidence


def block(
    *messages: str, key: str = "b", follows: bool = False, near: tuple[float, ...] = ()
) -> FoundBlock[str]:
    """A block of messages, each given by its words."""
    places: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        for word in dict.fromkeys(message.split()):
            places.setdefault(word, []).append(place)
    lengths = [max(len(message.split()), 1) for message in messages]
    return FoundBlock(key, lengths, places, follows, near)


def rank(
    question: str,
    *blocks: FoundBlock[str],
    total: int = 500,
    is_gated: bool = False,
    **fields: Any,
) -> Ranking[str]:
    asked = QuestionTerms(question.split(), **fields)
    counts = {
        word: sum(len(each.places.get(word, ())) for each in blocks) for word in asked.all_words
    }
    return rank_pieces(blocks, asked, Conversation(total, counts), is_gated=is_gated)


def order(ranking: Ranking[str]) -> list[int]:
    return [place for _, place in ranking.scores]


def test_the_message_with_the_rare_word_comes_first_its_neighbours_next():
    filler = ["weather"] * 9
    ranking = rank("clara weather", block(*filler, "clara", *filler))
    assert order(ranking)[:3] == [9, 8, 10]


def test_an_answer_that_has_none_of_the_words_is_found_beside_its_question():
    ranking = rank("cat called", block("x", "cat called", "biscuit", "y", "z", "z", "z"))
    assert 2 in order(ranking)[:3]


def test_words_that_stand_together_beat_the_same_words_apart():
    apart = ["clara", *"vwxyz", "cat", *"vwxyz"]
    ranking = rank("clara cat", block(*apart, "clara cat"))
    assert order(ranking)[0] == len(apart)


def test_messages_are_no_neighbours_over_what_was_left_out():
    one, other = block("clara", key="a"), block("x", key="b")
    joined = rank("clara", one, block("x", key="b", follows=True))
    assert list(rank("clara", one, other).scores) == [("a", 0)]
    assert list(joined.scores) == [("a", 0), ("b", 0)]


def test_a_date_tells_two_like_messages_apart():
    told = block("walk clara @2026-03", "x", "x", "x", "x", "x", "x", "walk clara @2026-04")
    assert order(rank("walk clara", told, dates=["@2026-04"]))[0] == 7
    assert order(rank("walk clara", told, dates=["@2026-03"]))[0] == 0


def test_a_question_for_a_number_prefers_the_message_with_one():
    told = block("rent y", "x", "x", "x", "x", "x", "x", "rent @number")
    assert order(rank("rent", told, kinds=["@number"]))[0] == 7


@pytest.mark.parametrize(
    ("question", "fields", "is_let_in"),
    [
        ("clara cat", {}, True),
        ("clara colour", {"names": ["clara"]}, True),
        ("linux kernel cat", {"names": ["linux"]}, False),
        ("photosynthesis explain cat", {}, False),
        ("photosynthesis", {}, False),
        ("name cat", {"weak": ["name"]}, True),
    ],
)
def test_the_gate_asks_for_the_names_and_most_of_the_words(question, fields, is_let_in):
    ranking = rank(question, block("x", "clara cat", "x", "x"), **fields)
    assert is_related(ranking.evidence) is is_let_in


def test_words_far_apart_speak_less_for_a_question_than_together():
    far = rank("sky blue sea", block("sky", *"abcdefgh", "blue", *"abcdefgh", "sea"))
    near = rank("sky blue sea", block("sky blue", "sea", *"abcdefgh"))
    assert far.evidence.coverage < near.evidence.coverage
    assert near.evidence.coverage == pytest.approx(0.96 * 3 / 4)  # the sea is one message away


def test_what_is_near_in_meaning_is_added_but_alone_opens_no_gate():
    flat = [0.1, 0.12] * 20
    told = block(*["x"] * 40, "biscuit", near=(*flat, 0.9))
    ranking = rank("cat", told)
    assert order(ranking)[0] == 40
    assert ranking.evidence.margin > 5
    assert not is_related(ranking.evidence)
    almost = Evidence(coverage=RELATED.coverage - MEANING_SHARE)
    assert not is_related(almost)
    assert is_related(replace(almost, margin=STANDS_OUT[1]))


def test_pieces_without_a_vector_are_neither_near_nor_far():
    told = block(*["x"] * 20, near=tuple([0.1, 0.3] * 10))
    fresh = block("cat", key="new")
    assert next(iter(rank("cat", told, fresh).scores)) == ("new", 0)


messages = st.lists(
    st.lists(st.sampled_from("abcdef"), max_size=4).map(" ".join), min_size=1, max_size=30
)


@given(messages, st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True))
def test_scores_fall_and_evidence_is_a_share(said, asked):
    ranking = rank(" ".join(asked), block(*said))
    values = list(ranking.scores.values())
    assert values == sorted(values, reverse=True)
    assert 0 <= ranking.evidence.coverage <= 1
    shares = worth_showing(ranking)
    assert all(LEAST_SHARE <= share <= 1 for share in shares.values())
    assert bool(shares) == bool(set(" ".join(said).split()) & set(asked))


def test_nothing_is_found_in_nothing():
    assert rank_pieces([], QuestionTerms(["cat"]), Conversation(0, {})) == Ranking()


def spoken(name: str, *lines: tuple[str, str, bool]) -> FoundBlock[str]:
    """A block of messages, each with its speaker and whether it calls somebody by the name."""
    made = block(*(text for _, text, _ in lines))
    said_by = {
        speaker: [place for place, line in enumerate(lines) if line[0] == speaker]
        for speaker in ("user", "assistant")
    }
    called = {name: [place for place, line in enumerate(lines) if line[2]]}
    return made._replace(said_by=said_by, called=called)


THANKED = [("user", "thanks ann for this", True), ("assistant", "you are welcome", False)]
FAR = [("user", "x", False), ("assistant", "y", False)] * 3
TOLD = [("user", "was it late", False), ("assistant", "i read piranesi", False)]


def test_a_name_that_one_is_called_by_leads_to_what_they_said():
    lines = [*THANKED, *FAR, *THANKED, *FAR, *TOLD]
    best = order(rank("ann read", spoken("ann", *lines), names=["ann"]))[0]
    assert lines[best] == TOLD[1]
    not_called = [(speaker, text, False) for speaker, text, _ in lines]
    best = order(rank("ann read", spoken("ann", *not_called), names=["ann"]))[0]
    assert lines[best] != TOLD[1]


def test_what_is_said_by_who_is_named_comes_before_what_is_said_to_them():
    lines = [
        *THANKED,
        *FAR,
        *THANKED,
        *FAR,
        ("user", "tea", False),
        *FAR,
        ("assistant", "tea", False),
    ]
    best = order(rank("ann tea", spoken("ann", *lines), names=["ann"]))[0]
    assert lines[best][0] == "assistant"


def test_a_question_that_names_one_of_the_speakers_is_about_the_conversation():
    asked = "ann surname passport visa number"
    lines = [*THANKED, *FAR, *THANKED, *FAR]
    assert is_related(rank(asked, spoken("ann", *lines), names=["ann"]).evidence)
    not_called = [(speaker, text, False) for speaker, text, _ in lines]
    assert not is_related(rank(asked, spoken("ann", *not_called), names=["ann"]).evidence)


def test_a_short_message_tells_less_than_a_longer_one():
    filler = " ".join(f"w{n}" for n in range(20))
    said = block(*[filler] * 8, "cat", *[filler] * 8, f"cat {filler}", *[filler] * 2)
    assert order(rank("cat", said))[0] == 17
    near = said._replace(similarities=[0.1, 0.3] * 10)
    assert order(rank("cat", near))[0] == 17


def test_a_short_message_lends_its_neighbours_no_more_than_one_that_tells_something():
    filler = " ".join(f"w{n}" for n in range(20))
    longer = "cat a b c d e f g h i j"
    scores = rank("cat", block(filler, "cat", *[filler] * 8, longer, filler)).scores
    assert scores["b", 0] == pytest.approx(scores["b", 11])


def test_a_name_of_somebody_they_talk_about_leads_to_where_it_is_said():
    lines = [("user", "ann is ill", False), *FAR, ("user", "ann is well", False), *FAR, THANKED[0]]
    ranked = rank("ann", spoken("ann", *lines), names=["ann"])
    assert {*order(ranked)[:3]} == {n for n, line in enumerate(lines) if "ann" in line[1]}


def test_a_name_that_both_are_called_by_belongs_to_neither():
    lines = [("user", "thanks ann", True), *FAR, ("assistant", "thanks ann", True), *FAR]
    ranked = rank("ann", spoken("ann", *lines), names=["ann"])
    assert {*order(ranked)[:2]} == {0, 7}


def test_a_question_about_the_world_needs_more_unless_it_names_somebody_known():
    texts = block("pump", "x", "y", "heat")
    plain, general = (rank("heat pump works", texts, is_general=each) for each in (False, True))
    assert general.scores == plain.scores
    assert general.evidence.coverage < plain.evidence.coverage
    named = rank("heat pump works", texts, is_general=True, names=["heat"])
    assert named.evidence.coverage >= plain.evidence.coverage


def test_behind_the_gate_only_what_is_related_is_ranked():
    said = block("cat biscuit", "x", "weather", "y")
    assert rank("cat biscuit", said, is_gated=True) == rank("cat biscuit", said)
    unrelated = "weather engine bridge island"
    gated = rank(unrelated, said, is_gated=True)
    assert not gated.scores
    assert rank(unrelated, said).scores
    assert gated.evidence == rank(unrelated, said).evidence
    assert not is_related(gated.evidence)


def test_behind_the_gate_a_speaker_s_name_is_enough():
    lines = [*THANKED, *FAR, *THANKED, *FAR, *TOLD]
    question = "ann engine bridge island harbour"
    gated = rank(question, spoken("ann", *lines), names=["ann"], is_gated=True)
    assert gated.scores
    assert gated == rank(question, spoken("ann", *lines), names=["ann"])
