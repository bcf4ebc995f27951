"""Measure what composing a turn's context costs in chats of 100 to 100,000 messages, and its recall.

Contexts are composed in a process of their own, with the database of a running Amber:
`python -m bench.context_assembly SIZE…` prints one JSON line. For each size it says what a context took and
read, and how many of the facts planted in the chat were recalled when they were asked for.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import django

from bench.loadgen import say
from bench.report import Finding
from bench.stand import Stand, vacuum

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 10_000)
MAX_SECONDS = 1_200

WORDS, NAMES, THINGS, PLACES = map(
    str.split,
    (
        "river garden window morning letter bridge market winter story music paper silver forest "
        "kitchen teacher doctor island ticket engine shadow mirror candle harbour blanket pocket "
        "thunder village castle orange puzzle rocket summer anchor basket circle dragon farmer",
        "Alva Bruno Carmen Dagny Edgar Frida Gustav Hilde Ivo Jonna Kasper Linnea Matteo Nora",
        "boat piano orchard violin workshop telescope bakery caravan sailplane greenhouse",
        "Bergen Oaxaca Tartu Hobart Nara Lucca Ghent Cusco Ronda Turku Split Zadar",
    ),
)
QUESTION_WORDS, ANSWER_WORDS = 30, 200
"""About 150 tokens a message: a hundred of them fill the tail."""
GROWTHS, GROWTH_MESSAGES = 4, 10
"""A tail holds between half of AMBER_CONTEXT_TAIL_TOKENS and all of it, by how many messages came since it was
last cut: some 41 of these go by from one cut to the next. So each chat is asked in at four places of that."""
ROUNDS = 30
WARM_UP = 12
"""Postgres plans a statement anew the first ten times."""
_BATCH = 2_000


def context_assembly(stand: Stand, provider_url: str, *, is_quick: bool) -> list[Finding]:
    """Measure beside a running Amber, whose workers have nothing to do meanwhile."""
    sizes = QUICK_SIZES if is_quick else SIZES
    with stand.amber(provider_url):
        rows = stand.drive("bench.context_assembly", *sizes, timeout_seconds=MAX_SECONDS)
    by_size = {row["messages"]: row for row in rows}
    for row in rows:
        say(f"  {row}")
    large = 10_000 if 10_000 in by_size else sizes[-1]
    return [
        Finding(
            f"context of a chat of {large:,} messages against one of 100",
            by_size[large]["ms"] / by_size[100]["ms"],
            "x",
            at_most=1.5,
            note="; ".join(f"{row['messages']:,}: {row['ms']:.1f} ms" for row in rows),
            details={"rows": rows},
        ),
        Finding(
            f"rows read for that context against one of 100 (then {by_size[100]['rows']})",
            by_size[large]["rows"] / by_size[100]["rows"],
            "x",
            note="; ".join(f"{row['messages']:,}: {row['rows']}" for row in rows),
        ),
        Finding(
            f"planted facts that come back in a chat of {large:,} messages",
            by_size[large]["recalled"] * 100,
            "%",
            at_least=95,
            note="; ".join(f"{row['messages']:,}: {row['recalled']:.0%}" for row in rows),
        ),
    ]


# -- In a process of its own ---------------------------------------------------------------------


def main() -> None:
    django.setup()
    sizes = [int(size) for size in sys.argv[1:]]
    from amber.lib.database.tenant import Tenant, across_tenants, as_tenant

    with across_tenants():
        owner = _owner()
    with as_tenant(Tenant(owner.organization_id, owner.user_id)):
        filled = [_filled(owner, size) for size in sizes]
        rows = _measured(filled)
    print(json.dumps(rows))  # noqa: T201  (what the bench reads)


def facts(count: int) -> list[tuple[str, str, str]]:
    """Return what is said, what is asked, and the word that answers, each with words of its own."""
    told = []
    for number in range(count):
        name, thing = NAMES[number % len(NAMES)], THINGS[number % len(THINGS)]
        code = f"{PLACES[number % len(PLACES)]}-{number:03d}"
        told.append(
            (
                f"By the way, {name} keeps the {thing} number {number} in {code}.",
                f"Where does {name} keep the {thing} number {number}?",
                code,
            )
        )
    return told


def _owner() -> Any:
    """Return an assistant of the demo organization, with the built-in embedder."""
    from assistants.models import Assistant
    from providers.models import OFFLINE_URL, EmbeddingModel, Provider

    offline, _ = Provider.objects.get_or_create(base_url=OFFLINE_URL, defaults={"name": "Offline"})
    EmbeddingModel.objects.filter(default=True).update(default=False)
    EmbeddingModel.objects.update_or_create(
        alias="bench",
        defaults={
            "provider": offline,
            "upstream_id": "offline",
            "dimensions": 512,
            "default": True,
        },
    )
    return Assistant.objects.select_related("user", "organization").order_by("created_at")[0]


@dataclass
class _Filled:
    """A sealed chat, what was told in it, and what was measured of it."""

    chat: Any
    size: int
    told: list[tuple[str, str, str]]
    blocks: int = 0
    sealed_seconds: float = 0.0
    recalled: float = 0.0
    ms: list[float] = field(default_factory=list)
    """The median at each length."""
    rows: list[int] = field(default_factory=list)
    """The most at each length."""


def _filled(assistant: Any, size: int) -> _Filled:
    """Fill a chat, with the facts spread evenly over the first nine tenths, and seal it."""
    from chats.models import Chat

    told = facts(min(size // 50, 100))
    step = max(size * 9 // 10 // max(len(told), 1) // 2 * 2, 2)
    chat = Chat.objects.create(
        organization=assistant.organization, user=assistant.user, assistant=assistant
    )
    filled = _Filled(chat, size, told)
    _talk(filled, size, {number * step: fact for number, (fact, _, _) in enumerate(told)})
    filled.recalled = _recalled(chat, told)
    return filled


def _measured(filled: list[_Filled]) -> list[dict[str, Any]]:
    """Ask in all chats by turns, so that each is measured on the same machine, at several lengths."""
    for growth in range(GROWTHS):
        if growth:
            for each in filled:
                _talk(each, GROWTH_MESSAGES)
        _measure(filled)
    return [
        {
            "messages": each.size,
            "blocks": each.blocks,
            "seal_seconds": round(each.sealed_seconds, 2),
            "ms": round(statistics.mean(each.ms), 3),
            "each_ms": [round(ms, 2) for ms in each.ms],
            "rows": round(statistics.mean(each.rows)),
            "recalled": each.recalled,
        }
        for each in filled
    ]


def _measure(filled: list[_Filled]) -> None:
    times: dict[int, list[float]] = {number: [] for number in range(len(filled))}
    rows = dict.fromkeys(times, 0)
    for number in range(WARM_UP + ROUNDS):
        for place, each in enumerate(filled):
            turn = _turn(each.chat, each.told[number % len(each.told)][1])
            began = time.perf_counter()
            prepared = _prepared(turn)
            if number >= WARM_UP:
                times[place].append((time.perf_counter() - began) * 1_000)
            manifest = prepared.manifest()
            rows[place] = max(rows[place], len(manifest["messages"]) + len(manifest["blocks"]))
    for place, each in enumerate(filled):
        each.ms.append(statistics.median(times[place]))
        each.rows.append(rows[place])


def _talk(filled: _Filled, count: int, said: Mapping[int, str] = MappingProxyType({})) -> None:
    """Say so many messages in the chat, what is `said` at its places, and seal what can be sealed."""
    from chats.digest.blocks import seal
    from chats.messages import transcript
    from chats.models import ChatMessage

    chat = filled.chat
    row = chat.active_leaf
    rng = random.Random(f"{filled.size} {row and row.position}")
    rows = []
    for number in range(count):
        role, words = ("assistant", ANSWER_WORDS) if number % 2 else ("human", QUESTION_WORDS)
        content = said.get(number) or " ".join(rng.choices(WORDS, k=words))
        row = transcript.new_row(chat, row, role=role, content=content)
        rows.append(row)
    ChatMessage.objects.bulk_create(rows, batch_size=_BATCH)
    transcript.move_leaf(chat, row)
    began = time.monotonic()
    filled.blocks += seal(chat.pk)
    filled.sealed_seconds += time.monotonic() - began
    vacuum("chats_chatmessage", "chats_messageblock", "chats_chat")
    chat.refresh_from_db()


def _recalled(chat: Any, told: list[tuple[str, str, str]]) -> float:
    found = 0
    for _, question, answer in told:
        messages = _prepared(_turn(chat, question)).request.messages
        found += any(answer in str(message["content"]) for message in messages)
    return found / len(told) if told else 0.0


def _turn(chat: Any, question: str) -> Any:
    """Return a turn that asks at the end of the chat, which stays as it is."""
    from chats.models import ChatMessage, Turn

    leaf = chat.active_leaf
    asked = ChatMessage.objects.create(
        organization_id=chat.organization_id,
        chat=chat,
        parent=leaf,
        opening=leaf.opening,
        position=leaf.position + 1,
        role="human",
        content=question,
    )
    turn = Turn(
        organization=chat.organization,
        chat=chat,
        user=chat.user,
        assistant=chat.assistant,
        question=asked,
        tip=asked,
    )
    chat.active_leaf_id = asked.pk  # as the claim would read it; not stored
    return turn


def _prepared(turn: Any) -> Any:
    """Return the request that a chat worker would send: in one transaction, since nothing is embedded."""
    from django.db import transaction

    from chats.context import gathering
    from chats.context.question_embedding import QuestionEmbedding

    with transaction.atomic():
        gathered = gathering.gather(turn)
        layout = gathering.lay_out(turn, gathered)
        assert not gathered.wanted.embedding_models
        prepared = gathering.prepare(turn, gathered, layout, QuestionEmbedding())
    turn.chat.active_leaf_id = turn.question.parent_id
    return prepared


if __name__ == "__main__":
    main()
