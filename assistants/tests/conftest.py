"""Provide assistants, tools and libraries of the tests' personas.

Pytest may read this before Django is set up: models are asked for when they are wanted.
"""

from itertools import count
from typing import Any

import pytest
from django.apps import apps

from tools.tests.tool_service import weather

__all__ = ["weather"]

_numbers = count(1)


def _new(label: str, persona: Any, **fields: Any) -> Any:
    fields = {"organization": persona.organization, "user": persona.user} | fields
    return apps.get_model(label).objects.create(**fields)


@pytest.fixture
def new_assistant():
    def make(persona, **fields):
        number = next(_numbers)
        return _new(
            "assistants.Assistant", persona, **{"name": "A", "slug": f"a-{number}"} | fields
        )

    return make


@pytest.fixture
def new_tool():
    def make(persona, **fields):
        url = "https://weather.example/manifest"
        return _new("tools.Tool", persona, **{"name": "Weather", "discovery_url": url} | fields)

    return make


@pytest.fixture
def new_library(db):
    provider = apps.get_model("providers.Provider").objects.create(name="p", base_url="offline:")
    embedding_model = apps.get_model("providers.EmbeddingModel").objects.create(
        provider=provider, alias="e", upstream_id="e"
    )

    def make(persona, **fields):
        fields = {"name": "L", "embedding_model": embedding_model} | fields
        return _new("libraries.Library", persona, **fields)

    return make


@pytest.fixture
def new_model(db):
    provider = apps.get_model("providers.Provider").objects.create(name="m", base_url="offline:")

    def make(alias, **fields):
        return apps.get_model("providers.LanguageModel").objects.create(
            provider=provider, alias=alias, upstream_id=alias, **fields
        )

    return make
