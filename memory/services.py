"""Let people add, edit and forget their own memories. Each verb is one transaction.

The caller has embedded the text before: nothing here waits for a provider.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from accounts.models import IdempotencyRecord
from accounts.tenancy.idempotency import settle
from amber.lib.errors import Conflict, FieldText, Invalid, Missing
from memory.facts.fact_matching import fingerprint
from memory.facts.facts import (
    EmbeddedText,
    Fact,
    RememberResult,
    check_content,
    lock_owner,
    owner_of,
    remember,
    set_index,
    valid_of,
)
from memory.models import Memory
from memory.owner import Owner
from memory.wire import memory_wire


@transaction.atomic(durable=True)
def add_memory(
    owner: Owner,
    fact: Fact,
    *,
    embedded: EmbeddedText | None = None,
    replaces: UUID | None = None,
    claim: IdempotencyRecord | None = None,
) -> tuple[Memory, RememberResult]:
    """Remember a fact as `memory.facts.facts.remember` does, and settle the idempotency claim."""
    memory, outcome = remember(owner, fact, embedded=embedded, replaces=replaces)
    settle(claim, status=status_of((memory, outcome)), answer=memory_wire(memory))
    return memory, outcome


def status_of(added: tuple[Memory, RememberResult]) -> int:
    """Return the HTTP status of a POST: 201 for a new memory, 200 for what was known already."""
    return 200 if added[1] is RememberResult.KNOWN else 201


@transaction.atomic(durable=True)
def edit_memory(memory: Memory, *, content: str, embedded: EmbeddedText | None = None) -> Memory:
    """Replace a memory's text by the owner's own words, in place.

    Raises Invalid, also when another memory says the same; Conflict for one that was superseded,
    Missing for one that was forgotten meanwhile.
    """
    content = check_content(content)
    owner = owner_of(memory)
    memory = _lock_memory(memory)
    if memory.valid_until is not None:
        raise Conflict("This memory was superseded. Edit the one that took its place.")
    same = valid_of(owner).filter(
        assistant_id=memory.assistant_id, content_md5=fingerprint(content)
    )
    if same.exclude(pk=memory.pk).exists():
        said = FieldText("Another memory already says this.", "unique")
        raise Invalid(fields={"content": [said]})
    memory.content = content
    memory.content_md5 = fingerprint(content)
    memory.confidence = 1.0
    set_index(memory, owner, embedded)
    memory.save()
    return memory


@transaction.atomic(durable=True)
def forget_memory(memory: Memory) -> None:
    """Delete it, and what it superseded: a forgotten fact does not come back in an older form."""
    lock_owner(owner_of(memory))
    _delete_with_history([memory.pk])


@transaction.atomic(durable=True)
def forget_all(owner: Owner, *, assistant_id: UUID | None = None) -> int:
    """Delete every memory of this owner, or those for one assistant, superseded ones too.

    Returns how many there were.
    """
    lock_owner(owner)
    rows = Memory.objects.filter(**owner.fields)
    if assistant_id is not None:
        rows = rows.filter(assistant_id=assistant_id)
    return int(rows.delete()[0])


def _lock_memory(memory: Memory) -> Memory:
    """Lock the owner's memories and return this one as it is now. Raises Missing."""
    lock_owner(owner_of(memory))
    found: Memory | None = Memory.objects.filter(pk=memory.pk).first()
    if found is None:
        raise Missing
    return found


def _delete_with_history(ids: Sequence[UUID]) -> None:
    doomed = list(ids)
    while doomed:
        older = list(Memory.objects.filter(superseded_by__in=doomed).values_list("pk", flat=True))
        Memory.objects.filter(pk__in=doomed).delete()
        doomed = older
