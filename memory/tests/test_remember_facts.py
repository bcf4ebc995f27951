"""Remembering: once, with evidence, and the newer of two that contradict."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.utils import timezone

from amber.lib.database.tenant import Tenant, as_tenant
from amber.lib.errors import Conflict, Invalid, Missing
from amber.lib.search.hybrid import index_text
from engine.provider.embedding import OfflineEmbedder
from memory.facts.fact_matching import fingerprint
from memory.facts.facts import EmbeddedText, Fact, RememberResult, remember, valid_of
from memory.facts.words import WORDS_VERSION, reindex_waiting
from memory.models import Memory
from memory.owner import Owner
from memory.recall import recall as recalling
from memory.services import edit_memory, forget_all, forget_memory
from tests.fixtures.personas import Persona
from tests.fixtures.tenants import for_organization

MODEL = UUID("01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f01")

pytestmark = pytest.mark.django_db


def embedded(text: str) -> EmbeddedText:
    return EmbeddedText(asyncio.run(OfflineEmbedder().embed([text]))[0], MODEL)


def learn(owner: Owner, content: str, replaces: Memory | None = None, **fields: Any) -> Any:
    fact = Fact(content, **fields)
    return remember(
        owner, fact, embedded=embedded(content), replaces=replaces.pk if replaces else None
    )


def recall(owner: Owner, *given: Any, **options: Any) -> Any:
    with as_tenant(Tenant(owner.organization_id, owner.user_id, owner.guest_id)):
        return recalling.recall(owner, *given, **options)


def known(owner: Owner, question: str, assistant_id: UUID | None = None) -> list[str]:
    found = recall(
        owner,
        question,
        limit_tokens=500,
        assistant_id=assistant_id,
        embedded=embedded(question),
    )
    return [memory.content for memory in found]


def new_memory(owner: Owner, content: str) -> Memory:
    """As it lies there from before, whatever else is known."""
    return Memory.objects.create(
        **owner.fields, content=content, content_md5=fingerprint(content), valid_from=timezone.now()
    )


@pytest.fixture
def owner(alice: Persona) -> Owner:
    return Owner.of(alice.principal)


def test_the_same_words_are_one_memory_whose_evidence_grows(owner):
    first, second = uuid4(), uuid4()
    memory, outcome = learn(owner, "I like tea.", evidence=[first], confidence=0.6)
    again, outcome_again = learn(owner, "i like TEA", evidence=[second, first], confidence=0.9)
    assert (outcome, outcome_again) == (RememberResult.ADDED, RememberResult.KNOWN)
    assert again.pk == memory.pk
    memory.refresh_from_db()
    assert memory.evidence == [first, second]
    assert memory.confidence == 0.9
    assert memory.content == "I like tea."


def test_nearly_the_same_words_are_one_memory(owner):
    learn(owner, "The user has a large old house with a garden in Tübingen near the river")
    _, outcome = learn(
        owner, "The user has a large, old house with a garden in Tübingen, near the river!"
    )
    assert outcome is RememberResult.KNOWN


def test_another_number_is_another_fact(owner):
    text = "The number of the user's locker at the large old swimming pool in town is {}"
    learn(owner, text.format(1234))
    _, outcome = learn(owner, text.format(1235))
    assert outcome is RememberResult.ADDED


def test_a_contradiction_supersedes_and_the_old_row_stays(owner):
    old, _ = learn(owner, "The user lives in Rome")
    new, outcome = learn(owner, "The user lives in Oslo", replaces=old)
    old.refresh_from_db()
    assert outcome is RememberResult.SUPERSEDED
    assert old.superseded_by == new
    assert old.valid_until is not None
    assert known(owner, "Where does the user live?") == ["The user lives in Oslo"]
    assert valid_of(owner).get() == new


def test_what_was_superseded_can_become_true_again(owner):
    old, _ = learn(owner, "The user lives in Rome")
    new, _ = learn(owner, "The user lives in Oslo", replaces=old)
    back, outcome = learn(owner, "The user lives in Rome", replaces=new)
    assert outcome is RememberResult.SUPERSEDED
    assert valid_of(owner).get() == back
    assert back.pk != old.pk


def test_superseding_by_what_is_known_ends_the_old_one(owner):
    oslo, _ = learn(owner, "The user works in Oslo")
    rome, _ = learn(owner, "The user works in Rome")
    kept, outcome = learn(owner, "the user works in oslo", replaces=rome)
    assert (kept, outcome) == (oslo, RememberResult.KNOWN)
    assert list(valid_of(owner)) == [oslo]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Paris", "I live in Berlin"),
        ("My favourite colour is blue", "my favourite colour is green"),
        ("我住在北京", "我住在上海"),
        ("I eat meat", "I don't eat meat"),
    ],
    ids=["place", "favourite", "chinese", "denial"],
)
def test_what_the_words_contradict_is_superseded_without_being_named(owner, old, new):
    before, _ = learn(owner, old)
    after, outcome = learn(owner, new)
    before.refresh_from_db()
    assert outcome is RememberResult.SUPERSEDED
    assert before.superseded_by == after
    assert list(valid_of(owner)) == [after]


def test_all_that_the_words_contradict_is_superseded(owner):
    for place in ("Paris", "Berlin"):
        new_memory(owner, f"I live in {place}")
    after, _ = learn(owner, "I live in Rome")
    assert list(valid_of(owner)) == [after]


def test_what_one_assistant_is_told_for_itself_changes_nothing_for_others(owner):
    for_all, _ = learn(owner, "I live in Paris")
    assistant_id = uuid4()
    for_one, outcome = learn(owner, "I live in Berlin", assistant_id=assistant_id)
    assert outcome is RememberResult.ADDED
    assert set(valid_of(owner)) == {for_all, for_one}
    _, outcome = learn(owner, "I live in Rome", told_to=assistant_id)
    assert outcome is RememberResult.SUPERSEDED
    for_one.refresh_from_db()
    assert for_one.superseded_by is not None


def test_nobody_replaces_another_persons_memory(owner, bob):
    bobs, _ = learn(Owner.of(bob.principal), "The user lives in Rome")
    _, outcome = learn(owner, "The user lives in Oslo", replaces=bobs)
    bobs.refresh_from_db()
    assert outcome is RememberResult.ADDED
    assert bobs.valid_until is None


def test_memories_never_reach_another_person_organization_or_guest(owner, alice, bob, mallory):
    learn(owner, "The user's cat is called Biscuit")
    question = "What is the cat called?"
    guest = Owner(alice.organization.pk, guest_id="g1")
    learn(guest, "The guest's dog is called Rex")
    assert known(owner, question) == ["The user's cat is called Biscuit"]
    for other in (Owner.of(bob.principal), Owner.of(mallory.principal), guest):
        assert "Biscuit" not in str(known(other, question))
    assert known(Owner(alice.organization.pk, guest_id="g2"), "What is the dog called?") == []
    assert known(guest, "What is the dog called?") == ["The guest's dog is called Rex"]


def test_only_what_matters_is_recalled(owner):
    learn(owner, "The user's cat is called Biscuit")
    learn(owner, "The user works as a plumber in Leeds")
    learn(owner, "用户对花生过敏")
    assert known(owner, "What is my cat called?") == ["The user's cat is called Biscuit"]
    assert known(owner, "我可以吃花生吗？") == ["用户对花生过敏"]
    assert known(owner, "Explain quantum entanglement") == []
    assert known(owner, "") == []


def test_a_memory_of_one_assistant_is_recalled_there_alone(owner):
    one, other = uuid4(), uuid4()
    learn(owner, "The user's project is called Heron", assistant_id=one)
    question = "What is the project called?"
    assert known(owner, question, one) == ["The user's project is called Heron"]
    assert known(owner, question, other) == []
    assert known(owner, question) == []


def test_the_budget_holds(owner):
    for number in range(40):
        learn(owner, f"The user's cat number {number} sleeps in box {number * 7}")
    found = recall(owner, "Where do the user's cats sleep? cat", limit_tokens=100)
    assert 0 < len(found) < 12


def test_without_vectors_words_find(owner):
    remember(owner, Fact("The user's cat is called Biscuit"))
    assert [m.content for m in recall(owner, "my cat", limit_tokens=100)] == [
        "The user's cat is called Biscuit"
    ]


@pytest.mark.parametrize("content", ["", "  \n", "x" * 2_001])
def test_nothing_and_too_much_are_refused(owner, content):
    with pytest.raises(Invalid):
        remember(owner, Fact(content))


def test_editing_finds_it_by_its_new_words(owner):
    memory, _ = learn(owner, "The user's cat is called Biscuit", confidence=0.6)
    edit_memory(memory, content="The user's dog is called Rex", embedded=embedded("dog Rex"))
    assert known(owner, "What is the dog called?") == ["The user's dog is called Rex"]
    assert known(owner, "Biscuit") == []
    memory.refresh_from_db()
    assert memory.confidence == 1.0


def test_editing_into_a_known_fact_is_refused(owner):
    memory, _ = learn(owner, "The user likes tea")
    learn(owner, "The user likes coffee")
    with pytest.raises(Invalid):
        edit_memory(memory, content="the user likes COFFEE")


def test_what_was_superseded_or_forgotten_meanwhile_is_not_edited(owner):
    old, _ = learn(owner, "The user lives in Rome")
    stale = Memory.objects.get(pk=old.pk)
    new, _ = learn(owner, "The user lives in Oslo", replaces=old)
    with pytest.raises(Conflict):
        edit_memory(stale, content="The user lives in Bern")
    assert valid_of(owner).get() == new
    forget_memory(new)
    with pytest.raises(Missing):
        edit_memory(new, content="The user lives in Bern")


def test_what_holds_for_all_is_not_kept_again_for_one(owner):
    memory, _ = learn(owner, "The user likes tea")
    again, outcome = learn(owner, "The user likes tea", assistant_id=uuid4())
    assert (again, outcome) == (memory, RememberResult.KNOWN)


def test_evidence_does_not_grow_without_end(owner):
    first, last = uuid4(), uuid4()
    learn(owner, "The user likes tea", evidence=[first])
    learn(owner, "The user likes tea", evidence=[uuid4() for _ in range(200)])
    memory, _ = learn(owner, "The user likes tea", evidence=[last])
    assert len(memory.evidence) == 50
    assert (memory.evidence[0], memory.evidence[-1]) == (first, last)


def test_forgetting_takes_what_it_superseded_along(owner):
    first, _ = learn(owner, "The user lives in Rome")
    second, _ = learn(owner, "The user lives in Oslo", replaces=first)
    third, _ = learn(owner, "The user lives in Bern", replaces=second)
    other, _ = learn(owner, "The user likes tea")
    forget_memory(third)
    assert list(Memory.objects.all()) == [other]


def test_forgetting_all_leaves_other_people_alone(owner, bob):
    learn(owner, "The user likes tea")
    kept, _ = learn(Owner.of(bob.principal), "The user likes tea")
    assert forget_all(owner) == 1
    assert list(Memory.objects.all()) == [kept]


@pytest.mark.django_db(transaction=True)
def test_ten_at_once_store_one(owner):
    def tell(number: int) -> None:
        try:
            learn(owner, "The user likes tea" + "." * number, evidence=[uuid4()])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(tell, range(10)))
    memory = valid_of(owner).get()
    assert len(memory.evidence) == 10


def test_words_of_an_older_release_are_chosen_anew_and_kept_meanwhile(owner):
    learn(owner, "Meine Katzen schlafen auf den alten Stühlen")
    kept = Memory.objects.filter(**owner.fields)
    words = kept.get().search
    kept.update(search=index_text("Katzen", owner.word), words_version=0)
    assert known(owner, "Was machen meine Katzen?")
    with for_organization(owner.organization_id):
        reindex_waiting()
    assert (kept.get().search, kept.get().words_version) == (words, WORDS_VERSION)
