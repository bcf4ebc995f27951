"""Take chats in: those of one request in one transaction, each known again when it comes twice.

What was written for an import that then failed is undone, the bytes of files too. Old messages are
sealed at once, since the first question may need them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DataError, IntegrityError, connection, transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from accounts.models import IdempotencyRecord
from accounts.principal import Principal
from accounts.tenancy.access import find_visible, get_visible
from accounts.tenancy.idempotency import settle
from amber.lib.errors import AmberError, Invalid
from amber.lib.rest.api import as_amber_error
from assistants.models import Assistant
from chats.events.changes import tell_of_chats
from chats.importing.converted import NOT_CONTAINED, ConvertedChat, SentFile, dict_of, text_of
from chats.importing.documents import read_conversations
from chats.importing.formats import format_of
from chats.importing.known_chats import find_known, hash_content, source_of
from chats.importing.parts import Parts
from chats.messages import transcript
from chats.messages.imported_tree import build_tree
from chats.messages.wire import (
    ImportedChatWire,
    ImportReportWire,
    NotTakenWire,
    RefusedChatWire,
    chat_wire,
)
from chats.models import Chat, ChatMessage
from chats.queue import enqueue_sealing
from libraries.files.services import prepare_file, save_file
from libraries.files.storage import erase_bytes, erasing_unstored
from libraries.models import File

MAX_CHATS_AT_ONCE: Final = 1_000
"""New ones; of those that are known as many are listed."""
MAX_REFUSED_AT_ONCE: Final = 10_000
MAX_MESSAGES_AT_ONCE: Final = 20_000
"""In one request, which takes some ten seconds with as many."""
MAX_FILES_AT_ONCE: Final = 1_000
"""In one request, with those that cannot be read: each is opened."""

UNKNOWN: Final = (
    "It has none of the forms that Amber reads: exports of Amber, ChatGPT, Open WebUI and "
    "LibreChat, and OpenAI's messages."
)
ODD: Final = "A value in it is not one that can be read or stored: a number, a date or a text."
NO_ASSISTANT: Final = (
    'The chat has no assistant that you may use. Give it one with PATCH chats/{id}/ {"assistant_id"}, '
    "import it again with `assistant_id`, or name one with each question."
)
TOO_MANY_COPIES: Final = (
    "There is too much for one request, and copies cannot be told apart. Send fewer chats at once."
)
_BATCH: Final = 500
_ODD_VALUES: Final = (ValueError, TypeError, RecursionError, OverflowError, DataError)
"""What converting, hashing and storing raise for a value that nobody thought of."""

logger = structlog.get_logger(__name__)

_DATES_SQL: Final = """
UPDATE chats_chatmessage SET created_at = given.created_at
FROM unnest(%s::uuid[], %s::timestamptz[]) AS given(id, created_at)
WHERE chats_chatmessage.id = given.id
"""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """`assistant` becomes that of each chat; without one (`is_assistant_named` false) chats keep
    the assistants they were exported with, where the importer sees them. `is_copied`: take in also
    what was taken in before.
    """

    assistant: Assistant | None = None
    is_assistant_named: bool = False
    is_copied: bool = False


@dataclass(slots=True)
class ImportReport:
    chats: list[ImportedChatWire] = field(default_factory=list)
    refused: list[RefusedChatWire] = field(default_factory=list)
    is_complete: bool = True
    known_count: int = 0

    def add(self, entry: ImportedChatWire) -> None:
        """List a chat: each new one, and the first of those that were known."""
        self.known_count += not entry["is_new"]
        if entry["is_new"] or self.known_count <= MAX_CHATS_AT_ONCE:
            self.chats.append(entry)

    def wire(self) -> ImportReportWire:
        wire: ImportReportWire = {
            "chats": self.chats,
            "refused": self.refused,
            "is_complete": self.is_complete,
        }
        if len(self.chats) == 1:
            chat = self.chats[0]["chat"]
            wire |= {"id": chat["id"], "assistant_id": chat["assistant_id"]}
        return wire


def import_chats(
    principal: Principal,
    parts: Callable[[], Parts],
    *,
    options: ImportOptions,
    claim: IdempotencyRecord | None = None,
) -> ImportReport:
    """Take in the chats of an export, all or none; what cannot be made a chat is told.

    `parts` opens the export. Raises Invalid if there is nothing to take in, and as `Parts` and
    `read_conversations` do.
    """
    try:
        return _import_all(principal, parts(), options, claim)
    except IntegrityError:
        # The same import at the same time was faster. Its chats are found now.
        return _import_all(principal, parts(), options, claim)


def import_conversation(
    principal: Principal, parts: Parts, conversation: Any, options: ImportOptions
) -> ImportedChatWire:
    """Take in one chat of an export, in a transaction of its own. Raises as `ChatImporter.take_in`."""
    importer = ChatImporter(principal, parts, options)
    with importer.undoing_files(), transaction.atomic(durable=True):
        return importer.take_in(conversation)


def conversations_of(parts: Parts, *, at_most_bytes: int) -> Iterator[Any]:
    """Yield what the texts of an export hold, one at a time. Raises TooLarge, Invalid."""
    for _, content in parts.texts(at_most=at_most_bytes):
        yield from read_conversations(content)


def _import_all(
    principal: Principal,
    parts: Parts,
    options: ImportOptions,
    claim: IdempotencyRecord | None,
) -> ImportReport:
    report = ImportReport()
    refusals: list[AmberError] = []
    importer = ChatImporter(principal, parts, options)
    with importer.undoing_files(), transaction.atomic(durable=True):
        for conversation in conversations_of(parts, at_most_bytes=settings.AMBER_MAX_IMPORT_BYTES):
            if importer.is_full or len(report.refused) >= MAX_REFUSED_AT_ONCE:
                report.is_complete = False
                break
            try:
                report.add(importer.take_in(conversation))
            except (AmberError, ValidationError) as raised:
                refusal = as_amber_error(raised)
                refusals.append(refusal)
                report.refused.append(refused_chat(conversation, refusal))
        _refuse_empty_import(report, refusals)
        if options.is_copied and not report.is_complete:
            raise Invalid(TOO_MANY_COPIES)
        tell_of_chats(principal.organization_id, principal.user_id)
        settle(claim, status=201, answer=dict(report.wire()))
    return report


def _refuse_empty_import(report: ImportReport, refusals: Sequence[AmberError]) -> None:
    """Raise Invalid if no chat came of the import: its one chat's refusal, where it had one."""
    if report.chats:
        return
    if not refusals:
        raise Invalid("There is no chat in it.")
    if len(refusals) == 1:
        raise refusals[0]
    said = refusals[0].message
    raise Invalid(f"None of its {len(refusals):,} chats can be taken in. The first: {said}")


