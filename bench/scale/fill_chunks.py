"""Write libraries with documents and chunks for an installation that `bench.scale.fill` fills."""

import struct
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg

from bench.scale.world import DOCUMENT_CHUNKS, row_id


class ChunkFiller:
    """Writes libraries with documents and chunks by COPY, vectors drawn around the topics of texts."""

    def __init__(self, connection: psycopg.Connection[Any], drawn: Any) -> None:
        from bench.library_search import DIMENSIONS
        from bench.scale.samples import chunk_tsvector, new_world

        self.connection, self.drawn = connection, drawn
        self.directions, self.dimensions = new_world().directions, DIMENSIONS
        self.tsvector = chunk_tsvector
        self.rng = np.random.default_rng(3)
        self.model_id = self._model()

    def _model(self) -> UUID:
        from providers.models import EmbeddingModel, Provider

        provider = Provider.objects.create(name="Scale", base_url="http://127.0.0.1:9/v1")
        made = EmbeddingModel.objects.create(
            provider=provider,
            alias="scale",
            upstream_id="scale",
            dimensions=self.dimensions,
        )
        return UUID(str(made.pk))

    def write(self, number: int, organization: int, count: int) -> None:
        from libraries.models import Document, Library

        library = Library.objects.create(
            pk=row_id("library", number),
            organization_id=row_id("organization", organization),
            name=f"Library {number}",
            embedding_model_id=self.model_id,
            chunk_count=count,
            shared=True,
            languages={"en": count},
        )
        documents = [
            Document(
                organization_id=library.organization_id,
                library=library,
                name=f"document-{each}.txt",
                stage="ready",
                status="ready",
                content_hash=f"{number}-{each}",
                started_at=datetime.now(UTC),
                ended_at=datetime.now(UTC) - timedelta(days=each % 300),
            )
            for each in range(-(-count // DOCUMENT_CHUNKS))
        ]
        Document.objects.bulk_create(documents, batch_size=1_000)
        self._copy(library, [document.pk.bytes for document in documents], count)

    def _copy(self, library: Any, documents: list[bytes], count: int) -> None:
        from amber.lib.ids import new_id
        from libraries.chunking.chunk_words import library_word

        word = library_word(library.pk)
        places = self.rng.integers(0, len(self.drawn), count)
        vectors = self.rng.standard_normal((count, self.dimensions), np.float32)
        vectors += self.directions[[self.drawn[each][0] for each in places]]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        halves = vectors.astype(">f2")
        head = struct.pack(">HH", self.dimensions, 0)
        stamp = struct.pack(
            ">q",
            (datetime.now(UTC) - datetime(2000, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1),
        )
        with self.connection.cursor() as cursor, cursor.copy(_CHUNKS_COPY) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
            for place, drawn in enumerate(places.tolist()):
                _, text, counted = self.drawn[drawn]
                fields = (
                    *(new_id().bytes, stamp, stamp, library.organization_id.bytes),
                    *(documents[place // DOCUMENT_CHUNKS], library.pk.bytes, self.model_id.bytes),
                    *(
                        text.encode(),
                        *map(_INTEGER.pack, (place % DOCUMENT_CHUNKS, 0, len(text), 90)),
                    ),
                    *(b"\1", head + halves[place].tobytes()),
                    self.tsvector(counted, word),
                )
                copy.write(_COUNT + b"".join(_INTEGER.pack(len(each)) + each for each in fields))
            copy.write(struct.pack(">h", -1))


_INTEGER: Final = struct.Struct(">i")
_COUNT: Final = struct.pack(">h", 15)
_CHUNKS_COPY: Final = b"""
COPY libraries_documentchunk (id, created_at, updated_at, organization_id, document_id, library_id,
    embedding_model_id, content, "order", start, "end", tokens, vectorized, vector, search)
FROM STDIN (FORMAT binary)
"""
