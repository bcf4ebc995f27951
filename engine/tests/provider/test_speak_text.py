import asyncio

import pytest

from engine.provider.audio import OpenAISpeech
from engine.provider.client import Endpoint
from engine.provider.model import ProviderError
from tests.fixtures.provider import RunningProvider


def spoken(provider: RunningProvider, model: str, text: str, max_bytes: int = 1_000) -> bytes:
    speech = OpenAISpeech(
        model, "nova", Endpoint(provider.base_url, "fake-key"), max_bytes=max_bytes
    )
    return asyncio.run(speech.speak(text))


def test_the_text_is_spoken(fake_provider: RunningProvider) -> None:
    assert spoken(fake_provider, "fake-model", "Good morning") == b"ID3Good morning"
    assert fake_provider.requests("Good morning")[-1] == {
        "model": "fake-model",
        "voice": "nova",
        "input": "Good morning",
        "response_format": "mp3",
    }


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("fake-429", "provider_rate_limited"),
        ("fake-500", "provider_unavailable"),
        ("fake-401", "provider_auth"),
        ("fake-404", "provider_rejected"),
    ],
)
def test_a_fault_has_its_code(fake_provider: RunningProvider, model: str, code: str) -> None:
    with pytest.raises(ProviderError) as caught:
        spoken(fake_provider, model, "Hi")
    assert caught.value.code == code


def test_an_endless_answer_is_not_read_to_its_end(fake_provider: RunningProvider) -> None:
    with pytest.raises(ProviderError) as caught:
        spoken(fake_provider, "fake-model", "x" * 2_000)
    assert caught.value.code == "provider_malformed"


def test_a_provider_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(ProviderError) as caught:
        spoken(RunningProvider("http://127.0.0.1:9/v1"), "fake-model", "Hi")
    assert caught.value.code == "provider_unavailable"
