"""Record what went into a turn's request, and what was left out and why: the turn's manifest.

It holds enough to rebuild the request (`rebuild_messages`): ids of messages, blocks and memories,
and texts of prompts. It does not copy what a person can have deleted: memories are named by id, and
their texts read when needed. Tokens are counted when it is written, while the model thinks.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from chats.context.composition import ComposedRequest, PromptFormat, compose, make_shortener
from chats.context.findings import RetrievedContext, volatile_of, volatile_texts
from chats.context.recall import RecalledBlock, rebuild_recalled
from chats.context.tail import Tail, posted_file
from chats.messages.transcript import attach_related
from chats.models import ChatMessage, MessageBlock, Turn
from engine.messages import MessageRole, ProviderMessage
from engine.provider.model import as_json
from engine.text import tokens
from engine.tools import MAX_OFFERED_TOOLS, ToolSpec
from engine.trust import Exposure
from memory.models import Memory
from tools.calling.toolbox import TurnToolbox

FILE_SHORTENED = "It is long: its beginning and the parts that matter to the question went in."
LEFT_OUT: Final = {
    "recall_full": "The token budget for recalled parts of the chat was used up.",
    "unrelated": "What was said earlier shares too little with the question to be recalled.",
    "too_many": f"At most {MAX_OFFERED_TOOLS} functions are offered.",
    "unreadable": "It could not be read.",
    "shortened": FILE_SHORTENED,
    "no_room": "They do not fit into the model's context window.",
    "older": "They are older than what is always sent; those that matter were recalled.",
}
"""Why something was left out, in words, by the code that clients have their own words for."""
_TEXTS = frozenset({"system_prompts", "scene"})


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What `chats.context.gathering` made a request of. `about` goes into the manifest as it is."""

    tail: Tail
    found: RetrievedContext
    toolbox: TurnToolbox
    system_prompts: Sequence[str]
    form: PromptFormat
    composed: ComposedRequest
    exposure: Exposure
    about: Mapping[str, Any] = field(default_factory=dict)


def manifest_of(used: Ingredients) -> dict[str, Any]:
    """Return the manifest as JSON. Counts the tokens of every text; short ones are cached."""
    count = partial(tokens.count_text, encoding=used.form.encoding)
    parts = {
        "messages": [_message(row, count) for row in used.tail.messages],
        "blocks": [_block(block) for block in used.found.blocks.taken],
        "memories": [_memory(m, relevance, count) for m, relevance in used.found.memories.items()],
        "passages": [_passage(passage, count) for passage in _passages(used.found)],
        "tools": [_tool(spec, count) for spec in used.toolbox.specs],
    }
    return {
        **used.about,
        **parts,
        "scene": _scene(used.found),
        "library_searched": used.found.knowledge is not None,
        "untrusted": sorted(used.exposure.untrusted),
        "notes": list(used.found.knowledge.notes) if used.found.knowledge else [],
        "system_prompts": list(used.system_prompts),
        "form": used.form.as_json(),
        "history_is_cut": used.tail.is_cut,
        "left_out": list(_left_out(used)),
        "tokens": {
            "limit": used.form.limit_tokens,
            "system": sum(count(text) for text in used.system_prompts),
            **{name: sum(part["tokens"] for part in rows) for name, rows in parts.items()},
        },
        "cacheable_share": _cacheable_share(used),
        "request_hash": request_hash(used.composed.messages),
    }


def manifest_with_memories(turn: Turn) -> dict[str, Any]:
    """Return the manifest as its user reads it, with the memories' current texts (None: deleted).

    One query, none if no memory went in.
    """
    manifest = turn.manifest or {}
    known = _memory_texts(turn)
    memories = [{**m, "content": known.get(m["id"])} for m in manifest.get("memories", [])]
    return {**manifest, "memories": memories} if memories else manifest


def rebuild_messages(turn: Turn) -> list[ProviderMessage] | None:
    """Rebuild the messages of the turn's request from its manifest.

    Return None if something they were made of has been deleted since. Three to five queries.
    """
    manifest = turn.manifest or {}
    ids = [message["id"] for message in manifest["messages"]]
    found = ChatMessage.objects.defer("search").in_bulk(ids)
    blocks = MessageBlock.objects.defer("vector", "piece_vectors", "search").in_bulk(
        [block["id"] for block in manifest["blocks"]]
    )
    known = _memory_texts(turn)
    parts = ((found, ids), (blocks, manifest["blocks"]), (known, manifest["memories"]))
    if any(len(there) < len(named) for there, named in parts):
        return None
    rows = [row for _, row in sorted(found.items(), key=lambda item: item[1].position)]
    if manifest["library_searched"]:
        knowledge = ChatMessage.objects.filter(turn=turn, role=MessageRole.KNOWLEDGE).first()
        if knowledge is None:
            return None
        rows.append(knowledge)
    attach_related(rows)
    form = PromptFormat(**manifest["form"])
    shown = {block["id"]: block.get("pieces") for block in manifest["blocks"]}
    earlier = [
        rebuild_recalled(block, shown[str(block.pk)])
        for block in sorted(blocks.values(), key=lambda b: b.last_position)
    ]
    facts = [known[memory["id"]] for memory in manifest["memories"]]
    volatile = volatile_texts(earlier, facts, form)
    prompts = manifest["system_prompts"]
    return compose(rows, system_prompts=prompts, volatile=volatile, form=form).messages


