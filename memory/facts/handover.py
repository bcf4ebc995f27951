"""Memories that change hands: a guest signs up, and what was learnt of them is theirs from then on."""

from typing import Final

from amber.lib.search.hybrid import index_text
from memory.facts.facts import lock_owner, valid_of
from memory.models import Memory
from memory.owner import Owner


def hand_over(giver: Owner, taker: Owner) -> int:
    """Every memory of the giver becomes the taker's, the superseded ones too; how many did.

    What the taker is known to be in the same words is not kept twice. Call it inside a transaction.
    """
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
    """The words it is found by name the owner: it is indexed anew."""
    memory.user_id, memory.guest_id = taker.user_id, taker.guest_id
    memory.search = index_text(memory.content, taker.word)
    memory.save(update_fields=["user", "guest_id", "search", "updated_at"])
