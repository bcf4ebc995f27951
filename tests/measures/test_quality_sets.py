"""Test that conversations of LoCoMo's form are read, and that made ones are the same for a seed."""

import json
from pathlib import Path

import pytest

from bench.quality.chats import PAIRS
from bench.quality.conversations import RecordedConversation, read_locomo
from bench.quality.embedders import StandInEmbedder
from bench.quality.made_chats import languages, make_chat
from bench.quality.plain import plain_methods
from bench.quality.tables import Table

LOCOMO = [
    {
        "sample_id": "one",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a cat."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a grey cat"},
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "It sleeps."}],
        },
        "qa": [
            {"question": "What did Ann adopt?", "evidence": ["D1:1; D1:2"], "category": 1},
            {"question": "Where is the dog?", "evidence": ["D1:1"], "category": 5},
            {"question": "Who is missing?", "evidence": ["D9:1"], "category": 1},
        ],
    },
    {
        "conversation": {"speaker_a": "Cem", "speaker_b": "Dora"},
        "qa": [{"question": "Where does Dora live?", "evidence": [], "category": 1}],
    },
]


def read(folder: Path) -> list[RecordedConversation]:
    path = folder / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    return read_locomo(path, group="mine", unrelated=["Why?"])


def test_a_conversation_in_locomos_form_is_read(tmp_path):
    first, second = read(tmp_path)
    assert [(m.id, m.role, m.text) for m in first.said] == [
        ("D1:1", "human", "I adopted a cat."),
        ("D1:2", "assistant", "Look! [shows a picture: a grey cat]"),
        ("D2:1", "human", "It sleeps."),
    ]
    assert first.said[0].at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert first.said[0].at < first.said[1].at < first.said[2].at
    assert [(q.text, q.evidence) for q in first.questions] == [
        ("What did Ann adopt?", ["D1:1", "D1:2"])
    ]
    assert first.unrelated == ["Why?", "Where does Dora live?"]
    assert second.said == []


def test_the_pairs_of_friends_have_the_evidence_they_name():
    pairs = read_locomo(PAIRS, group="pairs", unrelated=[])
    assert [len(pair.questions) for pair in pairs] == [30, 28]


@pytest.mark.parametrize("language", languages())
def test_a_made_chat_is_the_same_for_its_seed_and_has_what_is_asked_for(language):
    made = make_chat(language, 1)
    assert made == make_chat(language, 1)
    assert made.said != make_chat(language, 2).said
    known = {message.id for message in made.said}
    assert all(known.issuperset(question.evidence) for question in made.questions)
    assert len({question.text for question in made.questions}) == len(made.questions) >= 40
    assert not {q.text for q in made.questions} & set(made.unrelated)
    assert "{" not in "".join(message.text for message in made.said)


def test_plain_methods_find_what_was_said(tmp_path):
    first, _ = read(tmp_path)
    methods = plain_methods(first, StandInEmbedder([message.text for message in first.said]))
    assert all(method("Who adopted the cat?")[0] == 0 for method in methods.values())
    assert methods["BM25, single messages"]("zebra") == []


def test_a_table_aligns_its_columns():
    table = Table("t", ["", "found"], [["a", 8.25], ["longer", None]], ["So."])
    assert table.as_text() == "== t\n        found\na         8.2\nlonger\nSo."