def refused_chat(conversation: Any, refusal: AmberError) -> RefusedChatWire:
    about = dict_of(conversation)
    name = text_of(about.get("title")) or text_of(about.get("name"))
    return {"name": name[:255], "reason": refusal.message}


class ChatImporter:
    """Takes in chats one after the other, inside the caller's transaction."""

    def __init__(self, principal: Principal, parts: Parts, options: ImportOptions) -> None:
        self._principal = principal
        self._parts = parts
        self._options = options
        self._files: dict[str, File] = {}
        self._paths: list[str] = []
        self._file_count = 0
        self._message_count = 0
        self._new_count = 0

    @property
    def is_full(self) -> bool:
        """Whether one request has taken in as much as it may. What is known or refused is not
        counted, so an export that is sent again goes on behind it."""
        return self._new_count >= MAX_CHATS_AT_ONCE or self._message_count >= MAX_MESSAGES_AT_ONCE

    @contextmanager
    def undoing_files(self) -> Iterator[None]:
        """Erase the bytes that were written if their rows are not kept."""
        with erasing_unstored(self._paths):
            yield

    def take_in(self, conversation: Any) -> ImportedChatWire:
        """Make a chat, or find the one that was made of the same before.

        Raises Invalid and ValidationError for what can be made no chat of; then nothing was written.
        """
        try:
            # Caught outside of it: a value that Postgres refuses breaks the transaction up to its savepoint.
            with self._undoing_chat():
                entry = self._take_in(conversation)
        except _ODD_VALUES as error:
            logger.warning("imported_chat_is_odd", reason=type(error).__name__)
            raise Invalid(ODD) from None
        self._new_count += entry["is_new"]
        return entry

    @contextmanager
    def _undoing_chat(self) -> Iterator[None]:
        """Undo what was written for one chat if it is refused: its rows, and the bytes of its files."""
        before, message_count = len(self._paths), self._message_count
        try:
            with transaction.atomic():
                yield
        except BaseException:
            self._message_count = message_count
            undone = self._paths[before:]
            del self._paths[before:]
            # A later chat that shows the same file must store it again.
            self._files = {
                reference: file
                for reference, file in self._files.items()
                if file.path not in undone
            }
            for path in undone:
                erase_bytes(path)
            raise

    def _take_in(self, conversation: Any) -> ImportedChatWire:
        found = format_of(conversation)
        if found is None:
            raise Invalid(UNKNOWN)
        given = found.convert(conversation)
        assistant = self._assistant(given)
        source = None if self._options.is_copied else source_of(self._principal, found.name, given)
        content_hash = hash_content(given)
        chat = find_known(self._principal, source, content_hash) if source else None
        is_new = chat is None
        if chat is None:
            chat = self._new_chat(given, assistant, source, content_hash)
            count = self._write_messages(chat, given)
        else:
            _give_assistant(chat, assistant)
            count = ChatMessage.objects.filter(chat=chat).count()
        return {
            "chat": chat_wire(chat),
            "format": found.name,
            "is_new": is_new,
            "messages": count,
            "not_taken": _not_taken(given) if is_new else [],
            "notice": None if chat.can_be_asked else NO_ASSISTANT.replace("{id}", str(chat.pk)),
        }

    def _assistant(self, given: ConvertedChat) -> Assistant | None:
        """Return the assistant that the request names, else the exported one if the importer sees
        it, else that of a bound key. Raises Missing for one that is named and not visible."""
        found = self._options.assistant
        if found is None and given.assistant_id and given.is_assistant_named:
            found = get_visible(Assistant, self._principal, given.assistant_id)
        elif found is None and given.assistant_id and not self._options.is_assistant_named:
            found = find_visible(Assistant, self._principal, given.assistant_id)
        bound_id = self._principal.assistant_id
        if found is None and bound_id:
            found = find_visible(Assistant, self._principal, bound_id)
        return found

    def _new_chat(
        self,
        given: ConvertedChat,
        assistant: Assistant | None,
        source: str | None,
        content_hash: str,
    ) -> Chat:
        kept = {
            name: given.chat[name]
            for name in ("name", "prompt", "pinned", "archived")
            if name in given.chat
        }
        return transcript.new_chat(
            self._principal,
            assistant=assistant,
            import_source=source,
            import_hash=content_hash if source else None,
            **kept,
        )

    def _write_messages(self, chat: Chat, given: ConvertedChat) -> int:
        """Write the chat and its messages; return their number. Raises Invalid before it writes."""
        messages, files, leaf_id = self._with_files(given)
        seen = _seen_assistants(self._principal, messages)
        rows = build_tree(chat, messages, assistant_ids=seen, files=files)
        leaf = _leaf(rows, leaf_id)
        self._message_count += len(rows)
        # Without its leaf, which is written below: either names the other.
        chat.save(force_insert=True)
        for file in files.values():
            if file._state.adding:
                save_file(file, self._principal)
        ChatMessage.objects.bulk_create(rows.values(), batch_size=_BATCH)
        _keep_dates(rows.values(), messages)
        kept: dict[str, Any] = {"active_leaf": leaf}
        if created_at := _time_of(given.chat):
            kept["created_at"] = created_at
        Chat.objects.filter(pk=chat.pk).update(**kept)
        for name, value in kept.items():
            setattr(chat, name, value)
        transaction.on_commit(partial(enqueue_sealing, chat.pk))
        return len(rows)

    def _with_files(self, given: ConvertedChat) -> tuple[list[Any], dict[int, File], str | None]:
        """Return the messages without those whose file is not there, the files by place, and the
        leaf."""
        own = self._own_files(given.messages)
        kept: list[Any] = []
        files: dict[int, File] = {}
        follows: dict[str, str | None] = {}
        for message in given.messages:
            if (parent_id := message.get("parent_id")) in follows:
                message = {**message, "parent_id": follows[parent_id or ""]}
            file = own.get(message.get("file_id"))
            if sent := message.get("file"):
                file = self._store(sent, given)
                if file is None and not message["content"]:
                    # Its parent is one that stays, since it was replaced above if it does not.
                    follows[message["id"]] = message["parent_id"]
                    continue
            elif message.get("file_id") and file is None:
                given.not_taken.add("attachment", NOT_CONTAINED)
            if file is not None:
                files[len(kept)] = file
            kept.append(message)
        leaf_id = given.active_leaf_id
        return kept, files, follows.get(leaf_id or "", leaf_id)

    def _own_files(self, messages: Iterable[Mapping[str, Any]]) -> dict[Any, File]:
        """Return the files that the messages name and the importer sees. One query at most."""
        named = {m["file_id"] for m in messages if m.get("file_id")}
        if not named:
            return {}
        rows = File.objects.visible_to(self._principal).defer("text").filter(pk__in=named)
        return {file.pk: file for file in rows}

    def _store(self, sent: SentFile, given: ConvertedChat) -> File | None:
        """Return the file's row, or None and say why there is none."""
        if sent.reference in self._files:
            return self._files[sent.reference]
        data = sent.data
        part = (self._parts.find(sent.reference) if data is None else None) or ""
        try:
            if data is None and not part:
                raise Invalid(NOT_CONTAINED)
            if self._file_count >= MAX_FILES_AT_ONCE:
                raise Invalid(f"Only the first {MAX_FILES_AT_ONCE:,} files are taken in.")
            self._file_count += 1
            if data is None:
                data = self._parts.read(part, at_most=settings.AMBER_MAX_UPLOAD_BYTES)
            file = prepare_file(self._principal, name=sent.name, data=data)
        except AmberError as error:
            given.not_taken.add("attachment", error.message)
            return None
        self._paths.append(file.path)
        if sent.reference:
            self._files[sent.reference] = file
        return file


