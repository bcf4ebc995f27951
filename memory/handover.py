"""Memories that change hands: a guest signs up, and what was learnt of them is theirs from then on."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from amber.lib.hybrid import indexed
from memory.facts import take_turns, valid_of
from memory.models import Memory
from memory.owner import Owner

_BATCH: Final = 200


def hand_over(giver: Owner, taker: Owner) -> int:
    """Every memory of the giver becomes the taker's, the superseded ones too; how many did.

    What the taker is known to be in the same words is not kept twice. Call it inside a transaction.
    """
    for owner in sorted((giver, taker), key=lambda each: each.word):
        take_turns(owner)
    known = {(m.assistant_id, m.content_md5): m.pk for m in valid_of(taker).only(*_COMPARED)}
    for twin in valid_of(giver).only(*_COMPARED):
        if (kept := known.get((twin.assistant_id, twin.content_md5))) is not None:
            Memory.objects.filter(superseded_by=twin).update(superseded_by=kept)
            twin.delete()
    return sum(_handed_over(batch, taker) for batch in _batches(giver))


_COMPARED: Final = ("pk", "assistant_id", "content_md5")


def _batches(giver: Owner) -> Iterator[QuerySet[Memory]]:
    ids: list[UUID] = list(Memory.objects.filter(**giver.fields).values_list("pk", flat=True))
    for start in range(0, len(ids), _BATCH):
        yield Memory.objects.filter(pk__in=ids[start : start + _BATCH]).only("pk", "content")


def _handed_over(memories: QuerySet[Memory], taker: Owner) -> int:
    """The words it is found by name the owner: they are indexed anew."""
    for memory in (moved := list(memories)):
        memory.search = indexed(memory.content, taker.word)
        memory.user_id, memory.guest_id = taker.user_id, taker.guest_id
    return Memory.objects.bulk_update(moved, ["search", "user", "guest_id"])
