"""Provide models to look up, and an environment that names no provider.

Pytest may read this before Django is set up: models are asked for when they are wanted.
"""

import pytest
from django.apps import apps

NAMES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "AMBER_MODEL",
    "AMBER_VISION_MODEL",
    "AMBER_EMBEDDING_MODEL",
    "AMBER_EMBEDDING_DIMENSIONS",
)


@pytest.fixture(autouse=True)
def silent_environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def provider(db):
    return apps.get_model("providers", "Provider").objects.create(
        name="Example", base_url="https://provider.example/v1"
    )


@pytest.fixture
def new_model(provider):
    def make(alias, **fields):
        return apps.get_model("providers", "LanguageModel").objects.create(
            provider=provider, alias=alias, upstream_id=f"{alias}-upstream", **fields
        )

    return make


@pytest.fixture
def new_embedding_model(provider):
    def make(alias, **fields):
        return apps.get_model("providers", "EmbeddingModel").objects.create(
            provider=provider, alias=alias, upstream_id=f"{alias}-upstream", **fields
        )

    return make
