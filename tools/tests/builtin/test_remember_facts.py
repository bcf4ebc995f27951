"""Test the built-in tools `remember` and `forget`, for a person and for a guest."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from amber.lib.database.tenant import Tenant, as_tenant
from engine.trust import Exposure
from memory.facts.facts import Fact, remember, valid_of
from memory.models import Memory
from memory.owner import Owner
from providers.models import OFFLINE_URL, EmbeddingModel, Provider
from tests.fixtures.personas import Persona
from tools.builtin.forget import forget
from tools.builtin.remember import remember as remember_unsaid
from tools.calling.registry import offer_builtin_tools
from tools.protocol import Circumstances, ToolContext, ToolError

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def embedder(db: None) -> EmbeddingModel:
    provider = Provider.objects.create(name="Offline", base_url=OFFLINE_URL)
    return EmbeddingModel.objects.create(
        provider=provider, alias="offline", upstream_id="offline", dimensions=512, default=True
    )


def context(persona: Persona, **fields: Any) -> ToolContext:
    fields = {"user_id": persona.user.pk, "question_id": uuid4()} | fields
    return ToolContext(persona.organization.pk, **fields)


def remember_tool(asked: ToolContext, content: str, replaces: str = "") -> str:
    """Call the tool in a turn in which the user has said so."""
    said = replace(asked, exposure=Exposure(typed=(f"{content}. {replaces}",)))
    with acting_in(asked):
        return remember_unsaid(said, content, replaces)


def forget_tool(asked: ToolContext, content: str) -> str:
    with acting_in(asked):
        return forget(asked, content)


def acting_in(asked: ToolContext) -> Any:
    """A block on behalf of whoever asked the turn."""
    return as_tenant(Tenant(asked.organization_id, asked.user_id, asked.guest_id))


def owner(persona: Persona) -> Owner:
    return Owner.of(persona.principal)


def contents(whose: Owner) -> list[str]:
    return sorted(memory.content for memory in valid_of(whose))


def test_they_are_offered_unless_memory_is_off():
    assert {"remember", "forget"} <= {tool.name for tool in offer_builtin_tools(Circumstances())}
    off = {tool.name for tool in offer_builtin_tools(Circumstances(disable_memory=True))}
    assert not {"remember", "forget"} & off


def test_what_is_remembered_rests_on_the_question(alice):
    asked = context(alice)
    said = remember_tool(asked, "The user's cat is called Biscuit")
    assert said == "Remembered: The user's cat is called Biscuit"
    memory = Memory.objects.get()
    assert memory.evidence == [asked.question_id]
    assert (memory.user, memory.guest_id) == (alice.user, None)
    assert memory.embedding_model_id is not None


def test_what_is_known_is_not_kept_twice(alice):
    for _ in range(2):
        said = remember_tool(context(alice), "The user likes tea")
    assert said == "This is already remembered: The user likes tea"
    assert Memory.objects.count() == 1


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ("The user lives in Rome", "The user lives in Oslo", ""),
        ("The user likes tea", "The user doesn't like tea", ""),
        ("The user works for Acme as a plumber", "The user is retired", "works for Acme"),
    ],
    ids=["one value", "denied", "named in words"],
)
def test_what_is_no_longer_true_is_superseded(alice, old, new, replaces):
    remember(owner(alice), Fact("The user's dog is called Rex"))
    before, _ = remember(owner(alice), Fact(old))
    said = remember_tool(context(alice), new, replaces)
    assert said == f"Remembered, in place of what was known before: {new}"
    before.refresh_from_db()
    assert before.superseded_by is not None
    assert contents(owner(alice)) == sorted([new, "The user's dog is called Rex"])


def test_what_is_replaced_in_unclear_words_stays(alice):
    for name in ("Rex", "Max", "Bello"):
        remember(owner(alice), Fact(f"The user walks the dog {name} every day"))
    remember_tool(context(alice), "The user has a goldfish", "the dog")
    assert len(contents(owner(alice))) == 4


@pytest.mark.parametrize("content", ["", "x" * 2_001])
def test_what_is_no_fact_is_refused(alice, content):
    with pytest.raises(ToolError):
        remember_tool(context(alice), content)


def test_a_clear_match_is_forgotten_with_its_history(alice):
    first, _ = remember(owner(alice), Fact("The user's cat is called Biscuit"))
    remember(owner(alice), Fact("The user's cat is called Muffin"), replaces=first.pk)
    remember(owner(alice), Fact("The user works as a plumber"))
    said = forget_tool(context(alice), "the cat is called Muffin")
    assert said == "Forgotten: The user's cat is called Muffin"
    assert [memory.content for memory in Memory.objects.all()] == ["The user works as a plumber"]


def test_what_may_mean_several_is_asked_back_and_exact_words_decide(alice):
    for name in ("Rex", "Max"):
        remember(owner(alice), Fact(f"The user walks the dog {name} every day"))
    said = forget_tool(context(alice), "the dog")
    assert "nothing was deleted" in said
    assert "- The user walks the dog Rex every day" in said
    assert Memory.objects.count() == 2
    forget_tool(context(alice), "The user walks the dog Rex every day")
    assert contents(owner(alice)) == ["The user walks the dog Max every day"]


def test_nothing_of_the_kind_is_known(alice):
    remember(owner(alice), Fact("The user likes tea"))
    assert forget_tool(context(alice), "quantum physics") == "Nothing of that kind is remembered."
    with pytest.raises(ToolError):
        forget_tool(context(alice), " ")


def test_nobody_touches_another_persons_memories(alice, bob, mallory):
    mine, _ = remember(owner(alice), Fact("The user lives in Rome"))
    for other in (bob, mallory):
        assert "Nothing" in forget_tool(context(other), "The user lives in Rome")
        remember_tool(context(other), "The user lives in Oslo")
    mine.refresh_from_db()
    assert mine.valid_until is None
    assert contents(owner(alice)) == ["The user lives in Rome"]


def test_a_guest_has_memories_of_their_own(alice):
    """The key that the guest came by is alice's, but the memories are not."""
    remember_tool(context(alice, guest_id="g1"), "The user lives in Rome")
    assert contents(owner(alice)) == []
    assert contents(Owner(alice.organization.pk, guest_id="g1")) == ["The user lives in Rome"]
    assert "Nothing" in forget_tool(context(alice), "The user lives in Rome")


def test_nobody_is_remembered_when_nobody_asks(alice):
    with pytest.raises(ToolError):
        remember_tool(ToolContext(alice.organization.pk), "The user likes tea")


def test_what_one_assistant_was_told_is_not_forgotten_through_another(alice):
    one = UUID(int=1)
    remember(owner(alice), Fact("The project is called Heron", assistant_id=one))
    assert "Nothing" in forget_tool(context(alice, assistant_id=uuid4()), "project called Heron")
    said = forget_tool(context(alice, assistant_id=one), "the project is called Heron")
    assert said == "Forgotten: The project is called Heron"
