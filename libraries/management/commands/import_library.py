"""Import the files of a folder, or of a commit of a local Git repository, into a library.

    manage.py import_library <library id> ./manuals --include '*.md' --exclude drafts
    manage.py import_library <library id> ./project --ref v2.1 --prefix project

Each file becomes a document at its path; again, only what changed is indexed anew. Nothing is
deleted. Then the command waits for the workers, unless told not to, and ends with an error if a
file could not be stored or a document could not be read.
"""

import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from amber.lib.errors import AmberError
from libraries.git.fetching import GitRefused
from libraries.git.local import FolderReader, pack_local_commit
from libraries.git.packs import PackReader, PathFilter, RepositoryFile
from libraries.ingestion import intake
from libraries.ingestion.intake import DocumentSource, PlacedDocument
from libraries.models import Document, DocumentStatus, Library
from libraries.queue import enqueue_ingestion

REPORTED_EVERY: Final = 100
LOOK_SECONDS: Final = 2.0


class Command(BaseCommand):
    help = "Import the files of a folder or of a local Git repository into a library."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("library", type=UUID, help="The id of the library.")
        parser.add_argument("folder", type=Path)
        parser.add_argument("--include", action="append", default=[], metavar="PATTERN")
        parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN")
        parser.add_argument("--ref", help="Read this branch, tag or commit, not the files.")
        parser.add_argument("--prefix", default="", help="Put this before every path.")
        parser.add_argument("--no-wait", action="store_true", help="Do not wait for indexing.")

    def handle(self, **options: Any) -> None:
        library = Library.objects.filter(pk=options["library"]).first()
        if library is None:
            raise CommandError("There is no library with this id.")
        if not options["folder"].is_dir():
            raise CommandError(f"There is no folder {options['folder']}.")
        self._outcomes: Counter[str] = Counter()
        self._ids: list[UUID] = []
        wanted = PathFilter(
            include=options["include"],
            exclude=options["exclude"],
            max_file_bytes=settings.AMBER_MAX_UPLOAD_BYTES,
        )
        try:
            self._read(library, wanted, options)
        except GitRefused as refusal:
            raise CommandError(str(refusal)) from None
        failed = 0 if options["no_wait"] else self._wait()
        if failed or self._outcomes["refused"]:
            raise CommandError("Not everything could be imported.")

    def _read(self, library: Library, wanted: PathFilter, options: dict[str, Any]) -> None:
        prefix = options["prefix"].strip("/")
        if options["ref"] is None:
            folder = FolderReader(options["folder"], wanted)
            self._store(library, folder, prefix)
            self._report(folder.skipped)
            return
        with tempfile.TemporaryFile() as into:
            pack = pack_local_commit(options["folder"], ref=options["ref"], into=into)
            reader = PackReader(pack, wanted)
            self._store(library, reader, prefix)
        self._report(reader.skipped)

    def _store(self, library: Library, files: Iterable[RepositoryFile], prefix: str) -> None:
        for number, file in enumerate(files, start=1):
            path = f"{prefix}/{file.path}" if prefix else file.path
            given = DocumentSource(name=PurePosixPath(path).name, data=file.data or b"", path=path)
            try:
                placed = intake.put(library, given, also=_enqueue)
            except AmberError as error:
                self._outcomes["refused"] += 1
                self.stderr.write(f"{path}: {error.message}")
                continue
            self._outcomes[placed.outcome.value] += 1
            self._ids.append(placed.document.pk)
            if number % REPORTED_EVERY == 0:
                self._report({})

    def _report(self, skipped: dict[str, int]) -> None:
        said = [f"{count} {outcome}" for outcome, count in sorted(self._outcomes.items())]
        said += [f"{count} skipped ({reason})" for reason, count in sorted(skipped.items())]
        self.stdout.write(", ".join(said) or "Nothing to import.")

    def _wait(self) -> int:
        """Wait until every document has ended, and return how many failed."""
        told: dict[str, int] = {}
        while True:
            counts = self._counts()
            if counts != told:
                self.stdout.write(", ".join(f"{n} {status}" for status, n in counts.items()))
                told = counts
            if not set(counts) & {DocumentStatus.QUEUED, DocumentStatus.RUNNING}:
                break
            time.sleep(LOOK_SECONDS)
        failed = Document.objects.filter(pk__in=self._ids, status=DocumentStatus.FAILED)
        for path, error in failed.values_list("path", "error"):
            self.stderr.write(f"{path}: {error}")
        return len(failed)

    def _counts(self) -> dict[str, int]:
        rows = Document.objects.filter(pk__in=self._ids).values_list("status", flat=True)
        return dict(sorted(Counter(rows).items()))


def _enqueue(_: PlacedDocument) -> None:
    transaction.on_commit(enqueue_ingestion)
