"""Measure recall of earlier talk and `search_conversation`: planted evidence, and what is found for nothing.

Chats are rows of a throw-away organization, sealed as a digest seals them. Evidence counts as found when
its message is among those shown; a question with several counts by the share of them. Vectors, where
they are used, are the stand-in's or the caller's embedder's, written beside the blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from accounts.models import User
from amber.lib.ids import new_id
from bench.loadgen import say
from bench.quality.conversations import RecordedConversation, read_locomo
from bench.quality.embedders import Embedder, RealEmbedder, StandInEmbedder
from bench.quality.made_chats import languages, make_chat, small_talk, unrelated_questions
from bench.quality.options import QualityOptions
from bench.quality.plain import plain_methods
from bench.quality.tables import Table, percent
from bench.quality.tenant import new_organization
from chats.context.block_search import PathSearch
from chats.context.recall import recall
from chats.context.search_tool import search_conversation
from chats.digest.blocks import seal
from chats.messages import transcript
from chats.messages.imported_tree import build_tree
from chats.models import Chat, ChatMessage, MessageBlock, Turn
from engine.context.pieces import read_pieces
from engine.text import tokens
from tools.protocol import ToolContext

BUDGETS: Final = (350, 1_500)
EVERYTHING: Final = 2**31 - 1
PAIRS: Final = Path(__file__).with_name("two_pairs_of_friends.json")
YEAR: Final = Path(__file__).with_name("a_year_of_two_friends.json")
"""630 messages in 25 evenings, with 125 questions: written when the ranking was known, and used for its weights of
speakers' names, of vectors and of questions about the world."""
SEEDS: Final = (1, 2)
LABEL_TOKENS: Final = 4
"""What "User: " and a line's end take, for methods that show bare texts."""


@dataclass(slots=True)
class Tally:
    """Of one method: shares of evidence found by budget, tokens used, and unrelated questions for which
    something was shown."""

    found: dict[int, list[float]] = field(default_factory=lambda: {b: [] for b in BUDGETS})
    used: dict[int, list[float]] = field(default_factory=lambda: {b: [] for b in BUDGETS})
    false: list[float] = field(default_factory=list)
    listed: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)


def measure(options: QualityOptions) -> list[Table]:
    """Return one table for each group of conversations, and one of all together."""
    tallies: dict[str, dict[str, Tally]] = {}
    real = RealEmbedder(options.embedder) if options.embedder else None
    with new_organization() as (_, user):
        for conversation in _conversations(options):
            say(f"  {conversation.name}: {len(conversation.said)} messages")
            embedder = real or StandInEmbedder([message.text for message in conversation.said])
            tally = tallies.setdefault(conversation.group, {})
            _measure_one(conversation, user, tally, embedder)
    if len(tallies) > 1:
        tallies["all"] = _together(tallies.values())
    return [_table(group, by_method) for group, by_method in tallies.items()]


def _together(groups: Iterable[dict[str, Tally]]) -> dict[str, Tally]:
    """Add up the tallies of all groups by method."""
    whole: dict[str, Tally] = {}
    for by_method in groups:
        for name, tally in by_method.items():
            sums = whole.setdefault(name, Tally())
            for budget in BUDGETS:
                sums.found[budget] += tally.found[budget]
                sums.used[budget] += tally.used[budget]
            sums.false += tally.false
            sums.listed += tally.listed
            sums.shown += tally.shown
    return whole


def _conversations(options: QualityOptions) -> Iterator[RecordedConversation]:
    english = unrelated_questions("English")
    if options.locomo is not None:
        yield from read_locomo(options.locomo, group=options.locomo.stem, unrelated=english)
        return
    yield from read_locomo(PAIRS, group="two pairs of friends", unrelated=english)
    yield from read_locomo(YEAR, group="a year of two friends", unrelated=english)
    for language in languages():
        for seed in SEEDS[: 1 if options.quick else None]:
            yield make_chat(language, seed)


def _measure_one(
    conversation: RecordedConversation, user: User, by_method: dict[str, Tally], embedder: Embedder
) -> None:
    _measure_plain(conversation, embedder, by_method)
    chat, places = _store(conversation, user)
    _measure_recall(conversation, chat, places, by_method.setdefault("Amber, words", Tally()))
    _measure_tool(conversation, chat, by_method["Amber, words"])
    model_id = _write_vectors(chat, embedder)
    _measure_recall(
        conversation,
        chat,
        places,
        by_method.setdefault("Amber, words and vectors", Tally()),
        embedder=embedder,
        model_id=model_id,
    )


def _measure_plain(
    conversation: RecordedConversation, embedder: Embedder, by_method: dict[str, Tally]
) -> None:
    at = {message.id: place for place, message in enumerate(conversation.said)}
    costs = [tokens.count_text(message.text) + LABEL_TOKENS for message in conversation.said]
    for name, method in plain_methods(conversation, embedder).items():
        tally = by_method.setdefault(name, Tally())
        for question in conversation.questions:
            ranked = method(question.text)
            wanted = [at[each] for each in question.evidence]
            tally.listed.append(_share(wanted, set(ranked[:10])))
            for budget in BUDGETS:
                taken, used = _fill(ranked, costs, budget)
                tally.found[budget].append(_share(wanted, taken))
                tally.used[budget].append(used)
        for text in conversation.unrelated:
            tally.false.append(float(bool(method(text))))


