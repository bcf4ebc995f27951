"""What a call brought besides its text, made into files of whoever asked.

    brought = await files.take(output.files)    # beside the event loop; nothing is saved
    rows = files.save(result)                   # in the transaction that stores the result
    files.erase_unsaved()                       # at the turn's end: results that were not stored

A file belongs to its turn's user or guest, and to the key that asked; that of a turn without a chat expires with the turn.
What the bytes are is decided as for uploads (`libraries.files.content`), whose code is loaded when
the first file comes. Refuses the rest of a result with too many files, and says so to the model.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from amber.lib.errors import AmberError, TooLarge
from engine.tools import ResultFile, ToolResult
from libraries.files.attachments import attachment_of
from libraries.files.names import clean_name
from libraries.files.new_files import unsaved_file
from libraries.files.storage import erase_bytes
from libraries.files.text import capped_text
from libraries.models import File
from tools.protocol import ProducedFile, ToolContext

MAX_FILES: Final = 8
"""Of one result. A page of search results with thumbnails has ten; a model looks at fewer."""


@dataclass(frozen=True, slots=True)
class CallFiles:
    """`notes` are lines of the result that name each file, or say why one is missing.

    `document` goes with the result, `shown` behind it: the images, and further documents.
    """

    notes: tuple[str, ...] = ()
    document: ResultFile | None = None
    shown: tuple[ResultFile, ...] = ()


class ResultFiles:
    """The files of one attempt at a turn. `vision`: its model is shown images, not their names."""

    def __init__(self, context: ToolContext, *, vision: bool) -> None:
        self._context = context
        self._vision = vision
        self._unsaved: dict[str, File] = {}

    async def take(
        self, made: Sequence[ProducedFile], *, whole: tuple[str, str] | None = None
    ) -> CallFiles:
        """Write the bytes of these files. `whole` is name and text of a result that was cut.

        Raises nothing: what cannot be kept becomes a note.
        """
        if not made and whole is None:
            return CallFiles()
        return await asyncio.to_thread(self._take, made, whole)

    def save(self, result: ToolResult) -> tuple[File | None, list[File]]:
        """The saved rows of a result: of its document, and of what is shown behind it."""
        kept = self._save(result.kept) if result.kept else None
        return kept, [self._save(file) for file in result.produced]

    def erase_unsaved(self) -> None:
        """Erase bytes whose row was never saved, as their turn stopped or is another's."""
        unsaved, self._unsaved = self._unsaved, {}
        for file in unsaved.values():
            erase_bytes(file.path)

    def _save(self, file: ResultFile) -> File:
        row = self._unsaved[file.id]
        row.save(force_insert=True)
        transaction.on_commit(partial(self._unsaved.pop, file.id, None))
        return row

    # -- In a thread -----------------------------------------------------------------------------

    def _take(self, made: Sequence[ProducedFile], whole: tuple[str, str] | None) -> CallFiles:
        notes: list[str] = []
        files = [file for each in made[:MAX_FILES] if (file := self._read(each, notes))]
        if len(made) > MAX_FILES:
            more = len(made) - MAX_FILES
            notes.append(f"[{more} more were left out: a result brings at most {MAX_FILES} files.]")
        document = self._whole(*whole, notes) if whole else None
        if document is None:
            document = next((file for file in files if not file.is_image), None)
        shown = [file for file in files if file is not document]
        return CallFiles(
            tuple(notes),
            self._attach_file(document) if document else None,
            tuple(self._attach_file(file) for file in shown),
        )

    def _read(self, made: ProducedFile, notes: list[str]) -> File | None:
        from libraries.files.content import read_content

        name = clean_name(made.name)
        try:
            content = read_content(name, made.content)
            file = self._file(name, content.data, content.mime_type, content.text)
        except AmberError as error:
            notes.append(f"[{name} was left out: {error.message}]")
            return None
        notes.append(f"[{'image' if file.is_image else 'file'}: {name}]")
        return file

    def _whole(self, name: str, text: str, notes: list[str]) -> File | None:
        try:
            return self._file(f"{name}.txt", _within_limit(text), "text/plain", capped_text(text))
        except AmberError as error:
            notes.append(f"[The whole result could not be kept: {error.message}]")
            return None

    def _file(self, name: str, data: bytes, mime_type: str, text: str | None) -> File:
        context = self._context
        file = unsaved_file(
            name=name,
            data=data,
            mime_type=mime_type,
            text=text,
            organization_id=context.organization_id,
            user_id=context.user_id,
            guest_id=context.guest_id,
            api_key_id=context.api_key_id,
            expired_at=self._expiry(),
        )
        self._unsaved[str(file.pk)] = file
        return file

    def _expiry(self) -> datetime | None:
        if self._context.chat_id is not None:
            return None
        return timezone.now() + timedelta(seconds=settings.AMBER_STATELESS_KEEP_SECONDS)

    def _attach_file(self, file: File) -> ResultFile:
        return ResultFile(str(file.pk), attachment_of(file, vision=self._vision))


def _within_limit(text: str) -> bytes:
    """Raises TooLarge."""
    data = text.encode()
    if len(data) > settings.AMBER_MAX_UPLOAD_BYTES:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")
    return data
