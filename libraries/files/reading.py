"""Read the text of files that people give to chats, once, and keep it with the file.

PDF and Office files go through the same confined parsers as documents; speech is transcribed by the
provider's model. That is done in the background after an upload. A turn that needs the text before does
it itself (`read_files`), so that a lost message only costs that turn time. If there is no text, a
sentence says why, for people and for models. It is not tried again if the file itself is the reason.

Parsers and the provider's client are loaded with the first file.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Final

import structlog
from django.utils import timezone

from amber.lib.database.connections import release_connections
from amber.lib.errors import Unavailable
from libraries.files.audio import audio_kind
from libraries.files.content import HEAD_BYTES
from libraries.files.payload import Payload
from libraries.files.storage import seekable_bytes
from libraries.models import File

if TYPE_CHECKING:
    from engine.provider.audio import OpenAITranscription

logger = structlog.get_logger(__name__)

MAX_READ_CHARS: Final = 2_000_000
"""Of one file: a long book. Models are given parts of it."""
TRANSCRIPTION_SECONDS: Final = 120.0

GONE: Final = "Its content is no longer there."
NOT_NOW: Final = "It could not be read just now; ask again later."
NO_TRANSCRIPTION: Final = "No model that writes speech down is configured here."
NOT_TRANSCRIBED: Final = "The model that writes speech down did not do so; ask again later."
NOTHING_SAID: Final = "Nothing is said in it."
_CUT: Final = "\n[Cut: these are the first {:,} of {:,} characters.]"


class NotReadable(Exception):
    """There is no text. `is_final`: it will not help to try again."""

    def __init__(self, why: str, *, is_final: bool) -> None:
        super().__init__(why)
        self.is_final = is_final


def read_files(files: Iterable[File]) -> None:
    """Read those of the files that wait for it. No query if none does.

    Costs up to a minute for each, and holds no database connection meanwhile.
    """
    for file in files:
        if file.is_waiting:
            read_file(file)


def read_file(file: File) -> None:
    """Read the file's text, or why there is none, into its row and this object. Raises nothing but
    the database's errors."""
    text, unreadable, is_final = None, "", True
    release_connections()
    try:
        text = _read(file)
    except NotReadable as problem:
        unreadable, is_final = str(problem), problem.is_final
    file.text, file.unreadable = text, unreadable
    file.read_at = timezone.now() if is_final else None
    rows = File.objects.filter(pk=file.pk)
    rows.update(text=text, unreadable=unreadable, read_at=file.read_at)


def _read(file: File) -> str:
    try:
        with seekable_bytes(file.path) as stream:
            data = Payload(stream)
            is_sound = audio_kind(data.head(HEAD_BYTES)) is not None
            text = _transcribe(file, data.read()) if is_sound else _parse(file, stream)
    except FileNotFoundError:
        raise NotReadable(GONE, is_final=True) from None
    except Unavailable:
        raise NotReadable(NOT_NOW, is_final=False) from None
    if len(text) > MAX_READ_CHARS:
        text = text[:MAX_READ_CHARS] + _CUT.format(MAX_READ_CHARS, len(text))
    return text


def _parse(file: File, data: IO[bytes]) -> str:
    from engine.text.excerpt import mark_pages
    from libraries.parsing import ParserLost, Unreadable, parse

    try:
        parsed = parse(data, name=file.name, mime_type="")
    except Unreadable as refusal:
        raise NotReadable(str(refusal), is_final=True) from None
    except ParserLost:
        raise NotReadable(NOT_NOW, is_final=False) from None
    return mark_pages(parsed.text, parsed.pages)


def _transcribe(file: File, data: bytes) -> str:
    """Return what is said in the sound. One provider call, one query, one row of the ledger."""
    from providers import registry

    transcription = registry.engine_transcription()
    if transcription is None:
        raise NotReadable(NO_TRANSCRIPTION, is_final=False)
    text = _ask_provider(transcription, file, data)
    if not text.strip():
        raise NotReadable(NOTHING_SAID, is_final=True)
    return text.replace("\0", "")


def _ask_provider(transcription: "OpenAITranscription", file: File, data: bytes) -> str:
    """Return the provider's text, and record the call whatever became of it. Raises NotReadable."""
    from amber.lib.workers.thread_bridge import run_on_loop
    from engine.provider.model import ProviderError
    from providers.usage import ledger

    suffix, mime_type = audio_kind(data) or ("", "")

    async def transcribe(_: object) -> str:
        async with asyncio.timeout(TRANSCRIPTION_SECONDS):
            return await transcription.transcribe(data, suffix=suffix, mime_type=mime_type)

    release_connections()
    text, outcome, started = "", "cancelled", time.monotonic()
    try:
        text = run_on_loop(transcribe)
        outcome = "ok"
        return text
    except ProviderError as error:
        outcome = error.code
        logger.warning("file_not_transcribed", file_id=str(file.pk), reason=error.message)
        raise NotReadable(NOT_TRANSCRIBED, is_final=error.code == "provider_rejected") from None
    except TimeoutError:
        outcome = "provider_timeout"
        raise NotReadable(NOT_TRANSCRIBED, is_final=False) from None
    finally:
        ledger.record_speech(
            transcription.model_id,
            written=text,
            organization_id=file.organization_id,
            user_id=file.user_id,
            guest_id=file.guest_id,
            api_key_id=file.api_key_id,
            latency_ms=round((time.monotonic() - started) * 1_000),
            outcome=outcome,
        )