def without_texts(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return only ids and counts, for operators, who must not read what people wrote."""
    return {name: value for name, value in manifest.items() if name not in _TEXTS}


def _memory_texts(turn: Turn) -> dict[str, str]:
    """Return the texts, by id, of the memories that went in and still exist."""
    ids = [memory["id"] for memory in (turn.manifest or {}).get("memories", [])]
    if not ids:
        return {}
    rows = Memory.objects.filter(pk__in=ids, organization_id=turn.organization_id)
    return {str(pk): content for pk, content in rows.values_list("pk", "content")}


def request_hash(messages: Sequence[ProviderMessage]) -> str:
    """Hash the request's messages as JSON: it shows whether a rebuilt request is the same."""
    return hashlib.sha256(as_json({"messages": messages})).hexdigest()


def _message(row: ChatMessage, count: Callable[[str], int]) -> dict[str, Any]:
    return {"id": str(row.pk), "role": row.role, "tokens": count(row.content)}


def _block(block: RecalledBlock) -> dict[str, Any]:
    return {
        "id": str(block.id),
        "from_at": block.from_at.isoformat(),
        "until_at": block.until_at.isoformat(),
        "relevance": round(block.relevance, 3),
        "tokens": block.tokens,
        "message_ids": [str(pk) for pk in block.message_ids],
        "pieces": list(block.pieces),
    }


def _memory(memory: Memory, relevance: float, count: Callable[[str], int]) -> dict[str, Any]:
    return {
        "id": str(memory.pk),
        "relevance": round(relevance, 3),
        "tokens": count(memory.content),
    }


def _passages(found: RetrievedContext) -> Sequence[dict[str, Any]]:
    return found.knowledge.passages if found.knowledge else ()


def _passage(passage: dict[str, Any], count: Callable[[str], int]) -> dict[str, Any]:
    return {
        "number": passage["number"],
        "chunk_ids": passage["chunk_ids"],
        "document_id": passage["document"]["id"],
        "relevance": passage["relevance"],
        "tokens": count(passage["content"]),
    }


def _scene(found: RetrievedContext) -> dict[str, Any] | None:
    """Return the scene; None if the assistant has none, and without an id if none was near enough."""
    if found.scene is None and not found.scores:
        return None
    return {
        "id": str(found.scene.pk) if found.scene else None,
        "label": found.scene.label if found.scene else None,
        "is_pinned": not found.scores,
        "scores": {str(pk): score for pk, score in found.scores.items()},
    }


def _tool(spec: ToolSpec, count: Callable[[str], int]) -> dict[str, Any]:
    said = spec.description + as_json(spec.parameters).decode()
    return {"name": spec.name, "tokens": count(said)}


def _left_out(used: Ingredients) -> Iterator[dict[str, Any]]:
    """Yield what could have gone in, by kind, and why it did not."""
    for pk in used.found.blocks.left_out:
        yield _reason("block", "recall_full", id=str(pk))
    if used.found.blocks.is_unrelated:
        yield _reason("earlier messages", "unrelated")
    for name in used.toolbox.left_out:
        yield _reason("tool", "too_many", name=name)
    shorten = make_shortener(used.tail.messages, used.form)
    for file in filter(None, map(posted_file, used.tail.messages)):
        if file.unreadable:
            yield _reason("file", "unreadable", id=str(file.pk)) | {"reason": file.unreadable}
        elif file.text and shorten(file.text) != file.text:
            yield _reason("file", "shortened", id=str(file.pk))
    if dropped := used.composed.dropped:
        yield _reason("messages", "no_room", count=dropped)
    if used.tail.is_cut:
        yield _reason("earlier messages", "older")


def _reason(kind: str, code: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, **more, "code": code, "reason": LEFT_OUT[code]}


def _cacheable_share(used: Ingredients) -> float:
    """Return the share of the request, from its start, that the next one repeats: 0 to 1.

    Counted in characters, up to the first text that differs from turn to turn; they lie in the request in
    their order.
    """
    said = "".join(str(message["content"]) for message in used.composed.messages)
    places = (said.find(text) for text in volatile_of(used.found, used.form) if text)
    stable_chars = next((place for place in places if place >= 0), len(said))
    return round(stable_chars / len(said), 3) if said else 0.0
