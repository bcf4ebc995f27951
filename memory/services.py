"""The verbs of a person over their own memories: add, edit, forget. Each is one transaction.

Whoever calls has embedded the text before: nothing here waits for a provider.
"""

from uuid import UUID

from django.db import transaction

from amber.lib.errors import Invalid
from memory.facts import (
    Embedded,
    Fact,
    Outcome,
    checked,
    owner_of,
    remember,
    set_index,
    take_turns,
    valid_of,
)
from memory.models import Memory
from memory.owner import Owner
from memory.sameness import fingerprint


@transaction.atomic(durable=True)
def add_memory(
    owner: Owner, fact: Fact, *, embedded: Embedded | None = None, replaces: UUID | None = None
) -> tuple[Memory, Outcome]:
    """See `memory.facts.remember`."""
    return remember(owner, fact, embedded=embedded, replaces=replaces)


@transaction.atomic(durable=True)
def edit_memory(memory: Memory, *, content: str, embedded: Embedded | None = None) -> Memory:
    """The owner's own words, in place. Raises Invalid, also when another memory says the same."""
    content = checked(content)
    owner = owner_of(memory)
    take_turns(owner)
    same = valid_of(owner).filter(
        assistant_id=memory.assistant_id, content_md5=fingerprint(content)
    )
    if memory.valid_until is None and same.exclude(pk=memory.pk).exists():
        raise Invalid(fields={"content": ["Another memory says this already."]})
    memory.content = content
    memory.content_md5 = fingerprint(content)
    memory.confidence = 1.0
    set_index(memory, owner, embedded)
    memory.save()
    return memory


@transaction.atomic(durable=True)
def forget_memory(memory: Memory) -> None:
    """Delete it, and what it superseded: a forgotten fact does not come back in an older form."""
    doomed = [memory.pk]
    while doomed:
        older = list(Memory.objects.filter(superseded_by__in=doomed).values_list("pk", flat=True))
        Memory.objects.filter(pk__in=doomed).delete()
        doomed = older


@transaction.atomic(durable=True)
def forget_all(owner: Owner) -> int:
    """Every memory of this owner, the superseded ones too; how many."""
    return int(Memory.objects.filter(**owner.fields).delete()[0])
