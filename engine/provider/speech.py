"""Turn text into speech by an OpenAI-compatible provider (`POST audio/speech`): MP3 bytes.

https://platform.openai.com/docs/api-reference/audio/createSpeech. One request, not repeated:
whoever asked can ask again. Importing this is free, as `engine.provider.client` explains.
"""

from contextlib import aclosing

from engine.provider.client import (
    CONNECT_SECONDS,
    log_failures,
    response_errors,
    send,
    shared_client,
)
from engine.provider.faults import fault
from engine.provider.model import as_json


class OpenAISpeech:
    """One model and voice of one provider. `max_bytes` bounds what is read of an answer."""

    def __init__(
        self,
        model_id: str,
        voice: str,
        *,
        base_url: str,
        api_key: str,
        max_bytes: int,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self.model_id = model_id
        self._voice = voice
        self._base_url = base_url
        self._api_key = api_key
        self._max_bytes = max_bytes
        self._connect_seconds = connect_seconds

    async def speak(self, text: str) -> bytes:
        """Return the text as MP3, if the provider keeps to the format it was asked for.

        No deadline but the caller's. Raises ProviderError.
        """
        client = await shared_client(
            self._base_url, self._api_key, connect_seconds=self._connect_seconds
        )
        body = {
            "model": self.model_id,
            "voice": self._voice,
            "input": text,
            "response_format": "mp3",
        }
        with log_failures(self.model_id):
            response = await send(client, "/audio/speech", as_json(body))
        audio = bytearray()
        async with (
            response_errors(),
            aclosing(response),
            aclosing(response.aiter_bytes()) as parts,
        ):
            async for part in parts:
                audio += part
                if len(audio) > self._max_bytes:
                    raise fault("provider_malformed", f"more than {self._max_bytes} bytes of audio")
        return bytes(audio)
