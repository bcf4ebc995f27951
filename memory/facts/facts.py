"""Remember facts about an owner, and query what is known.

Writers of one owner's memories take turns (an advisory lock), so that the same fact told ten times
at once is one row; a constraint enforces what the lock promises. A fact that is superseded keeps
its row. The caller has embedded the text before: nothing here waits for a provider.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from pgvector.django import CosineDistance

from amber.lib.errors import FieldText, Invalid
from amber.lib.ids import new_id
from memory.facts.fact_matching import NEAR_SAME, can_be_same, contradicts, fingerprint
from memory.facts.own_words import adds_nothing
from memory.facts.words import set_words
from memory.models import Memory
from memory.owner import Owner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_CONTENT_CHARS = 2_000
"""A fact is a sentence or two; longer texts belong in a library."""

MAX_EVIDENCE = 50
"""A fact that is repeated every day needs no longer list."""

MAX_COMPARED = 2_000
"""More memories than one person has."""


class RememberResult(enum.Enum):
    ADDED = "added"
    KNOWN = "known"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact to be remembered. `evidence` are the ids of the messages it rests on.

    `assistant_id` is the only assistant it is for. `told_to` is the assistant that heard it, whose
    own memories it may make untrue too.
    """

    content: str
    evidence: Sequence[UUID] = ()
    confidence: float = 1.0
    assistant_id: UUID | None = None
    told_to: UUID | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A text's vector, and the model that made it. `is_lexical`: it hashes words and knows no meaning."""

    vector: "NDArray[np.float32]"
    model_id: UUID
    is_lexical: bool = False


@transaction.atomic
def remember(
    owner: Owner,
    fact: Fact,
    *,
    embedded: EmbeddedText | None = None,
    replaces: UUID | None = None,
) -> tuple[Memory, RememberResult]:
    """Keep a fact. If it is known already, only its evidence grows.

    `replaces` is an older memory that this one contradicts or makes more exact, if the caller
    knows; else it is what the fact's words contradict. That one is ended, not deleted, and the new
    one takes its scope. Raises Invalid for no text, or too much.
    """
    content = check_content(fact.content)
    lock_owner(owner)
    old = list(valid_of(owner).filter(pk=replaces)) if replaces else []
    old = old or _find_contradicted(owner, fact)
    assistant_id = old[0].assistant_id if old else fact.assistant_id
    known = _find_same(known_to(owner, assistant_id), content, embedded, but=old)
    if known is None:
        new = _new(owner, replace(fact, content=content, assistant_id=assistant_id), embedded)
        _end(old, by=new)
        new.save(force_insert=True)
        return new, RememberResult.SUPERSEDED if old else RememberResult.ADDED
    _end(old, by=known)
    known.evidence = _grow_evidence(known.evidence, fact.evidence)
    known.confidence = max(known.confidence, fact.confidence)
    known.save(update_fields=["evidence", "confidence", "updated_at"])
    return known, RememberResult.KNOWN


def valid_of(owner: Owner) -> QuerySet[Memory]:
    """Return the memories that are valid now."""
    return Memory.objects.filter(**owner.fields, valid_until__isnull=True)


def known_to(owner: Owner, assistant_id: UUID | None) -> QuerySet[Memory]:
    """Return what this assistant is told: memories for all assistants, and for it alone."""
    return valid_of(owner).filter(Q(assistant_id__isnull=True) | Q(assistant_id=assistant_id))


def owner_of(memory: Memory) -> Owner:
    return Owner(memory.organization_id, memory.user_id, memory.guest_id)


def check_content(content: str) -> str:
    """Return the text as it is stored. Raises Invalid for none, or too much."""
    content = content.replace("\0", "").strip()
    if not content:
        raise Invalid(fields={"content": [FieldText("A memory must have text.", "blank")]})
    if len(content) > MAX_CONTENT_CHARS:
        said = f"A memory may have at most {MAX_CONTENT_CHARS:,} characters."
        raise Invalid(fields={"content": [FieldText(said, "max_length")]})
    return content


def lock_owner(owner: Owner) -> None:
    """Lock the owner's memories against other writers until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [owner.word])


def _find_contradicted(owner: Owner, fact: Fact) -> list[Memory]:
    """Return the memories that a fact makes untrue, as far as words tell, newest first. One query.

    A fact for one assistant changes nothing that others are told.
    """
    known = known_to(owner, fact.told_to)
    if fact.assistant_id is not None:
        known = valid_of(owner).filter(assistant_id=fact.assistant_id)
    newest = known.defer("vector", "search").order_by("-created_at")[:MAX_COMPARED]
    return [memory for memory in newest if contradicts(fact.content, memory.content)]


def _find_same(
    valid: QuerySet[Memory], content: str, embedded: EmbeddedText | None, *, but: Sequence[Memory]
) -> Memory | None:
    """Return the memory that says the same already, or None.

    Those to be replaced (`but`) count only if they have the same words.
    """
    same = valid.filter(content_md5=fingerprint(content)).first()
    if same is not None or embedded is None:
        return same
    others = valid.filter(Q(embedding_model_id=embedded.model_id))
    others = others.exclude(pk__in=[memory.pk for memory in but])
    near = others.alias(distance=CosineDistance("vector", embedded.vector))
    near = near.filter(distance__lte=1 - NEAR_SAME).order_by("distance")
    # An embedder that does not know the language finds all its sentences alike: so words must agree.
    return next(
        (
            memory
            for memory in near[:3]
            if can_be_same(memory.content, content) and adds_nothing(content, memory.content)
        ),
        None,
    )


def _grow_evidence(known: Sequence[UUID], more: Sequence[UUID]) -> list[UUID]:
    """Add evidence, each id once and in order; of too many, the first and the newest are kept."""
    ids = list(dict.fromkeys([*known, *more]))
    return ids if len(ids) <= MAX_EVIDENCE else [ids[0], *ids[1 - MAX_EVIDENCE :]]


def _new(owner: Owner, fact: Fact, embedded: EmbeddedText | None) -> Memory:
    memory = Memory(
        pk=new_id(),
        **owner.fields,
        assistant_id=fact.assistant_id,
        content=fact.content,
        content_md5=fingerprint(fact.content),
        evidence=_grow_evidence((), fact.evidence),
        confidence=min(max(fact.confidence, 0.0), 1.0),
        valid_from=timezone.now(),
    )
    set_index(memory, owner, embedded)
    return memory


def set_index(memory: Memory, owner: Owner, embedded: EmbeddedText | None) -> None:
    """Set the columns that the memory is found by."""
    set_words(memory, owner)
    memory.vector = embedded.vector if embedded else None
    memory.embedding_model_id = embedded.model_id if embedded else None


def _end(old: Sequence[Memory], *, by: Memory) -> None:
    """End memories, before their successor is written: valid rows may not have the same words."""
    for memory in old:
        if memory.pk != by.pk:
            memory.valid_until = timezone.now()
            memory.superseded_by = by
            memory.save(update_fields=["valid_until", "superseded_by", "updated_at"])
