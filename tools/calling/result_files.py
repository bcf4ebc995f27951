"""Make files of what a call returned besides text, owned by whoever asked.

    call_files = await files.take(output.files)  # in a thread; writes bytes but no row
    rows = files.save(result)                    # in the transaction that stores the result
    files.erase_unsaved()                        # at the turn's end: results that were not stored

A file belongs to its turn's user or guest, and to the key that asked; without a chat it expires
with the turn. The type of the bytes is decided as for uploads (`libraries.files.content`), whose
code is loaded with the first file. Of too many files the rest is left out, and the model is told.
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
from libraries.files.payload import Payload
from libraries.files.storage import erase_bytes
from libraries.files.text import capped_text
from libraries.models import File
from tools.protocol import ProducedFile, ToolContext

MAX_FILES: Final = 8
"""For one result. A page of search results with thumbnails has ten; a model looks at fewer."""


@dataclass(frozen=True, slots=True)
class CallFiles:
    """The files of one result. `notes` name each file, or say why one is missing, on a line each.

    `document` is sent with the result; `shown`, the images and further documents, after it.
    """

    notes: tuple[str, ...] = ()
    document: ResultFile | None = None
    shown: tuple[ResultFile, ...] = ()


class ResultFiles:
    """Holds the files of one attempt at a turn. `vision`: its model is shown images, not names."""

    def __init__(self, context: ToolContext, *, vision: bool) -> None:
        self._context = context
        self._vision = vision
        self._unsaved: dict[str, File] = {}

    async def take(
        self, made: Sequence[ProducedFile], *, whole: tuple[str, str] | None = None
    ) -> CallFiles:
        """Write the bytes of these files. `whole` is the name and text of a result that was cut.

        A file that cannot be kept becomes a note instead of an error.
        """
        if not made and whole is None:
            return CallFiles()
        return await asyncio.to_thread(self._take, made, whole)

    def save(self, result: ToolResult) -> tuple[File | None, list[File]]:
        """Save a result's rows; return that of its document and those of what is shown after it."""
        kept = self._save(result.kept) if result.kept else None
        return kept, [self._save(file) for file in result.produced]

    def erase_unsaved(self) -> None:
        """Erase bytes whose row was never saved, as the turn stopped or another worker has it."""
        unsaved, self._unsaved = self._unsaved, {}
        for file in unsaved.values():
            erase_bytes(file.path)

    def _save(self, file: ResultFile) -> File:
        row = self._unsaved[file.id]
        row.save(force_insert=True)
        # Only a commit makes the bytes safe from `erase_unsaved`: a rollback leaves no row.
        transaction.on_commit(partial(self._unsaved.pop, file.id, None))
        return row

    # -- Run in a thread -------------------------------------------------------------------------

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

    def _file(self, name: str, data: bytes | Payload, mime_type: str, text: str | None) -> File:
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
    """Encode the text. Raises TooLarge if that is more than an upload may have."""
    data = text.encode()
    if len(data) > settings.AMBER_MAX_UPLOAD_BYTES:
        raise TooLarge(f"A file may have at most {settings.AMBER_MAX_UPLOAD_BYTES:,} bytes.")
    return data
