"""Compose contexts of chats of many sizes in its own process: `python -m bench.context_driver`.

It prints one JSON line: for each size what a context took and read, and how many of the facts
planted in the longest chat were recalled when they were asked for. It uses the database it is
given.
"""

import json
import random
import statistics
import sys
import time
from itertools import islice
from typing import Any, NamedTuple

import django

from bench.stand import vacuum

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
ROUNDS = 100
WARM_UP = 12
"""Postgres plans a statement anew the first ten times."""
_BATCH = 2_000


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


class _Filled(NamedTuple):
    """A sealed chat, what was told in it, and how long sealing took."""

    chat: Any
    told: list[tuple[str, str, str]]
    blocks: int
    sealed_seconds: float


def _filled(assistant: Any, size: int) -> _Filled:
    from chats.digest.blocks import seal

    told = facts(min(size // 50, 100))
    chat = _chat(assistant, size, told)
    began = time.monotonic()
    blocks = seal(chat.pk)
    sealed_seconds = time.monotonic() - began
    vacuum("chats_chatmessage", "chats_messageblock", "chats_chat")
    chat.refresh_from_db()
    return _Filled(chat, told, blocks, sealed_seconds)


def _measured(filled: list[_Filled]) -> list[dict[str, Any]]:
    """Ask in all chats by turns, so that each is measured on the same machine."""
    times: dict[int, list[float]] = {number: [] for number in range(len(filled))}
    read = dict.fromkeys(times, 0)
    for number in range(WARM_UP + ROUNDS):
        for place, (chat, told, *_) in enumerate(filled):
            turn = _turn(chat, told[number % len(told)][1])
            began = time.perf_counter()
            prepared = _prepared(turn)
            if number >= WARM_UP:
                times[place].append((time.perf_counter() - began) * 1_000)
            manifest = prepared.manifest()
            read[place] = max(read[place], len(manifest["messages"]) + len(manifest["blocks"]))
    return [
        {
            "messages": each.chat.active_leaf.position + 1,
            "blocks": each.blocks,
            "seal_seconds": round(each.sealed_seconds, 2),
            "ms": round(statistics.median(times[place]), 3),
            "rows": read[place],
            "recalled": _recalled(each.chat, each.told),
        }
        for place, each in enumerate(filled)
    ]


def _chat(assistant: Any, size: int, told: list[tuple[str, str, str]]) -> Any:
    """Fill a chat, with the facts spread evenly over the first nine tenths."""
    from chats.messages import transcript
    from chats.messages.imported_tree import build_tree
    from chats.models import Chat, ChatMessage

    rng = random.Random(size)
    step = max(size * 9 // 10 // max(len(told), 1) // 2 * 2, 2)
    places = {number * step: fact for number, (fact, _, _) in enumerate(told)}
    chat = Chat.objects.create(
        organization=assistant.organization, user=assistant.user, assistant=assistant
    )
    given = [
        {
            "role": "assistant" if number % 2 else "human",
            "content": places.get(number)
            or " ".join(rng.choices(WORDS, k=ANSWER_WORDS if number % 2 else QUESTION_WORDS)),
        }
        for number in range(size)
    ]
    rows = iter(build_tree(chat, given).values())
    last = None
    while some := list(islice(rows, _BATCH)):
        last = ChatMessage.objects.bulk_create(some)[-1]
    transcript.move_leaf(chat, last)
    return chat


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
