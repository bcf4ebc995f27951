"""Name what is measured in an installation: requests of a person, a worker's work, jobs, operators' pages.

Each is a function that does it once, through Amber's own views and services, and leaves the installation
as it was. What a person does is done by the first person of the probe, whose rows are the same in every
installation.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from typing import Any, Final

import numpy as np

from bench.scale.world import PROBE_LIBRARIES, row_id

Work = Callable[[], object]
QUEUED: Final = 100
"""Turns that wait while claims are measured, of as many organizations as there are."""
RARE, USUAL, COMMON = 3_000, 150, 3
"""Ranks of words: of 10,000 messages 4, 90 and 2,500 have them."""
QUESTIONS: Final = 20


def measures() -> dict[str, Work]:
    """Return all measures by name: kind, then what is done."""
    made = dict(_requests())
    made |= _searches()
    made |= _turns()
    made |= _jobs()
    made |= dict(_pages())
    return made


def _probe() -> Any:
    """Return the membership of the probe's first person."""
    from accounts.models import Membership

    rows = Membership.objects.select_related("organization", "user")
    return rows.get(user=row_id("user", 0))


# -- A person's requests -------------------------------------------------------------------------


def _requests() -> Iterator[tuple[str, Work]]:
    from django.test import Client

    from accounts.key_services import create_api_key
    from accounts.principal import Actor, ActorKind
    from amber.lib.database.tenant import across_tenants
    from chats.models import Chat

    with across_tenants():
        member = _probe()
        _, secret = create_api_key(
            member.user,
            organization=member.organization,
            name="Scale",
            by=Actor(ActorKind.OPERATOR),
        )
        chats = Chat.objects.filter(user=member.user).order_by("created_at")
        longest = max(chats, key=lambda chat: chat.messages.count())
    words = _words()
    key = Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {secret}"})
    person = Client(SERVER_NAME="localhost")
    with across_tenants():
        person.force_login(member.user)
    for client, name, path in (
        (key, "list of chats, by creation", "chats/?owner=user"),
        (key, "list of chats, by activity", "chats/?owner=user&order=activity"),
        (key, "list of chats, by a part of the name", "chats/?owner=user&q=number"),
        (key, "the end of a chat of 2,000 messages", f"chats/{longest.pk}/messages/"),
        (key, "message search, a rare word", f"chats/search/?q={words[RARE]}"),
        (key, "message search, a usual word", f"chats/search/?q={words[USUAL]}"),
        (key, "message search, a common word", f"chats/search/?q={words[COMMON]}"),
        (key, "message search, two words", f"chats/search/?q={words[COMMON]} {words[USUAL]}"),
        (key, "memories", "memories/"),
        (key, "libraries", "libraries/"),
        (key, "assistants", "assistants/"),
        (key, "documents of a library", f"libraries/{row_id('library', 1)}/documents/"),
        (person, "me", "me/"),
        (person, "members of the organization", f"organizations/{member.organization_id}/members/"),
        (person, "use of the organization, 30 days", "usage/"),
        (person, "audit log", "audit/"),
        (person, "totals of feedback", "feedback/totals/"),
    ):
        yield f"request: {name}", partial(_get, client, f"/api/v1/{path}")


def _get(client: Any, path: str) -> None:
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content[:500]!r}")


def _words() -> list[str]:
    from bench.scale.samples import new_world

    return new_world().words


# -- Libraries and turns -------------------------------------------------------------------------


def _searches() -> dict[str, Work]:
    return {
        f"search in a library of {count:,} chunks": _search_of(number)
        for number, count in enumerate(PROBE_LIBRARIES)
    }


def _search_of(number: int) -> Work:
    from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
    from bench.scale.samples import new_world
    from libraries.models import Library
    from libraries.retrieval.search import search

    world = new_world()
    world.rng = np.random.default_rng(5)
    questions = cycle([world.question() for _ in range(QUESTIONS)])
    with across_tenants():
        rows = Library.objects.select_related("embedding_model__provider")
        library = rows.get(pk=row_id("library", number))

    def ask() -> None:
        query, vector = next(questions)
        vectors = {library.embedding_model_id: vector}
        with as_tenant(Tenant(library.organization_id, is_whole=True)):
            found = search([library], query, k=10, query_vectors=vectors)
        assert found.passages

    return ask


