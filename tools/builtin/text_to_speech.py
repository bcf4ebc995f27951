"""The built-in tool `text_to_speech` has a text spoken and gives the user the audio as a file.

It is offered when the operator has configured a service: AMBER_TTS_URL (a form), else
AMBER_TTS_MODEL (the first provider). What comes back must be audio by its bytes, whatever its name.
"""

from typing import Annotated

from django.conf import settings

from libraries.files.audio import audio_kind
from tools.calling.registry import register_tool
from tools.protocol import Circumstances, ProducedFile, ToolContext, ToolError, ToolOutput


def _is_offered(_: Circumstances) -> bool:
    return bool(settings.AMBER_TTS_URL or settings.AMBER_TTS_MODEL)


@register_tool(when=_is_offered, idempotent=True, harmless=True)
async def text_to_speech(
    context: ToolContext,
    text: Annotated[str, "What to say, word for word, without markup"],
) -> ToolOutput:
    """Speaks a text. The user gets the audio as a file."""
    text = text.strip()
    most_chars = settings.AMBER_TTS_MAX_CHARS
    if not text or len(text) > most_chars:
        raise ToolError(f"A text has 1 to {most_chars:,} characters, this has {len(text):,}.")
    audio = await _speak(text, context)
    kind = audio_kind(audio)
    if kind is None:
        raise ToolError("The speech service answered with something that is not audio.")
    suffix, mime_type = kind
    file = ProducedFile(f"speech.{suffix}", mime_type, audio)
    return ToolOutput(f"The speech is in the file {file.name}.", files=(file,))


async def _speak(text: str, context: ToolContext) -> bytes:
    # Imported here, as idle processes do without these and the HTTP client: 4 MB.
    from tools.builtin.speech import form_service, provider_speech

    if settings.AMBER_TTS_URL:
        return await form_service.speak(
            settings.AMBER_TTS_URL,
            text,
            form=settings.AMBER_TTS_FORM,
            max_bytes=settings.AMBER_MAX_UPLOAD_BYTES,
            context=context,
        )
    return await provider_speech.speak(text, context=context)
