"""Turn text into speech, and speech into text, by an OpenAI-compatible provider.

https://platform.openai.com/docs/api-reference/audio. One request each, not repeated: whoever asked
can ask again. Importing this is free, as `engine.provider.client` explains.
"""

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import orjson

from engine.provider.client import (
    Endpoint,
    log_failures,
    response_errors,
    send,
    send_form,
    shared_client,
)
from engine.provider.faults import fault
from engine.provider.model import as_json

if TYPE_CHECKING:
    import httpx2

MAX_TRANSCRIPTION_BYTES: Final = 8_000_000
"""A day of talk is about a megabyte."""


class OpenAISpeech:
    """One model and voice of one provider. `max_bytes` bounds what is read of an answer."""

    def __init__(self, model_id: str, voice: str, endpoint: Endpoint, *, max_bytes: int) -> None:
        self.model_id = model_id
        self._voice = voice
        self._endpoint = endpoint
        self._max_bytes = max_bytes

    async def speak(self, text: str) -> bytes:
        """Return the text as MP3, if the provider keeps to the format it was asked for.

        No deadline but the caller's. Raises ProviderError.
        """
        client = await shared_client(self._endpoint)
        body = {
            "model": self.model_id,
            "voice": self._voice,
            "input": text,
            "response_format": "mp3",
        }
        with log_failures(self.model_id):
            response = await send(client, "/audio/speech", as_json(body))
        return await _read(response, self._max_bytes)


class OpenAITranscription:
    """One model of one provider."""

    def __init__(self, model_id: str, endpoint: Endpoint) -> None:
        self.model_id = model_id
        self._endpoint = endpoint

    async def transcribe(self, data: bytes, *, suffix: str, mime_type: str) -> str:
        """Return what is said in the sound; empty if nothing is.

        Providers tell the format by the file's name, whose `suffix` has no dot. No deadline but the
        caller's. Raises ProviderError.
        """
        client = await shared_client(self._endpoint)
        fields = {"model": self.model_id, "response_format": "json"}
        file = (f"audio.{suffix}", data, mime_type)
        with log_failures(self.model_id):
            response = await send_form(client, "/audio/transcriptions", fields, file)
        return _text_of(await _read(response, MAX_TRANSCRIPTION_BYTES))


async def _read(response: "httpx2.Response", max_bytes: int) -> bytes:
    """Read the answer to its end. Raises ProviderError if it is longer."""
    answer = bytearray()
    async with response_errors(), aclosing(response), aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            answer += part
            if len(answer) > max_bytes:
                raise fault("provider_malformed", f"more than {max_bytes} bytes")
    return bytes(answer)


def _text_of(answer: bytes) -> str:
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError:
        raise fault("provider_malformed", "the transcription is not JSON") from None
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise fault("provider_malformed", "the transcription has no text")
    return text
