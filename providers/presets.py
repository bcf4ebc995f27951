"""Name the providers that operators set up most, with all that a form can fill in for them.

Pure. What a single model can do is not here: `providers.known_models` has that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_noop as _

PLACEHOLDER: Final = "RESOURCE"
"""Stands in an address for what only the operator knows."""


@dataclass(frozen=True, slots=True)
class Preset:
    """`base_url` is where it is reached, `dialect` what it speaks. `models_path` below it lists its
    models, and `host_path` below the host says more of them. `quirks` are columns of its language
    models."""

    label: str
    base_url: str
    dialect: str = "tools"
    needs_key: bool = True
    models_path: str = "/models"
    host_path: str = ""
    quirks: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""


_LOCAL: Final = {"system_position": "only_first"}
"""Most chat templates take one system message, at the start."""

PRESETS: Final[Mapping[str, Preset]] = {
    "openai": Preset("OpenAI", "https://api.openai.com/v1"),
    "azure": Preset(
        "Azure OpenAI",
        f"https://{PLACEHOLDER}.openai.azure.com/openai/v1",
        advice=_(
            "Azure lists every model it has. Add those that you deployed, by the names of the "
            "deployments."
        ),
    ),
    "anthropic": Preset(
        "Anthropic",
        "https://api.anthropic.com/v1",
        dialect="anthropic",
        models_path="/models?limit=1000",
    ),
    "gemini": Preset("Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
    "deepseek": Preset("DeepSeek", "https://api.deepseek.com/v1"),
    "mistral": Preset(
        "Mistral",
        "https://api.mistral.ai/v1",
        quirks={"forced_parameters": {"seed": None, "stream_options": None}},  # unknown to it
    ),
    "groq": Preset("Groq", "https://api.groq.com/openai/v1"),
    "openrouter": Preset("OpenRouter", "https://openrouter.ai/api/v1"),
    "ollama": Preset(
        "Ollama",
        "http://127.0.0.1:11434/v1",
        needs_key=False,
        quirks={**_LOCAL, "context_tokens": 4_096, "max_output_tokens": 1_024},
        advice=_(
            "Ollama silently cuts off what is longer than its own context window (num_ctx). Raise "
            "that window first, then “context tokens” of the model."
        ),
    ),
    "vllm": Preset(
        "vLLM",
        "http://127.0.0.1:8000/v1",
        needs_key=False,
        quirks=_LOCAL,
        advice=_("Tools need --enable-auto-tool-choice and the tool parser of the model."),
    ),
    "lm_studio": Preset(
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        needs_key=False,
        host_path="/api/v0/models",
        quirks=_LOCAL,
    ),
}
"""By the names that rows keep, of at most 12 characters."""

OTHER: Final = Preset(_("Another, OpenAI-compatible"), "", needs_key=False)


def preset_of(name: str) -> Preset:
    return PRESETS.get(name, OTHER)


def preset_at(base_url: str) -> str:
    """Return the name of the preset with this address, or ""."""
    address = base_url.rstrip("/")
    return next((name for name, each in PRESETS.items() if each.base_url == address), "")
