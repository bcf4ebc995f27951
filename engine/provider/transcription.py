"""Have speech written down by an OpenAI-compatible provider (`POST audio/transcriptions`).

https://platform.openai.com/docs/api-reference/audio/createTranscription. One request, not repeated:
whoever asked can ask again. Importing this is free, as `engine.provider.client` explains.
"""

from contextlib import aclosing
from typing import Final

import orjson

from engine.provider.client import (
    CONNECT_SECONDS,
    log_failures,
    response_errors,
    send_form,
    shared_client,
)
from engine.provider.faults import fault

MAX_ANSWER_BYTES: Final = 8_000_000
"""A day of talk is about a megabyte."""


class OpenAITranscription:
    """One model of one provider."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self.model_id = model_id
        self._base_url = base_url
        self._api_key = api_key
        self._connect_seconds = connect_seconds

    async def transcribe(self, data: bytes, *, suffix: str, mime_type: str) -> str:
        """Return what is said in the sound; empty if nothing is.

        Providers tell the format by the file's name, whose `suffix` has no dot. No deadline but the
        caller's. Raises ProviderError.
        """
        client = await shared_client(
            self._base_url, self._api_key, connect_seconds=self._connect_seconds
        )
        fields = {"model": self.model_id, "response_format": "json"}
        file = (f"audio.{suffix}", data, mime_type)
        with log_failures(self.model_id):
            response = await send_form(client, "/audio/transcriptions", fields, file)
        answer = bytearray()
        async with (
            response_errors(),
            aclosing(response),
            aclosing(response.aiter_bytes()) as parts,
        ):
            async for part in parts:
                answer += part
                if len(answer) > MAX_ANSWER_BYTES:
                    raise fault("provider_malformed", f"more than {MAX_ANSWER_BYTES} bytes")
        return _text_of(bytes(answer))


def _text_of(answer: bytes) -> str:
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError:
        raise fault("provider_malformed", "the transcription is not JSON") from None
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise fault("provider_malformed", "the transcription has no text")
    return text
