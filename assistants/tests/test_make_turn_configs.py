"""Make turn configurations of assistants; an unsaved row is enough."""

from uuid import UUID

import pytest

from assistants.models import Assistant, ScenePrompt
from assistants.turn_config import (
    TurnConfig,
    apply_scene,
    clamp_temperature,
    toolbox_of,
    turn_config_of,
)
from engine.messages import Author
from tools.calling.result_files import ResultFiles
from tools.calling.toolbox import ToolLimits
from tools.protocol import ToolContext


def named(**fields: object) -> Assistant:
    return Assistant(
        **{"id": UUID(int=7), "name": "N", "description": "D", "prompt": "Own"} | fields
    )


@pytest.fixture
def offered():
    """Return the names of the tools that a turn configuration offers."""

    def names(turn_config):
        limits = ToolLimits(timeout_seconds=1, result_tokens=1, count=len)
        context = ToolContext(organization_id=UUID(int=1))
        files = ResultFiles(context, vision=False)
        toolbox = toolbox_of(turn_config, context=context, limits=limits, files=files)
        return [spec.name for spec in toolbox.specs]

    return names


def test_takes_over_what_the_row_says():
    library_id = UUID(int=9)
    turn_config = turn_config_of(
        named(model="m", temperature=0.5, top_p=0.25, library_id=library_id)
    )
    assert turn_config == TurnConfig(
        author=Author(str(UUID(int=7)), "N", "D"),
        model="m",
        system_prompts=("Own",),
        temperature=0.5,
        top_p=0.25,
        library_id=library_id,
        uses_memory=True,
    )


def test_no_model_means_auto():
    assert turn_config_of(named(model="")).model == "auto"


@pytest.mark.parametrize(
    ("row", "given", "prompts"),
    [
        ({}, {}, ("Platform", "Own")),
        ({}, {"organization_prompt": "Org"}, ("Platform", "Org", "Own")),
        ({}, {"organization_prompt": " ", "chat_prompt": "\n"}, ("Platform", "Own")),
        ({}, {"chat_prompt": "Chat"}, ("Platform", "Chat")),
        ({"prompt": ""}, {"organization_prompt": "Org"}, ("Platform", "Org")),
        ({"disable_default_prompt": True}, {"organization_prompt": "Org"}, ("Own",)),
        ({"disable_default_prompt": True, "prompt": " "}, {}, ()),
    ],
)
def test_prompts_come_from_the_general_to_the_particular(settings, row, given, prompts):
    settings.AMBER_DEFAULT_PROMPT = "Platform"
    assert turn_config_of(named(**row), **given).system_prompts == prompts


@pytest.mark.parametrize(
    ("said", "sent"), [(None, None), (0, 0.1), (0.1, 0.1), (0.7, 0.7), (1, 1), (2, 1)]
)
def test_temperature_is_clamped(said, sent):
    assert clamp_temperature(said) == sent
    assert turn_config_of(named(temperature=said)).temperature == sent


@pytest.mark.parametrize(
    ("row", "is_public_api", "uses_memory"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"enable_memory_for_assistant_api": True}, True, True),
        ({"disable_memory": True}, False, False),
        ({"disable_memory": True, "enable_memory_for_assistant_api": True}, True, False),
    ],
)
def test_memory_is_off_in_the_public_api_unless_enabled(row, is_public_api, uses_memory):
    assert turn_config_of(named(**row), is_public_api=is_public_api).uses_memory is uses_memory


def test_a_scene_adds_its_prompt_and_samples_its_way():
    turn_config = turn_config_of(named(temperature=0.5, top_p=0.25))
    scene = ScenePrompt(prompt="Scene", temperature=0.0)
    assert apply_scene(turn_config, scene).system_prompts == ("Own", "Scene")
    assert (apply_scene(turn_config, scene).temperature, apply_scene(turn_config, scene).top_p) == (
        0.1,
        0.25,
    )
    assert apply_scene(turn_config, ScenePrompt(prompt=" ")) == turn_config


def test_builtin_tools_are_offered_unless_disabled(offered):
    assert {"calculate", "current_time"} <= set(offered(turn_config_of(named())))
    without = turn_config_of(named(disabled_builtin_tools=["calculate"]))
    assert "calculate" not in offered(without)
    assert "current_time" in offered(without)


def test_a_bare_model_is_told_nothing():
    assert TurnConfig() == TurnConfig(
        author=None, model="auto", system_prompts=(), uses_memory=False
    )
