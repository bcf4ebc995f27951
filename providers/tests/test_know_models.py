"""Read what providers list of their models, each in its own words."""

from decimal import Decimal
from typing import Any

import pytest

from providers.known_models import NamedModel, read_entry

ENTRIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "OpenAI, reasoning": (
        {"id": "gpt-5-mini", "object": "model"},
        {
            "vision": True,
            "context_tokens": 400_000,
            "max_output_tokens": 32_000,
            "tool_dialect": "responses",
        },
    ),
    "OpenAI, old": (
        {"id": "gpt-4-0613"},
        {"vision": False, "context_tokens": 8_192, "max_output_tokens": 2_048},
    ),
    "Gemini": (
        {"id": "models/gemini-3-pro"},
        {"vision": True, "context_tokens": 1_048_576, "max_output_tokens": 32_000},
    ),
    "Mistral": (
        {
            "id": "mistral-small",
            "max_context_length": 131_072,
            "capabilities": {"completion_chat": True, "vision": True},
        },
        {"vision": True, "context_tokens": 131_072, "max_output_tokens": 4_096},
    ),
    "Groq": (
        {
            "id": "llama-3.3",
            "active": True,
            "context_window": 131_072,
            "max_completion_tokens": 32_768,
        },
        {"context_tokens": 131_072, "max_output_tokens": 32_000},
    ),
    "OpenRouter": (
        {
            "id": "deepseek/deepseek-chat",
            "context_length": 64_000,
            "architecture": {"input_modalities": ["text"]},
            "top_provider": {"max_completion_tokens": 16_000},
            "pricing": {"prompt": "0.00000027", "completion": "0.0000011", "request": "0"},
        },
        {
            "vision": False,
            "context_tokens": 64_000,
            "max_output_tokens": 16_000,
            "price_in": Decimal("0.27"),
            "price_out": Decimal("1.1"),
        },
    ),
    "vLLM": (
        {"id": "Qwen/Qwen3-8B", "max_model_len": 40_960},
        {"context_tokens": 40_960, "max_output_tokens": 4_096},
    ),
    "LM Studio": (
        {
            "id": "qwen2-vl",
            "type": "vlm",
            "max_context_length": 32_768,
            "loaded_context_length": 8_192,
        },
        {"vision": True, "context_tokens": 8_192, "max_output_tokens": 2_048},
    ),
    "nothing known": ({"id": "house-model", "object": "model"}, {}),
    "nonsense": (
        {
            "id": "house-model",
            "context_length": "many",
            "pricing": {"prompt": "free"},
            "type": None,
        },
        {},
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_list_says(name):
    entry, fields = ENTRIES[name]
    upstream_id = entry["id"].removeprefix("models/")
    assert read_entry(entry, own_dialects=True) == NamedModel(upstream_id, "chat", fields)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"id": "text-embedding-3-small"}, "embedding"),
        ({"id": "nomic", "type": "embeddings"}, "embedding"),
        ({"id": "whisper-1"}, "other"),
        ({"id": "mistral-moderation"}, "other"),
        ({"id": "mistral-x", "capabilities": {"completion_chat": False}}, "other"),
        ({"id": "llama", "active": False}, "other"),
    ],
)
def test_what_a_model_is_for(entry, kind):
    assert read_entry(entry, own_dialects=False).kind == kind


def test_the_length_of_vectors_is_known_of_some():
    known = read_entry({"id": "text-embedding-3-large"}, own_dialects=True)
    assert known.fields == {"dimensions": 3_072}
    assert read_entry({"id": "my-embedder"}, own_dialects=True).fields == {}


def test_others_models_keep_the_dialect_of_the_provider():
    served = read_entry({"id": "openai/gpt-5-mini"}, own_dialects=False)
    assert "tool_dialect" not in served.fields
