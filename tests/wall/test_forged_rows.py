"""Give workers rows of one organization that point to rows of another: nothing is read or written.

Each row is a rival's, as a mistake or an attack elsewhere could have left it; foreign keys allow
that. The worker's own code is as it is: it follows what the row says, and finds nothing there. The
same rows without the wall show that it would have found something.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.postgres.base import TENANT_ROLE
from amber.lib.workers.worker import Worker
from assistants.models import Assistant, AssistantTool, ScenePrompt
from chats.digest import blocks
from chats.digest.digest import digest_turns
from chats.models import Chat, ChatMessage, Turn
from chats.tests.conftest import enqueued_turns, new_model, provider
from chats.tests.rows import converse, new_assistant, new_chat, new_file, say
from chats.tests.runs import ask_in, run_named
from libraries.git import importing
from libraries.models import Document, Library, Repository
from libraries.tests.enqueued import enqueued
from libraries.tests.ledger import ingest, new_document, new_library
from public_api.models import WebhookDelivery
from public_api.tests.webhooks.hooks import hook, receiver
from public_api.webhooks.delivery import deliver_due
from tests.fixtures.personas import Persona
from tests.fixtures.provider import fake_provider
from tests.wall.open_doors import MARK, stored, written
from tools.models import Tool

__all__ = [
    "enqueued",
    "enqueued_turns",
    "fake_provider",
    "hook",
    "new_model",
    "provider",
    "receiver",
]

pytestmark = pytest.mark.django_db(transaction=True)

LONG = f"{MARK}. We talked about the weather and the garden for a while, and it was nice. " * 6


@dataclass
class Hers:
    """What alice has; each says MARK."""

    assistant: Any
    chat: Any
    message: Any
    turn: Any
    file: Any
    library: Any
    document: Any
    scene: Any
    tool: Any


@dataclass
class His:
    """The rival's own chat, and the question in it that a worker is to answer."""

    persona: Persona
    assistant: Any
    chat: Any
    turn: Any


@pytest.fixture(autouse=True)
def small(settings: Any) -> None:
    settings.AMBER_BLOCK_TOKENS = 100
    settings.AMBER_CONTEXT_TAIL_TOKENS = 400


@pytest.fixture
def hers(alice: Persona, new_model: Any, enqueued: Any) -> Hers:
    new_model(default=True)
    library = new_library(alice, name=MARK, description=MARK)
    document = new_document(library, f"{MARK}: the valve opens to the left.\n" * 5, name=MARK)
    ingest()
    assistant = new_assistant(alice, name=MARK, prompt=MARK, shared=True, library=library)
    mine = {"organization": alice.organization, "assistant": assistant}
    scene = ScenePrompt.objects.create(**mine, label=MARK, prompt=MARK)
    owner = {"organization": alice.organization, "user": alice.user}
    tool = Tool.objects.create(
        **owner, name=MARK, description=MARK, discovery_url="https://tool.example/", shared=True
    )
    chat = new_chat(alice, assistant=assistant)
    converse(chat, *[LONG] * 12)
    message = say(chat, MARK)
    file = new_file(alice, name=MARK, text=MARK)
    turn = Turn.objects.create(
        **owner, chat=chat, assistant=assistant, question=message, tip=message, status="completed"
    )
    return Hers(assistant, chat, message, turn, file, library, document, scene, tool)


@pytest.fixture
def his(mallory: Persona, hers: Hers) -> His:
    assistant = new_assistant(mallory)
    chat = new_chat(mallory, assistant=assistant)
    converse(chat, *["Hello, how does the valve of the pump open?"] * 4)
    turn = ask_in(chat, mallory, "How does the valve open? [[fake tokens=6]]")
    return His(mallory, assistant, chat, turn)


def of(model: Any, row: Any, **fields: Any) -> None:
    """Forge the row: past all code, and past the wall."""
    model.objects.filter(pk=row.pk).update(**fields)


def point_to_her_chat(his: His, hers: Hers) -> None:
    of(Turn, his.turn, chat=hers.chat)


def point_to_her_chat_and_question(his: His, hers: Hers) -> None:
    of(Turn, his.turn, chat=hers.chat, question=hers.message, tip=hers.message)


def point_to_her_question(his: His, hers: Hers) -> None:
    of(Turn, his.turn, question=hers.message, tip=hers.message)


def point_to_her_assistant(his: His, hers: Hers) -> None:
    of(Turn, his.turn, assistant=hers.assistant)
    of(Chat, his.chat, assistant=hers.assistant)


def continue_her_messages(his: His, hers: Hers) -> None:
    of(ChatMessage, his.turn.question, parent=hers.message, position=hers.message.position + 1)


def show_her_file(his: His, hers: Hers) -> None:
    of(ChatMessage, his.turn.question.parent, role="file", file=hers.file)


def use_her_library(his: His, hers: Hers) -> None:
    of(Assistant, his.assistant, library=hers.library)


def use_her_scene(his: His, hers: Hers) -> None:
    of(Chat, his.chat, pinned_scene=hers.scene)
    of(ScenePrompt, hers.scene, assistant=his.assistant)


