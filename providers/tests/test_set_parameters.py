"""What operators say of a model's parameters: in the admin, and on its way to the engine."""

import json

import pytest
from django.test import Client

from accounts.models import User
from engine.provider.model import ParameterRules
from providers.models import LanguageModel
from providers.registry import allowed_parameters, profile_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def save(new_model):
    """Save the model's page with these fields of parameters; what was wrong with them."""
    operator = Client()
    operator.force_login(User.objects.create_superuser("operator@example.com"))
    model = new_model("m")

    def post(**fields):
        body = {
            "provider": model.provider_id,
            "alias": "m",
            "upstream_id": "m",
            "enabled": "on",
            "context_tokens": 8_000,
            "max_output_tokens": 500,
            "encoding": "o200k_base",
            "tool_dialect": "tools",
            "system_position": "first",
            "price_in": 0,
            "price_out": 0,
            "allowed_parameters": "[]",
            "extra_parameters": "{}",
            "forced_parameters": "{}",
            **fields,
        }
        answer = operator.post(f"/admin/providers/languagemodel/{model.pk}/change/", body)
        return [] if answer.status_code == 302 else list(answer.context["errors"])

    return post


def test_they_reach_the_engine(save):
    assert not save(
        allowed_parameters='["top_p", "vendor_flag"]',
        extra_parameters='{"reasoning_effort": "low"}',
        forced_parameters='{"temperature": 1, "stop": null}',
    )
    assert profile_of(LanguageModel.objects.get()).parameters == ParameterRules(
        allowed=frozenset({"top_p", "vendor_flag"}),
        extra={"reasoning_effort": "low"},
        forced={"temperature": 1, "stop": None},
    )
    assert allowed_parameters("m") == ["top_p", "vendor_flag"]


def test_a_form_that_was_emptied_means_none(save):
    assert not save(allowed_parameters="", extra_parameters="", forced_parameters="")
    assert profile_of(LanguageModel.objects.get()).parameters == ParameterRules()
    assert allowed_parameters("m") == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("allowed_parameters", {"top_p": 1}),
        ("allowed_parameters", [1]),
        ("allowed_parameters", ["two words"]),
        ("allowed_parameters", ["n"] * 101),
        ("extra_parameters", ["top_p"]),
        ("extra_parameters", {"messages": []}),
        ("extra_parameters", {"extra_body": {"model": "another"}}),
        ("forced_parameters", {"tools": []}),
        ("forced_parameters", "high"),
    ],
)
def test_what_cannot_be_meant_is_refused(save, field, value):
    assert save(**{field: json.dumps(value)})
    assert profile_of(LanguageModel.objects.get()).parameters == ParameterRules()