def _turns() -> dict[str, Work]:
    return {
        "turn: store the question": _post_question,
        "turn: claim the next of 100": _claim,
        "turn: claim, none waits": _claim_none,
        "turn: compose the context, 2,000 messages": _composing(),
        "turn: read what a viewer missed": _reading_state(),
        "worker: sweep and renew": _sweep,
        "worker: which jobs are due": _due,
    }


def _with_principal() -> Any:
    from accounts.principal import Principal

    member = _probe()
    return Principal(member.organization_id, member.user, member.role)


def _post_question() -> None:
    """Store a question and its turn, and take both back."""
    from django.db import transaction

    from amber.lib.database.tenant import across_tenants, as_tenant
    from chats import services
    from chats.models import Chat

    with across_tenants():
        principal = _with_principal()
    with as_tenant(principal.tenant):
        chat = Chat.objects.visible_to(principal).select_related("assistant").first()
        assert chat is not None
        posted = services.post_message(chat.pk, principal, role="human", content="How is the pump?")
    with across_tenants(), transaction.atomic():
        _forget(posted, chat)


def _forget(posted: Any, chat: Any) -> None:
    from chats.models import Chat, ChatMessage, Turn

    Chat.objects.filter(pk=chat.pk).update(
        active_leaf=chat.active_leaf_id, updated_at=chat.updated_at, name=chat.name
    )
    Turn.objects.filter(pk=posted.turn.pk)._raw_delete("default")
    ChatMessage.objects.filter(pk=posted.message.pk)._raw_delete("default")


_QUEUE_SQL: Final = """
UPDATE chats_turn SET status = 'queued', worker = '', lease_until = NULL WHERE id IN (
    SELECT DISTINCT ON (chat_id) id FROM (
        SELECT t.id, t.chat_id FROM chats_turn t
        WHERE t.organization_id IN (SELECT id FROM accounts_organization ORDER BY id LIMIT 100)
        AND t.created_at < now() - interval '1 day' ORDER BY t.id DESC LIMIT 2000
    ) latest ORDER BY chat_id LIMIT %s
)
"""
_UNQUEUE_SQL: Final = """
UPDATE chats_turn SET status = 'completed' WHERE status IN ('queued', 'running')
"""
_queued = {"left": 0}


def _claim() -> None:
    """Claim a turn; every so often let turns wait again."""
    from amber.lib.database.tenant import across_tenants
    from chats.turns.claims import claim_next

    with across_tenants():
        if _queued["left"] == 0:
            _execute(_UNQUEUE_SQL)
            _execute(_QUEUE_SQL, [QUEUED])
            _queued["left"] = QUEUED // 2
        assert claim_next("scale")
        _queued["left"] -= 1


def _claim_none() -> None:
    from amber.lib.database.tenant import across_tenants
    from chats.turns.claims import claim_next

    with across_tenants():
        if _queued["left"]:
            _execute(_UNQUEUE_SQL)
            _queued["left"] = 0
        assert claim_next("scale") is None


def _execute(statement: str, values: Any = ()) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _composing() -> Work:
    from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
    from bench.scale.samples import new_world
    from chats.models import Chat

    with across_tenants():
        member = _probe()
        rows = Chat.objects.filter(user=member.user)
        rows = rows.select_related("assistant__library", "organization", "user", "active_leaf")
        chat = max(rows, key=lambda each: each.messages.count())
    world = new_world()
    questions = cycle([world.question()[0] for _ in range(QUESTIONS)])

    def compose() -> None:
        with as_tenant(Tenant(chat.organization_id, chat.user_id)):
            _compose(chat, next(questions))

    return compose


