"""Write chunks into their table by COPY, in the caller's transaction.

Postgres refuses COPY into a table whose rows a policy limits, so the rows go through a temporary one:
the policies look at each as it is inserted.

Rows of chunks exist for what can be found, so each is written with its vector and its words, and
is searchable when the transaction commits. The rows are packed here, while Postgres is busy with
those before them. Vectors of a wrong size are refused by the table (`chunk_vector_fits_model`).

COPY's binary form: https://www.postgresql.org/docs/18/sql-copy.html#id-1.9.3.55.9.4
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connection, transaction

from amber.lib.ids import new_id
from libraries.chunking.chunk_words import chunk_words, tsvector_bytes
from libraries.embedding.halfvec import halfvec_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk to be written. `vector` has shape (dimensions of the model,) and is normalised.

    `name` is the document's, by which the chunk is found too.
    """

    organization_id: UUID
    document_id: UUID
    library_id: UUID
    embedding_model_id: UUID
    content: str
    order: int
    start: int
    end: int
    page: int | None
    heading: str | None
    tokens: int
    vector: "NDArray[Any]"
    name: str = ""


@transaction.atomic
def write_chunks(rows: Iterable[ChunkRow]) -> Counter[str]:
    """Write the rows by one COPY and return how many are in each language.

    Raises IntegrityError for vectors of a size that the model does not make.
    """
    languages: Counter[str] = Counter()
    stamp = _INTEGER8.pack((datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1))
    with connection.cursor() as cursor:
        cursor.execute(_NEW_TABLE_SQL)
    # psycopg's cursor itself: Django's wrapper does not translate the errors of a COPY.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.cursor.copy(_COPY_SQL) as copy,
    ):
        copy.write(_HEAD)
        for row in rows:
            words = chunk_words(row.library_id, row.name, row.heading or "", row.content)
            copy.write(_pack_row(row, words.counted, stamp))
            languages[words.language] += 1
        copy.write(_TAIL)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_SQL)
    return languages


_COLUMNS: Final = """
    id, created_at, updated_at, organization_id, document_id, library_id, embedding_model_id,
    content, "order", start, "end", page, heading, tokens, vectorized, vector, search
"""
_NEW_TABLE_SQL: Final = """
CREATE TEMPORARY TABLE written_chunk (LIKE libraries_documentchunk) ON COMMIT DROP
"""
_COPY_SQL: Final = f"COPY written_chunk ({_COLUMNS}) FROM STDIN (FORMAT binary)"
# Dropped at once: a publication writes many pieces in its transaction, each by this table.
_INSERT_SQL: Final = f"""
INSERT INTO libraries_documentchunk ({_COLUMNS}) SELECT {_COLUMNS} FROM written_chunk;
DROP TABLE written_chunk
"""  # noqa: S608  (no value is formatted in)
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_HEAD: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TAIL: Final = struct.pack(">h", -1)
_FIELDS: Final = struct.pack(">h", 17)
_NULL: Final = struct.pack(">i", -1)
_INTEGER4: Final = struct.Struct(">i")
_INTEGER8: Final = struct.Struct(">q")
_TRUE: Final = b"\1"


def _pack_row(row: ChunkRow, words: Mapping[str, int], stamp: bytes) -> bytes:
    fields = (
        new_id().bytes,
        stamp,
        stamp,
        row.organization_id.bytes,
        row.document_id.bytes,
        row.library_id.bytes,
        row.embedding_model_id.bytes,
        row.content.encode(),
        _INTEGER4.pack(row.order),
        _INTEGER4.pack(row.start),
        _INTEGER4.pack(row.end),
        None if row.page is None else _INTEGER4.pack(row.page),
        None if row.heading is None else row.heading.encode(),
        _INTEGER4.pack(row.tokens),
        _TRUE,
        halfvec_bytes(row.vector),
        tsvector_bytes(words),
    )
    return _FIELDS + b"".join(
        _NULL if field is None else _INTEGER4.pack(len(field)) + field for field in fields
    )