def use_her_tool(his: His, hers: Hers) -> None:
    AssistantTool.objects.create(
        organization=his.persona.organization, assistant=his.assistant, tool=hers.tool
    )


FORGERIES = [
    point_to_her_chat,
    point_to_her_chat_and_question,
    point_to_her_question,
    point_to_her_assistant,
    continue_her_messages,
    show_her_file,
    use_her_library,
    use_her_scene,
    use_her_tool,
]
Forgery = Callable[[His, Hers], None]


def traces(his: His, fake_provider: Any, work: Callable[[], Any], alice: Persona) -> list[str]:
    """What the work has read of hers, or written: what the provider was told, and the rows."""
    before, told = stored(), len(fake_provider.requests(MARK))
    work()
    after = stored()
    found = written(before, after, [], organization_id=alice.organization.pk, personal=False)
    found += [f"told: {each}" for each in fake_provider.requests(MARK)[told:]]
    own = str(his.persona.organization.pk)
    found += [
        f"kept: {key} {row}"
        for key, (row, owner) in after.items()
        if owner == own and MARK in row and before.get(key, ("", ""))[0] != row
    ]
    return found


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_turn_reads_and_writes_nothing_of_anothers(alice, hers, his, fake_provider, forge):
    forge(his, hers)
    assert not traces(his, fake_provider, lambda: run_named(his.turn.pk), alice)


FOLLOWED = [
    point_to_her_chat_and_question,
    point_to_her_assistant,
    continue_her_messages,
    show_her_file,
    use_her_scene,
]
"""Of the others Amber's own code finds out."""


@pytest.mark.parametrize("forge", FOLLOWED)
def test_without_the_wall_it_would(alice, hers, his, fake_provider, forge, wall_down):
    forge(his, hers)
    assert traces(his, fake_provider, lambda: run_named(his.turn.pk), alice)


@pytest.fixture
def wall_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(connection.settings_dict, TENANT_ROLE)


# -- What else works in the background -----------------------------------------------------------


def seal_her_messages(his: His, hers: Hers) -> None:
    of(Chat, his.chat, active_leaf=hers.message)
    blocks.seal_for_owner(his.chat.pk)


def digest_her_chat(his: His, hers: Hers) -> None:
    ended = {"status": "completed", "ended_at": timezone.now(), "digest_at": timezone.now()}
    of(Turn, his.turn, chat=hers.chat, **ended)
    with across_tenants():
        digest_turns()


def index_into_her_library(his: His, hers: Hers) -> None:
    document = new_document(new_library(his.persona), "The rival's own text, of one chunk.")
    of(Document, document, library=hers.library)
    ingest()
    document.refresh_from_db()
    assert document.status == "failed"


def index_her_file(his: His, hers: Hers) -> None:
    document = new_document(new_library(his.persona), "The rival's own text, of one chunk.")
    of(Document, document, file=hers.document.file)
    ingest()
    document.refresh_from_db()
    assert document.status in ("failed", "ready")


def import_into_her_library(his: His, hers: Hers) -> None:
    Repository.objects.create(
        organization=his.persona.organization, library=hers.library, git_url="https://git.example/r"
    )
    with across_tenants():
        claimed = importing.claim(Worker("w1"))
    assert claimed is not None
    with (
        as_tenant(Tenant(claimed.organization_id, is_whole=True)),
        pytest.raises(Library.DoesNotExist),
    ):
        importing.run(claimed)


WORK = [
    seal_her_messages,
    digest_her_chat,
    index_into_her_library,
    index_her_file,
    import_into_her_library,
]


@pytest.mark.parametrize("work", WORK)
def test_work_in_the_background_reads_and_writes_nothing_of_anothers(
    alice, hers, his, fake_provider, work
):
    assert not traces(his, fake_provider, lambda: work(his, hers), alice)


@pytest.mark.parametrize("work", [seal_her_messages, index_her_file])
def test_without_the_wall_that_would_too(alice, hers, his, fake_provider, work, wall_down):
    assert traces(his, fake_provider, lambda: work(his, hers), alice)


# -- Webhooks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_hers", ["turn", "webhook", "both"])
def test_a_delivery_tells_nothing_of_anothers(
    alice, hers, his, hook, receiver, fake_provider, of_hers
):
    """Neither is her turn told to his address, nor anything with her address and secret."""
    own, _ = hook(his.persona, include_output=True, whole_organization=False)
    theirs, _ = hook(alice, include_output=True)
    ended = Turn.objects.create(
        organization=his.persona.organization, user=his.persona.user, status="completed"
    )
    delivery = WebhookDelivery.objects.create(
        organization=his.persona.organization,
        webhook=own if of_hers == "turn" else theirs,
        turn_id=ended.pk if of_hers == "webhook" else hers.turn.pk,
        event="turn.completed",
        payload={},
        due_at=timezone.now() - timedelta(seconds=1),
    )
    assert not traces(his, fake_provider, deliver_due, alice)
    assert not receiver.requests
    delivery.refresh_from_db()
    assert delivery.status == "failed"
