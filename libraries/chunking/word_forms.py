"""Rewrite the words of chunks that were stored in an earlier form, while search goes on.

A library goes document by document, in the order of their ids; `Library.words_cursor` is the last one
done. Until a library is through, a question asks for both forms. Chunks whose words are the same in
both stay untouched: an update would put their vectors into their index again. Chunks that are being
deleted or replaced meanwhile are passed over; what replaces them has the new form.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from amber.lib.search.languages import add_up
from amber.lib.search.stems import WORDS_FORM
from libraries.chunking.chunk_words import chunk_words, tsvector_text
from libraries.models import Document, Library

SECONDS: Final = 15.0
"""A periodic job ends soon: others wait behind it."""

AT_ONCE: Final = 256
"""Chunks of one transaction. Their rows are locked for about as long as their words take."""


def rewrite_words() -> None:
    """Rewrite chunks of libraries in an earlier form, for at most SECONDS."""
    until = time.monotonic() + SECONDS
    early = Library.objects.filter(words_form__lt=WORDS_FORM, deleted_at=None)
    for library in early.order_by("pk").only("pk"):
        while time.monotonic() < until:
            if not rewrite_next(library.pk, until=until):
                break


def rewrite_next(library_id: UUID, *, until: float) -> bool:
    """Rewrite the next document's chunks; return whether there may be another.

    Stops at `until` (by `time.monotonic`) in the middle of a document, which begins anew the next
    time: what is rewritten already costs little then.
    """
    library = Library.objects.filter(pk=library_id, words_form__lt=WORDS_FORM).first()
    if library is None:
        return False
    rest = Document.objects.filter(library=library).only("pk", "name", "path").order_by("pk")
    if library.words_cursor is not None:
        rest = rest.filter(pk__gt=library.words_cursor)
    document = rest.first()
    if document is None:
        _move_on(library, words_form=WORDS_FORM, words_cursor=None)
        return False
    for ids in _batches(document.pk):
        if time.monotonic() >= until:
            return True
        _rewrite(library, document, ids)
    _move_on(library, words_cursor=document.pk)
    return True


def _move_on(library: Library, **changes: UUID | int | None) -> None:
    """Store how far the library is, unless another worker has gone further meanwhile."""
    unchanged = Library.objects.filter(pk=library.pk, words_cursor=library.words_cursor)
    unchanged.update(**changes, updated_at=Now())


def _batches(document_id: UUID) -> Iterator[Sequence[UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS_SQL, [document_id])
        ids = [row[0] for row in cursor.fetchall()]
    yield from (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))


@transaction.atomic
def _rewrite(library: Library, document: Document, ids: Sequence[UUID]) -> None:
    """Rewrite these chunks, and count them for their languages, in one transaction.

    Locks are taken in the order of every publication: chunks, then their library.
    """
    languages: Counter[str] = Counter()
    changed: dict[UUID, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_LOCKED_SQL, [list(ids)])
        for pk, heading, content, model_id, known in cursor.fetchall():
            words = chunk_words(library.pk, document.searched_name, heading or "", content)
            if model_id == library.embedding_model_id:
                languages[words.language] += 1
            if words.counted.keys() != set(known):
                changed[pk] = tsvector_text(words.counted)
        if changed:
            cursor.execute(_UPDATE_SQL, [list(changed), list(changed.values())])
    now = Library.objects.select_for_update(no_key=True).only("languages").get(pk=library.pk)
    now.languages = add_up([now.languages, languages])
    now.save(update_fields=["languages"])


_CHUNKS_SQL: Final = """
SELECT id FROM libraries_documentchunk WHERE document_id = %s ORDER BY embedding_model_id, "order"
"""

_LOCKED_SQL: Final = """
SELECT id, heading, content, embedding_model_id, tsvector_to_array(search)
FROM libraries_documentchunk WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED
"""

_UPDATE_SQL: Final = """
UPDATE libraries_documentchunk AS c SET search = words.search::tsvector
FROM unnest(%s::uuid[], %s::text[]) AS words (id, search) WHERE c.id = words.id
"""
