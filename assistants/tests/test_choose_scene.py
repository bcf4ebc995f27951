"""Choose the scene of a question with the built-in embedder and the usual scenes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from assistants.models import ScenePrompt
from assistants.scenes.choice import choose_scene, vectors_of_scenes
from assistants.scenes.presets import SCENE_PRESETS
from engine.provider.embedding import OfflineEmbedder


def embed(texts: Sequence[str]) -> Any:
    return asyncio.run(OfflineEmbedder().embed(texts))


SCENES = [
    ScenePrompt(label=preset.label, prompt=preset.prompt, examples=list(preset.examples))
    for preset in SCENE_PRESETS
]
VECTORS, ANCHORS = vectors_of_scenes(SCENES, embed)


def chosen(question: str, previous: str | None = None) -> str | None:
    before = next((scene.pk for scene in SCENES if scene.label == previous), None)
    vector = embed([question])[0]
    choice = choose_scene(vector, VECTORS, ANCHORS, previous_id=before)
    assert set(choice.scores) == {scene.pk for scene in SCENES}
    return choice.scene.label if choice.scene else None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Write a Python function that sorts numbers", "Code generation"),
        ("Please write a short poem about the sea in autumn", "Creative writing"),
        ("Add comments and docstrings to this function", "Code comments"),
        ("Compute the variance of sales by region", "Data analysis"),
        ("写一首关于秋天的诗", "Creative writing"),
        ("帮我写一个函数，计算平均值", "Code generation"),
        ("What is the capital of France?", None),
        ("My train leaves at nine", None),
        ("Explain the theory of relativity", None),
        ("我昨天买了一双鞋", None),
    ],
)
def test_a_question_finds_its_scene_or_none(question, expected):
    assert chosen(question) == expected


def test_a_scene_is_kept_while_the_talk_is_not_clearly_of_another():
    hint = "Now write the same function with comments"
    assert chosen(hint, previous="Code generation") == "Code generation"


def test_a_scene_is_left_for_everyday_talk():
    assert chosen("What is the capital of France?", previous="Code generation") is None


def test_a_clearly_nearer_scene_takes_over():
    question = "Compose a poem about autumn and the moon"
    assert chosen(question, previous="Data analysis") == "Creative writing"


def test_without_scenes_none_is_chosen():
    assert choose_scene(embed(["Hi"])[0], {}, ANCHORS, previous_id=None).scene is None


def test_the_table_holds_what_is_usual():
    table = {preset.label: (preset.temperature, preset.top_p) for preset in SCENE_PRESETS}
    assert table == {
        "Code generation": (0.2, 0.1),
        "Creative writing": (0.7, 0.8),
        "Chatbot": (0.5, 0.5),
        "Tool use": (0.0, 0.7),
        "Code comments": (0.1, 0.2),
        "Data analysis": (0.2, 0.1),
        "Exploratory code": (0.6, 0.7),
    }
