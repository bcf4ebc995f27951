"""Read conversations with questions, and where in them the answers stand: LoCoMo's JSON.

    [{"sample_id": "conv-1",
      "conversation": {"speaker_a": "Ann", "speaker_b": "Ben",
                       "session_1_date_time": "1:56 pm on 8 May, 2023",
                       "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi!"}, ...], ...},
      "qa": [{"question": "When did ...?", "evidence": ["D1:1"], "category": 2}, ...]}, ...]

(https://github.com/snap-research/locomo, data/locomo10.json.) The first speaker becomes the user, the
second one the assistant. Questions of category 5 have no answer, and are left out.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

UNANSWERABLE: Final = 5
_TIME: Final = "%I:%M %p on %d %B, %Y %z"


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """One message, `text` by `role`. `id` is the data set's."""

    id: str
    role: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PlantedQuestion:
    """A question, and the ids of the messages that answer it."""

    text: str
    evidence: Sequence[str]


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """What was said, oldest first; questions to it, and questions about something else."""

    name: str
    group: str
    said: Sequence[SaidMessage]
    questions: Sequence[PlantedQuestion]
    unrelated: Sequence[str] = field(default=())


def read_locomo(path: Path, *, group: str, unrelated: Sequence[str]) -> list[RecordedConversation]:
    """Read a file. Questions to the other conversations are about something else, too."""
    samples = json.loads(path.read_text())
    asked = [_questions(sample) for sample in samples]
    found = []
    for number, sample in enumerate(samples):
        said = list(_said(sample["conversation"]))
        known = {message.id for message in said}
        others = [q.text for at, some in enumerate(asked) if at != number for q in some]
        found.append(
            RecordedConversation(
                name=str(sample.get("sample_id", number)),
                group=group,
                said=said,
                questions=[q for q in asked[number] if q.evidence and known.issuperset(q.evidence)],
                unrelated=[*unrelated, *others[:: max(len(others) // 60, 1)]],
            )
        )
    return found


def _said(conversation: dict[str, Any]) -> Iterator[SaidMessage]:
    numbers = sorted(
        int(match[1]) for name in conversation if (match := re.fullmatch(r"session_(\d+)", name))
    )
    for number in numbers:
        stamp = f"{conversation[f'session_{number}_date_time']} +0000"
        begins = datetime.strptime(stamp, _TIME)  # noqa: DTZ007  (it ends in %z)
        for place, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            shown = f" [shows a picture: {caption}]" if caption else ""
            yield SaidMessage(
                id=turn["dia_id"],
                role="human" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                text=turn.get("text", "") + shown,
                at=begins + timedelta(minutes=place),
            )


def _questions(sample: dict[str, Any]) -> list[PlantedQuestion]:
    return [
        PlantedQuestion(qa["question"], re.findall(r"D\d+:\d+", " ".join(qa.get("evidence", []))))
        for qa in sample["qa"]
        if qa.get("category") != UNANSWERABLE
    ]
