"""Which of an assistant's scenes a question belongs to: by meaning, slow to change, often none.

A question's nearness to a scene is judged against its nearness to sentences of everyday talk, since
no cosine means the same with two embedding models: see `ANCHORS`. Pure but for `vectors_of_scenes`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from assistants.models import ScenePrompt

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
"""Talk that belongs to no scene in particular, in the two languages Amber is tested with."""

ENTER: Final = 4.5
LEAVE: Final = 2.0
SWITCH: Final = 1.5
"""Deviations above everyday talk: to enter a scene, to stay in one, and by how much another must be
nearer to take over. Chosen on the questions of assistants/tests/test_choose_scene.py."""

MIN_DEVIATION: Final = 0.05
"""Everyday sentences can all be equally far from a question; chance still moves it by about this."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`scores`: each scene's nearness in deviations above everyday talk, for the manifest."""

    scene: ScenePrompt | None
    scores: Mapping[UUID, float]


def choose_scene(
    question: "Vectors",
    scenes: "Mapping[ScenePrompt, Vectors]",
    anchors: "Vectors",
    *,
    previous_id: UUID | None,
) -> Choice:
    """`question` is (D,); each scene has (n, D) and the anchors (m, D), all L2-normalised.

    `previous_id` is the scene of the chat's last turn, if any: it is left only when the question
    is clearly nearer to another, or to everyday talk.
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
    """Each scene's vectors (its label with its prompt, then each example), and the anchors'.

    One call of `embed`, which remembers: scenes change rarely.
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
