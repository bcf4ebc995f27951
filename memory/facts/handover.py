"""Hand memories over: a guest signs up, and what was learnt of them becomes the user's."""

from typing import Final

from memory.facts.facts import lock_owner, valid_of
from memory.facts.words import set_words
from memory.models import Memory
from memory.owner import Owner


def hand_over(giver: Owner, taker: Owner) -> int:
    """Give every memory of the giver to the taker, superseded ones too. Returns how many.

    A fact that is known of the taker in the same words is not kept twice. Call it inside a
    transaction.
    """
    # In one order, whoever else hands over between the two.
    for owner in sorted((giver, taker), key=lambda each: each.word):
        lock_owner(owner)
    known = {(m.assistant_id, m.content_md5): m.pk for m in valid_of(taker).only(*_COMPARED)}
    for twin in valid_of(giver).only(*_COMPARED):
        if (kept := known.get((twin.assistant_id, twin.content_md5))) is not None:
            Memory.objects.filter(superseded_by=twin).update(superseded_by=kept)
            twin.delete()
    moved = Memory.objects.filter(**giver.fields).only(*_COMPARED, "content")
    for memory in moved:
        _give(memory, taker)
    return len(moved)


_COMPARED: Final = ("pk", "assistant_id", "content_md5")


def _give(memory: Memory, taker: Owner) -> None:
    """Give one memory. It is indexed anew, since its index names the owner."""
    memory.user_id, memory.guest_id = taker.user_id, taker.guest_id
    set_words(memory, taker)
    memory.save(update_fields=["user", "guest_id", "search", "words_version", "updated_at"])