def _measure_recall(
    conversation: RecordedConversation,
    chat: Chat,
    places: dict[str, UUID],
    tally: Tally,
    *,
    embedder: Embedder | None = None,
    model_id: UUID | None = None,
) -> None:
    today = conversation.said[-1].at.date()

    def ask(text: str, budget: int) -> Any:
        vector = embedder.embed([text])[0] if embedder else None
        search = PathSearch(chat.pk, EVERYTHING, vector, model_id)
        return recall(search, text, limit_tokens=budget, today=today).taken

    for question in conversation.questions:
        wanted = [places[each] for each in question.evidence]
        for budget in BUDGETS:
            taken = ask(question.text, budget)
            shown = {pk for block in taken for pk in block.message_ids}
            tally.found[budget].append(_share(wanted, shown))
            tally.used[budget].append(sum(block.tokens for block in taken))
    for text in conversation.unrelated:
        tally.false.append(float(bool(ask(text, BUDGETS[-1]))))


def _measure_tool(conversation: RecordedConversation, chat: Chat, tally: Tally) -> None:
    """Call the tool as a turn does. Evidence is found where its text stands in the list of ten."""
    turn = Turn.objects.create(
        organization_id=chat.organization_id,
        chat=chat,
        user=chat.user,
        tip_id=chat.active_leaf_id,
        status="completed",
    )
    context = ToolContext(chat.organization_id, chat_id=chat.pk, turn_id=turn.pk)
    texts = {message.id: message.text[:400] for message in conversation.said}
    for question in conversation.questions:
        answer = search_conversation(context, question.text)
        listed = answer.partition("\n\n")[0]
        wanted = [texts[each] for each in question.evidence]
        tally.listed.append(sum(text in listed for text in wanted) / len(wanted))
        tally.shown.append(sum(text in answer for text in wanted) / len(wanted))


def _share(wanted: Sequence[Any], found: Any) -> float:
    return sum(each in found for each in wanted) / len(wanted)


def _fill(ranked: Sequence[int], costs: Sequence[int], budget: int) -> tuple[set[int], int]:
    taken: set[int] = set()
    rest = budget
    for place in ranked:
        if costs[place] <= rest:
            taken.add(place)
            rest -= costs[place]
    return taken, budget - rest


def _store(conversation: RecordedConversation, user: User) -> tuple[Chat, dict[str, UUID]]:
    """Store the conversation, and small talk behind it until all of it is sealed."""
    membership = user.memberships.get()
    chat = Chat.objects.create(
        organization_id=membership.organization_id, user=user, name=conversation.name
    )
    said = [*conversation.said, *small_talk(conversation.said[-1].at)]
    rows = build_tree(chat, [{"id": m.id, "role": m.role, "content": m.text} for m in said])
    written = ChatMessage.objects.bulk_create(rows.values(), batch_size=1_000)
    for row, message in zip(written, said, strict=True):
        row.created_at = message.at
    ChatMessage.objects.bulk_update(written, ["created_at"], batch_size=1_000)
    transcript.move_leaf(chat, written[-1])
    seal(chat.pk)
    chat.refresh_from_db()
    return chat, {name: row.pk for name, row in rows.items()}


def _write_vectors(chat: Chat, embedder: Embedder) -> UUID:
    """Write an embedder's vectors where `chats.digest.blocks.embed` writes a model's."""
    model_id = new_id()
    blocks = list(MessageBlock.objects.filter(chat=chat))
    for block in blocks:
        pieces = read_pieces(block.pieces)
        vectors = embedder.embed([block.full_content[p.start : p.end] for p in pieces])
        block.vector, block.piece_vectors = vectors.mean(axis=0), list(vectors)
        block.embedding_model_id = model_id
    MessageBlock.objects.bulk_update(blocks, ["vector", "piece_vectors", "embedding_model_id"])
    return model_id


def _table(group: str, by_method: dict[str, Tally]) -> Table:
    """Return the table of a group."""
    columns = [
        "",
        *(f"at {budget:,}" for budget in BUDGETS),
        "tokens",
        "false",
        "R@10",
        "with neighbours",
    ]
    rows = []
    for name, tally in by_method.items():
        found = [percent(tally.found[budget]) for budget in BUDGETS]
        used = tally.used[BUDGETS[-1]]
        rows.append(
            [
                name,
                *found,
                round(sum(used) / len(used)),
                percent(tally.false),
                percent(tally.listed),
                percent(tally.shown),
            ]
        )
    (asked, *_) = {len(tally.found[BUDGETS[0]]) for tally in by_method.values()}
    return Table(
        title=f"chats, {group}: {asked} questions",
        columns=columns,
        rows=rows,
        notes=[
            "Evidence found in percent, at so many tokens; tokens used at most; unrelated questions for"
            " which something is shown; evidence among ten messages: Amber's are search_conversation's."
        ],
    )
