"""The memory measure, over generated persons: what docs/memory.md promises holds here, too.

The embedder is a stand-in (`bench.quality.concept_embedder`): it shows that meaning is used, and that it
does not bring back what has nothing to do with the question.
"""

from typing import Any
from uuid import UUID

import pytest

from amber.lib.database.tenant import Tenant, as_tenant
from bench.quality.concept_embedder import ConceptEmbedder
from bench.quality.memories import MemoryQuality, measure_memory
from bench.quality.memory_persons import LANGUAGES, make_persons
from memory.owner import Owner
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db

PERSONS = 2
CONCEPTS = UUID(int=1301)


@pytest.fixture
def owner(alice: Persona) -> Owner:
    return Owner.of(alice.principal)


def measured(owner: Owner, language: str, *, embed: Any = None) -> MemoryQuality:
    persons = make_persons(language, PERSONS)
    with as_tenant(Tenant(owner.organization_id, owner.user_id)):
        return measure_memory(persons, owner, model_id=CONCEPTS, embed=embed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_alone_find_what_is_asked_directly(owner, language):
    quality = measured(owner, language)
    assert quality.direct >= 0.98
    assert quality.false_recall <= 0.1
    assert (quality.stale, quality.wrong) == (0, 0)
    assert quality.shown >= 0.9


@pytest.mark.parametrize("language", LANGUAGES)
def test_meaning_finds_other_words_and_little_else(owner, language):
    quality = measured(owner, language, embed=ConceptEmbedder().embed)
    assert quality.direct >= 0.98
    assert quality.paraphrase >= 0.85
    assert quality.false_recall <= 0.1
    assert (quality.stale, quality.wrong) == (0, 0)
    assert quality.shown == 1


def test_persons_are_the_same_in_every_run():
    assert make_persons("en", 2) == make_persons("en", 2)
    assert make_persons("en", 2) != make_persons("en", 2, seed=14)
