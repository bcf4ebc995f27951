"""Get speech from the first provider, with AMBER_TTS_MODEL; every call is in the ledger."""

import time
from functools import partial
from typing import Final

from amber.lib.database.connections import in_thread
from engine.provider.audio import OpenAISpeech
from engine.provider.model import ProviderError
from providers import registry
from providers.usage import ledger
from tools.outgoing.operator_service import unavailable
from tools.protocol import ToolContext

WHAT: Final = "The speech service"


async def speak(text: str, *, context: ToolContext) -> bytes:
    """Return the audio. One provider call, one query, one row. Raises ToolError."""
    speech = await in_thread(registry.engine_speech)
    if speech is None:
        raise unavailable(WHAT, reason="AMBER_TTS_MODEL is set, but there is no provider")
    return await _speak_accounted(speech, text, context)


async def _speak_accounted(speech: OpenAISpeech, text: str, context: ToolContext) -> bytes:
    outcome, started = "cancelled", time.monotonic()
    try:
        audio = await speech.speak(text)
        outcome = "ok"
        return audio
    except ProviderError as error:
        outcome = error.code
        raise unavailable(WHAT, reason=error.message) from None
    finally:
        record = partial(
            ledger.record_speech,
            speech.model_id,
            spoken=text,
            organization_id=context.organization_id,
            user_id=context.user_id,
            guest_id=context.guest_id,
            assistant_id=context.assistant_id,
            turn_id=context.turn_id,
            latency_ms=round((time.monotonic() - started) * 1_000),
            outcome=outcome,
        )
        await in_thread(record)
