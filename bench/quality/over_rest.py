"""Measure recall of earlier talk from outside: chats imported over REST, questions asked as people ask them.

Amber runs as `manage.py up` starts it, with the fake provider and the built-in embedder. Each question
is asked as a branch from the chat's end, so that none reads another, and its turn's manifest tells which
messages the model was shown.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import aiohttp

from bench.loadgen import say
from bench.quality.conversations import RecordedConversation
from bench.quality.made_chats import languages, make_chat, small_talk
from bench.quality.options import QualityOptions
from bench.quality.tables import Table, percent
from bench.rest import call, signed_in
from bench.stand import RunningAmber, stand

TAIL_TOKENS: Final = 1_000
"""Less than the small talk takes: with the usual 12,000 all 600 messages would be shown as they are."""
RECALL_TOKENS: Final = 1_500
SEAL_ATTEMPTS: Final = 60
SEAL_PAUSE_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.1


def measure(options: QualityOptions) -> list[Table]:
    """Return one table, a row for each language."""
    chosen = [make_chat(language, seed=1) for language in languages()]
    if options.quick:
        chosen = chosen[:1]
    with (
        stand() as place,
        place.provider() as provider_url,
        place.amber(
            provider_url,
            AMBER_CONTEXT_TAIL_TOKENS=str(TAIL_TOKENS),
            AMBER_RECALL_TOKENS=str(RECALL_TOKENS),
        ) as amber,
    ):
        rows = asyncio.run(_measure_all(amber, chosen))
    return [
        Table(
            title="chats over REST",
            columns=["", "questions", "evidence shown", "recalled tokens", "unrelated", "false"],
            rows=rows,
            notes=[
                "Evidence among the messages that a turn's manifest names, in percent; tokens of recalled"
                " messages, mean; unrelated questions for which something is recalled, in percent."
            ],
        )
    ]


async def _measure_all(
    amber: RunningAmber, chosen: Sequence[RecordedConversation]
) -> list[list[Any]]:
    async with signed_in(amber) as session:
        return list(await asyncio.gather(*(_measure_one(session, each) for each in chosen)))


async def _manifest(
    session: aiohttp.ClientSession, chat_id: str, text: str, parent_id: str
) -> dict[str, Any]:
    """Ask, wait for the end of the turn, and return what the model was shown."""
    asked = {"content": text, "parent_id": parent_id}
    turn = (await call(session, "POST", f"chats/{chat_id}/messages/", asked))["turn"]
    while turn["ended_at"] is None:
        await asyncio.sleep(POLL_SECONDS)
        turn = await call(session, "GET", f"turns/{turn['id']}/")
    manifest: dict[str, Any] = await call(session, "GET", f"turns/{turn['id']}/manifest/")
    return manifest


async def _measure_one(
    session: aiohttp.ClientSession, conversation: RecordedConversation
) -> list[Any]:
    chat_id, ids = await _import(session, conversation)
    end = ids[-1]
    await _wait_until_sealed(session, chat_id, conversation.questions[0].text, end)
    at = {message.id: ids[place] for place, message in enumerate(conversation.said)}
    found, used = [], []
    for question in conversation.questions:
        manifest = await _manifest(session, chat_id, question.text, end)
        shown = _shown(manifest) | {part["id"] for part in manifest["messages"]}
        wanted = [at[each] for each in question.evidence]
        found.append(sum(each in shown for each in wanted) / len(wanted))
        used.append(manifest["tokens"]["blocks"])
    false = [
        float(bool(_shown(await _manifest(session, chat_id, text, end))))
        for text in conversation.unrelated
    ]
    say(f"  {conversation.name}: {len(found)} questions")
    tokens = round(sum(used) / len(used))
    return [conversation.group, len(found), percent(found), tokens, len(false), percent(false)]


def _shown(manifest: dict[str, Any]) -> set[str]:
    return {pk for block in manifest["blocks"] for pk in block["message_ids"]}


async def _import(
    session: aiohttp.ClientSession, conversation: RecordedConversation
) -> tuple[str, list[str]]:
    """Import the conversation with small talk behind it; return the chat's id, and its messages' in order."""
    said = [*conversation.said, *small_talk(conversation.said[-1].at)]
    messages = [{"role": m.role, "content": m.text, "created_at": m.at.isoformat()} for m in said]
    assistant_id = (await call(session, "GET", "assistants/"))["results"][0]["id"]
    given = {"assistant_id": assistant_id, "messages": messages}
    made = await call(session, "POST", "chats/import/?again=true", given)
    chat_id = str(made["chats"][0]["chat"]["id"])
    exported = (await call(session, "GET", f"chats/{chat_id}/export/"))["messages"]
    assert [m["content"] for m in exported] == [m.text for m in said]
    return chat_id, [m["id"] for m in exported]


async def _wait_until_sealed(
    session: aiohttp.ClientSession, chat_id: str, text: str, end: str
) -> None:
    """Ask until earlier talk is recalled: the digest after the first turn seals the whole chat."""
    for _ in range(SEAL_ATTEMPTS):
        if (await _manifest(session, chat_id, text, end))["blocks"]:
            return
        await asyncio.sleep(SEAL_PAUSE_SECONDS)
    raise TimeoutError("The chat was not sealed.")
