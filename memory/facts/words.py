"""Choose the words that a memory is found by, and choose them anew when a release chooses others."""

from typing import Final

from amber.lib.search.hybrid import index_text
from amber.lib.workers.time_slice import TimeSlice
from memory.models import Memory
from memory.owner import Owner

WORDS_VERSION: Final = 1
"""Raise it when `index_text` chooses other words: 1 stems them by language."""

_BATCH: Final = 200


def set_words(memory: Memory, owner: Owner) -> None:
    """Set what this owner finds the memory by, not saved yet."""
    memory.search = index_text(memory.content, owner.word)
    memory.words_version = WORDS_VERSION


def reindex_waiting() -> None:
    """Index memories anew whose words an older release chose, for a while. They are found meanwhile, by
    the words they have. What was edited since it was read waits for the next look."""
    time_slice = TimeSlice()
    old = Memory.objects.filter(words_version__lt=WORDS_VERSION).defer("vector", "search")
    while not time_slice.is_over() and (memories := list(old[:_BATCH])):
        for memory in memories:
            set_words(memory, Owner(memory.organization_id, memory.user_id, memory.guest_id))
            Memory.objects.filter(pk=memory.pk, content_md5=memory.content_md5).update(
                search=memory.search, words_version=memory.words_version
            )
