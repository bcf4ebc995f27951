import asyncio

import pytest

from engine.provider.audio import OpenAITranscription
from engine.provider.client import Endpoint
from engine.provider.model import ProviderError
from tests.fixtures.provider import RunningProvider


def written_down(provider: RunningProvider, model: str, data: bytes) -> str:
    transcription = OpenAITranscription(model, Endpoint(provider.base_url, "fake-key"))
    found = transcription.transcribe(data, suffix="mp3", mime_type="audio/mpeg")
    return asyncio.run(found)


def test_what_was_said_is_written_down(fake_provider: RunningProvider) -> None:
    said = "Good morning, 世界\r\n--x"
    assert written_down(fake_provider, "fake-model", b"ID3" + said.encode()) == said


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("fake-429", "provider_rate_limited"),
        ("fake-500", "provider_unavailable"),
        ("fake-401", "provider_auth"),
        ("fake-404", "provider_rejected"),
    ],
)
def test_a_fault_of_the_transcription_has_its_code(
    fake_provider: RunningProvider, model: str, code: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        written_down(fake_provider, model, b"ID3Hi")
    assert caught.value.code == code


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(ProviderError) as caught:
        written_down(RunningProvider("http://127.0.0.1:9/v1"), "fake-model", b"ID3Hi")
    assert caught.value.code == "provider_unavailable"