def _give_assistant(chat: Chat, assistant: Assistant | None) -> None:
    """Give a known chat an assistant if it has none that its user may use."""
    if assistant is not None and not chat.can_be_asked:
        chat.assistant = assistant
        chat.save(update_fields=["assistant", "updated_at"])


def _not_taken(given: ConvertedChat) -> list[NotTakenWire]:
    return [
        {"kind": kind, "count": count, "reason": reason}
        for (kind, reason), count in given.not_taken.items()
    ]


def _seen_assistants(
    principal: Principal, messages: Iterable[Mapping[str, Any]]
) -> Collection[UUID]:
    """Return the assistants that the messages name and the principal sees. One query at most."""
    named = {given["assistant_id"] for given in messages if given.get("assistant_id")}
    if not named:
        return ()
    rows = Assistant.objects.visible_to(principal).filter(pk__in=named)
    return set(rows.values_list("pk", flat=True))


def _keep_dates(rows: Iterable[ChatMessage], messages: Iterable[Mapping[str, Any]]) -> None:
    """Replace the dates at which the rows were written by those of the export. One query."""
    dated = []
    for row, given in zip(rows, messages, strict=True):
        # `auto_now_add` has written the present over whatever a row had.
        if created_at := _time_of(given):
            row.created_at = created_at
            dated.append(row)
    if dated:
        with connection.cursor() as cursor:
            cursor.execute(_DATES_SQL, [[m.pk for m in dated], [m.created_at for m in dated]])


def _time_of(given: Mapping[str, Any]) -> datetime | None:
    """Return the time in the export, at most now: with a later one a chat would head lists until then."""
    created_at: datetime | None = given.get("created_at")
    return created_at and min(created_at, timezone.now())


def _leaf(rows: Mapping[str, ChatMessage], wanted: str | None) -> ChatMessage | None:
    """Return the leaf that the export names, else the last message. Raises Invalid."""
    if wanted is not None and wanted not in rows:
        raise Invalid(fields={"chat.active_leaf_id": ["No message of the import has this id."]})
    if wanted is not None:
        return rows[wanted]
    return list(rows.values())[-1] if rows else None
