"""Read the reason for which a model ended its reply, in the words of any provider.

Pure. A reply that was cut off by its server is a fault, whatever the server calls it; a word that
nobody knows, and that does not speak of a failure, is passed on as it came.
"""

import re
from collections.abc import Mapping
from typing import Final

from engine.provider.faults import fault
from engine.provider_fields import storable

_SYNONYMS: Final[Mapping[str, str]] = {
    # Anthropic, Mistral, Gemini, Zhipu, Bedrock
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    # Zhipu, Gemini, Anthropic, Bedrock
    "sensitive": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "refusal": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    # Anthropic, text-generation-inference, Together, Cohere, older vLLM
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "completed": "stop",
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
}

MAX_REASON_CHARS: Final = 40
"""The longest reason that is passed on, and that a turn has a column for."""

_CUT = re.compile(
    r"insufficient|error|abort|cancel|fail|time_?(out|limit)|interrupt|overload|malformed|unavailable"
)
"""In words of DeepSeek (`insufficient_system_resource`), Zhipu (`network_error`), OpenRouter and Mistral
(`error`), vLLM and SGLang (`abort`), Gemini (`malformed_function_call`)."""


def read_reason(said: str) -> str:
    """Return the reason in OpenAI's words where it has one. Raises ProviderError for a reply that was
    cut off."""
    word = said.lower()
    if word in _SYNONYMS:
        return _SYNONYMS[word]
    if _CUT.search(word):
        raise fault("provider_unavailable", said=f"finish reason {said}")
    if word in ("stop", "length", "content_filter", "tool_calls"):
        return word
    return str(storable(said))[:MAX_REASON_CHARS]
