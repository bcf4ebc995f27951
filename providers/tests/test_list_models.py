import pytest

from providers.services import bootstrap_from_environment
from tests.fixtures.personas import api

ALL = "/api/v1/models/"

pytestmark = pytest.mark.django_db


def test_lists_auto_first_and_then_the_enabled_models_by_name(alice, new_model):
    new_model(
        "zebra",
        default=True,
        context_tokens=1_000,
        max_output_tokens=100,
        allowed_parameters=["top_p", "seed"],
        forced_parameters={"seed": 1},
        extra_parameters={"vendor_flag": True},
    )
    new_model("eyes", vision=True, default_vision=True)
    new_model("off", enabled=False)
    answer = api(alice).get(ALL)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["next"], body["previous"]) == (None, None)
    assert [model["alias"] for model in body["results"]] == ["auto", "eyes", "zebra"]
    auto, eyes, zebra = body["results"]
    assert zebra == {
        "alias": "zebra",
        "vision": False,
        "context_tokens": 1_000,
        "max_output_tokens": 100,
        "default": True,
        "default_vision": False,
        "offline": False,
        "allowed_parameters": ["seed", "top_p"],
        "forced_parameters": ["seed"],
    }
    assert eyes["default_vision"] and eyes["vision"]
    assert auto == zebra | {"alias": "auto", "vision": True, "default": False}


def test_the_offline_model_says_what_it_is(alice):
    bootstrap_from_environment()
    auto, offline = api(alice).get(ALL).json()["results"]
    assert (auto["alias"], auto["offline"]) == ("auto", True)
    assert (offline["alias"], offline["offline"]) == ("offline", True)


def test_is_empty_without_models(alice):
    assert api(alice).get(ALL).json()["results"] == []


def test_says_nothing_of_providers(alice, new_model):
    new_model("m")
    shown = api(alice).get(ALL).content.decode()
    assert "provider.example" not in shown
    assert "m-upstream" not in shown


def test_models_are_the_platforms_so_every_tenant_sees_the_same(alice, mallory, new_model):
    new_model("m", default=True)
    assert api(alice).get(ALL).json() == api(mallory).get(ALL).json()


def test_wants_somebody(db):
    assert api().get(ALL).status_code == 401


def test_cannot_be_written(alice):
    assert api(alice).post(ALL, {"alias": "mine"}).status_code == 405
