"""Give messages that an older release wrote the word of their person, by which search finds them.

One statement a batch, which reads no text: the word is put beside those that are there. Doing it twice
does no harm, and search finds all messages meanwhile (`chats.messages.search`).
"""

from typing import Final

from django.db import connection

from amber.lib.workers.time_slice import TimeSlice
from chats.messages.search import WORDS_VERSION

_BATCH: Final = 1_000

_ADD_SQL: Final = """
UPDATE chats_chatmessage AS m SET words_version = %s, search = m.search || array_to_tsvector(ARRAY[
    'messages:' || replace(c.organization_id::text, '-', '') || '::' || COALESCE(c.guest_id, c.user_id::text)
])
FROM chats_chat c WHERE c.id = m.chat_id AND m.id = ANY(ARRAY(
    SELECT id FROM chats_chatmessage WHERE words_version = 0 ORDER BY id LIMIT %s
    FOR NO KEY UPDATE SKIP LOCKED
))
"""
"""The word is that of `chats.messages.search.person_word`."""


def add_person_words() -> None:
    """Add the word to messages that lack it, for a while."""
    time_slice = TimeSlice()
    while not time_slice.is_over() and _add_to_batch():
        pass


def _add_to_batch() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_ADD_SQL, [WORDS_VERSION, _BATCH])
        return bool(cursor.rowcount)