def _compose(chat: Any, question: str) -> None:
    """Gather and compose a turn's first request; the question is taken back."""
    from django.db import transaction

    from chats.context import gathering
    from chats.context.question_embedding import embed_question
    from chats.messages.transcript import new_row
    from chats.models import Turn

    with transaction.atomic():
        asked = new_row(chat, chat.active_leaf, role="human", content=question)
        asked.save()
        turn = Turn(
            organization=chat.organization,
            chat=chat,
            user=chat.user,
            assistant=chat.assistant,
            question=asked,
            tip=asked,
        )
        gathered = gathering.gather(turn)
        layout = gathering.lay_out(turn, gathered)
        embedded = asyncio.run(embed_question(gathered.wanted))
        gathering.prepare(turn, gathered, layout, embedded).manifest()
        transaction.set_rollback(True)


def _reading_state() -> Work:
    from amber.lib.database.tenant import Tenant, as_tenant
    from chats.models import Turn
    from chats.streaming.stored_state import state_of

    tenant = Tenant(row_id("organization", 0), row_id("user", 0))
    with as_tenant(tenant):
        turns = Turn.objects.filter(chat__user=row_id("user", 0)).order_by("-created_at")
        turn_id = turns.values_list("pk", flat=True)[0]

    def read() -> None:
        with as_tenant(tenant):
            assert asyncio.run(state_of(turn_id))

    return read


def _sweep() -> None:
    from amber.lib.database.tenant import across_tenants
    from chats.turns import sweep
    from libraries.ingestion import claims, switching
    from libraries.sweep import sweep_documents, sweep_repositories

    with across_tenants():
        sweep.sweep_turns()
        sweep.overdue_turns(10.0)
        sweep_documents()
        sweep_repositories()
        switching.finish_switches()
        claims.is_anything_waiting()


def _due() -> None:
    from amber.lib.database.tenant import across_tenants
    from operations.maintenance.periodic_jobs import claim_due_jobs

    with across_tenants():
        claim_due_jobs()


# -- Periodic jobs ---------------------------------------------------------------------------------


def _jobs() -> dict[str, Work]:
    from operations.maintenance.periodic_jobs import PERIODIC_JOBS

    return {f"job: {name}": partial(_run_job, name) for name in PERIODIC_JOBS}


def _run_job(name: str) -> None:
    from amber.lib import redis as amber_redis
    from operations.maintenance.periodic_jobs import run
    from providers.usage.day_sums import day_sum_key

    if name == "keep_past_days":  # as on the day after: yesterday is not summed yet
        from datetime import timedelta

        yesterday = datetime.now(UTC).date() - timedelta(days=1)
        amber_redis.client().delete(day_sum_key(yesterday))
    run(name)


# -- Operators' pages ------------------------------------------------------------------------------


def _pages() -> Iterator[tuple[str, Work]]:
    from django.contrib import admin
    from django.test import Client
    from django.urls import get_resolver, reverse

    from accounts.models import User
    from amber.lib.database.tenant import across_tenants

    assert get_resolver().url_patterns, "the URLconf registers the pages"
    client = Client(SERVER_NAME="localhost")
    with across_tenants():
        client.force_login(User.objects.filter(is_superuser=True).order_by("created_at")[0])
    person, organization = "person-0@scale.example", row_id("organization", 0)
    yield "admin: start page", partial(_get, client, reverse("admin:index"))
    yield "operators: /metrics", partial(_get, client, "/metrics")
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        path = reverse(f"{name}_changelist")
        yield f"admin: {model._meta.label}", partial(_get, client, path)
        if admin.site._registry[model].search_fields:
            asked = (
                person if "user" in str(admin.site._registry[model].search_fields) else "scale-0"
            )
            yield (
                f"admin: {model._meta.label}, searched",
                partial(_get, client, f"{path}?q={asked}"),
            )
        if any(field.name == "organization" for field in model._meta.concrete_fields):
            yield (
                f"admin: {model._meta.label}, of an organization",
                partial(_get, client, f"{path}?organization__id__exact={organization}"),
            )
