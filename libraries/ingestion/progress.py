"""Store how far documents are: one statement for all that are worked on together.

`store_progress` checks each one's fence, and whether it was cancelled; `make_ready` relies on the
locks of `libraries.ingestion.publication`. Other ends of a document are in
`libraries.ingestion.endings`.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import connection

from libraries.ingestion.work import Work
from libraries.models import DocumentStage

# `unnest` takes arrays of arrays apart to the last item, so `pages` come as texts of arrays.
_NOTE_SQL: Final = """
UPDATE libraries_document d
SET stage = COALESCE(v.stage, d.stage), progress = v.progress::jsonb, timings = v.timings::jsonb,
    updated_at = now()
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[], %s::text[])
    AS v(id, fence, stage, progress, timings)
WHERE d.id = v.id AND d.fence = v.fence AND d.status = 'running' AND d.cancel_requested_at IS NULL
RETURNING d.id
"""
# `now()` would be the beginning of the transaction, which may have written chunks for minutes.
_READY_SQL: Final = """
UPDATE libraries_document d
SET stage = 'ready', status = 'ready', progress = v.progress::jsonb, timings = v.timings::jsonb,
    error = '', worker = '', lease_until = NULL, ended_at = clock_timestamp(),
    updated_at = clock_timestamp()
FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS v(id, progress, timings)
WHERE d.id = v.id
"""
_CONTENT_SQL: Final = """
UPDATE libraries_document d SET text = v.text, pages = v.pages::int[], mime_type = v.mime_type
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) AS v(id, text, pages, mime_type)
WHERE d.id = v.id
"""
_PARSED_SQL: Final = """
UPDATE libraries_document d
SET stage = 'parsed', progress = v.progress::jsonb, timings = v.timings::jsonb, updated_at = now(),
    text = v.text, pages = v.pages::int[], mime_type = v.mime_type
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    AS v(id, fence, progress, timings, text, pages, mime_type)
WHERE d.id = v.id AND d.fence = v.fence AND d.status = 'running' AND d.cancel_requested_at IS NULL
RETURNING d.id
"""


def store_progress(works: Sequence[Work], stage: DocumentStage | None = None) -> set[UUID]:
    """Store stage and numbers under the fences; return the ids of those that go on.

    The others were cancelled or lost to another worker. Without `stage` only numbers change.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _NOTE_SQL,
            [
                [work.document.pk for work in works],
                [work.document.fence for work in works],
                [stage and stage.value for _ in works],
                [_json(work.progress) for work in works],
                [_json(work.timings) for work in works],
            ],
        )
        return {row[0] for row in cursor.fetchall()}


def store_parsed(works: Sequence[Work]) -> set[UUID]:
    """Store text, pages and type with the stage, as `store_progress` stores others.

    New content of a searchable document waits until its chunks are there (`make_ready`).
    """
    fresh = [work for work in works if not work.replaces]
    others = [work for work in works if work.replaces]
    still = store_progress(others, DocumentStage.PARSED) if others else set()
    if not fresh:
        return still
    with connection.cursor() as cursor:
        cursor.execute(
            _PARSED_SQL,
            [
                [work.document.pk for work in fresh],
                [work.document.fence for work in fresh],
                [_json(work.progress) for work in fresh],
                [_json(work.timings) for work in fresh],
                *_content_of(fresh),
            ],
        )
        return still | {row[0] for row in cursor.fetchall()}


def make_ready(works: Sequence[Work]) -> None:
    """Mark the documents ready; the caller has locked their rows.

    New content is stored now, together with the chunks that hold offsets into it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _READY_SQL,
            [
                [work.document.pk for work in works],
                [_json(work.counts) for work in works],
                [_json(work.timings) for work in works],
            ],
        )
    if replaced := [work for work in works if work.replaces]:
        ids = [work.document.pk for work in replaced]
        with connection.cursor() as cursor:
            cursor.execute(_CONTENT_SQL, [ids, *_content_of(replaced)])


def _content_of(works: Sequence[Work]) -> tuple[list[str], list[str], list[str]]:
    return (
        [work.text for work in works],
        [f"{{{','.join(map(str, work.pages))}}}" for work in works],
        [work.mime_type for work in works],
    )


def _json(value: dict[str, Any]) -> str:
    # Keys of `timings` are stages, of an enum.
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
