"""Choose which of an assistant's scenes a question belongs to: by meaning, and often none.

A question's nearness to a scene is compared with its nearness to sentences of everyday talk
(`ANCHORS`), since the same cosine means different things with different embedding models. Pure but
for `vectors_of_scenes`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from assistants.models import ScenePrompt
from engine.relevance.measures import MIN_DEVIATION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

ANCHORS: Final = (
    "What time does the train leave tomorrow morning?",
    "My neighbour has painted the fence green.",
    "We had soup and bread for dinner yesterday.",
    "The meeting was moved to the second floor.",
    "She bought a new coat because winter is coming.",
    "It rained all day, so the children stayed inside.",
    "How far is it from here to the station?",
    "The museum is closed on Mondays.",
    "今天的天气很好，我们去公园吧。",
    "他昨天买了一双新鞋。",
    "请问附近有没有超市？",
    "会议改到下周三下午。",
)
"""Sentences that belong to no scene, in the two languages that Amber is tested with."""

ENTER: Final = 4.5
LEAVE: Final = 2.0
SWITCH: Final = 1.5
"""Deviations above everyday talk that it takes to enter a scene and to stay in one, and by how many
another must be nearer to take over. Chosen on the questions of
assistants/tests/test_choose_scene.py."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The scene that was chosen, or None, and each scene's score for the manifest.

    A score is the nearness in deviations above everyday talk.
    """

    scene: ScenePrompt | None
    scores: Mapping[UUID, float]


def choose_scene(
    question: "Vectors",
    scenes: "Mapping[ScenePrompt, Vectors]",
    anchors: "Vectors",
    *,
    previous_id: UUID | None,
) -> Choice:
    """Choose the question's scene. `previous_id` is that of the chat's last turn, if any.

    The previous scene is left only if the question is clearly nearer to another, or to everyday
    talk: a chat should not change its tone with every question. `question` is (D,), each scene
    (n, D), the anchors (m, D); all are float32 and L2-normalised.
    """
    everyday = anchors @ question
    mean, deviation = float(everyday.mean()), max(float(everyday.std()), MIN_DEVIATION)
    scores = {
        scene: (float((texts @ question).max()) - mean) / deviation
        for scene, texts in scenes.items()
    }
    by_id = {scene.pk: round(score, 2) for scene, score in scores.items()}
    best = max(scores, key=lambda scene: scores[scene], default=None)
    before = next((scene for scene in scenes if scene.pk == previous_id), None)
    if before is not None and scores[before] >= LEAVE and best is not None:
        is_nearer = scores[best] - scores[before] > SWITCH and scores[best] >= ENTER
        return Choice(best if is_nearer else before, by_id)
    return Choice(best if best is not None and scores[best] >= ENTER else None, by_id)


def vectors_of_scenes(
    scenes: Sequence[ScenePrompt], embed: "Callable[[Sequence[str]], Vectors]"
) -> "tuple[dict[ScenePrompt, Vectors], Vectors]":
    """Return each scene's vectors (its label with its prompt, then each example) and the anchors'.

    One call of `embed`, which should cache: scenes rarely change.
    """
    texts = [(scene, text) for scene in scenes for text in _texts(scene)]
    vectors = embed([*(text for _, text in texts), *ANCHORS])
    of_scenes = {
        scene: vectors[[n for n, (owner, _) in enumerate(texts) if owner is scene]]
        for scene in scenes
    }
    return of_scenes, vectors[len(texts) :]


def _texts(scene: ScenePrompt) -> list[str]:
    return [f"{scene.label}. {scene.prompt}".strip(), *(e for e in scene.examples if e.strip())]
