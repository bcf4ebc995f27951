"""Write a running turn to the database, on the task's thread.

What is stored for good is one transaction, which locks the chat, then the turn with its fence; what is
saved on the way is one statement with the fence in its condition. If another worker has the turn, both
raise Fenced and write nothing. The events of a commit wait in `outbox`: the runner emits them,
also if it was cancelled while the commit ran.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from amber.lib.database.cached_sql import cache_sql
from amber.lib.database.lease import Fenced, update_leased
from amber.lib.errors import RateLimited
from amber.lib.tracing import names
from amber.lib.tracing.spans import trace
from assistants.totals import count_tokens
from chats.context.gathering import PreparedRequest
from chats.context.knowledge import Knowledge
from chats.events.stream import Event
from chats.messages import transcript
from chats.messages.tool_calls import store_answered_call
from chats.messages.wire import MessageWire
from chats.models import Chat, Turn
from chats.running.partial_text import ShownText
from chats.running.reply_rows import reply_id, store_reply_rows
from chats.turns.account import RELEASED, TurnAccount
from chats.turns.admission import release_budgets
from chats.turns.approval import waiting_call, without_call
from chats.turns.endings import TurnEnding, end_turn, last_event
from chats.turns.listeners import announce
from engine.events import TurnStatus
from engine.loop_events import Reply
from engine.messages import MessageRole
from engine.provider.model import Usage
from engine.tool_calls import ToolCall
from engine.tools import ToolResult
from providers.models import EmbeddingModel
from tools.calling.result_files import ResultFiles

_STATE_FIELDS = (
    "status",
    "error",
    "finish_reason",
    "waiting_calls",
    "ended_at",
    "digest_at",
    "first_token_at",
    "partial_text",
    "partial_reasoning",
    "seq",
    "step",
    "tip",
    "usage",
    "output",
    "updated_at",
)
# A message that is posted meanwhile moves the tip, and an assistant may be deleted. `seq` changes by
# our own write, if it was committed although its connection broke.
_CHANGED_BY_OTHERS = ("seq", "tip_id", "assistant_id", "cancel_requested_at")


class TurnWriter:
    """Writes one turn for as long as its fence holds. `turn` is the row as last committed.

    `account` counts what its provider calls used.
    """

    def __init__(self, turn: Turn) -> None:
        # The question came with the turn: the first message's parent need not be read.
        if turn.tip_id == turn.question_id:
            turn.tip = turn.question
        self.turn = turn
        self.account = TurnAccount()
        self.manifest: Callable[[], dict[str, Any]] | None = None
        """Makes the manifest of the request that was sent.

        It is stored with the turn's next write.
        """
        self._unwritten: dict[str, Any] | None = None
        self.outbox: list[Event] = []
        self.budget_refusal: RateLimited | None = None
        """Why no budget affords the next request of this turn, if so."""
        self.files: ResultFiles | None = None
        self._passages: Iterable[dict[str, Any]] = ()
        self._sender = ""
        self._hides_reasoning = turn.assistant is not None and turn.assistant.hide_reasoning

    def expect_answer(
        self, prepared: PreparedRequest, embedded: Sequence[tuple[EmbeddingModel, Usage]]
    ) -> None:
        """Learn the request that is sent next, and what embedding its question used."""
        self.account.model, self.account.asked = prepared.row, prepared.request.messages
        self.account.embedded = embedded
        self.files = prepared.toolbox.files
        self._sender = prepared.model.profile.sender
        self._passages = prepared.citable

    @property
    def must_record_start(self) -> bool:
        """Whether the request under way leaves something to write before its answer comes."""
        turn = self.turn
        return bool(turn.partial_text or turn.partial_reasoning or self.account.embedded)

    def record_start(self) -> None:
        """Delete the text of an attempt that broke off; record what embedding the question cost."""
        turn = copy(self.turn)
        turn.partial_text = turn.partial_reasoning = ""
        self._write_fenced(turn, "partial_text", "partial_reasoning", "updated_at")
        self.turn = turn
        self.account.settle_embedding(turn)

    def record_embedding(self, usages: Sequence[tuple[EmbeddingModel, Usage]]) -> None:
        """Record what embedding the question cost, when its vector has come late."""
        self.account.embedded = usages
        self.account.settle_embedding(self.turn)

    def store_knowledge(self, knowledge: Knowledge, seq: int) -> None:
        """Store what the library's search found, before anything of the answer."""
        with self._hold_turn(seq) as (turn, chat):
            step = turn.step + 1
            message = transcript.append_to_turn(
                turn,
                chat,
                role=MessageRole.KNOWLEDGE,
                content=knowledge.content,
                citations=list(knowledge.passages),
                step=step,
            )
            self._save(turn, seq, step, [message], before=_source_events(step, knowledge.passages))

    def save_partial(self, shown: ShownText) -> None:
        """Save text and reasoning that were shown. Does nothing once their step is stored."""
        if shown.step != self.turn.step + 1 or self.turn.status != TurnStatus.RUNNING:
            return
        turn = copy(self.turn)
        turn.seq = shown.seq
        changed = ["seq", *_keep_shown(turn, shown)]
        self._write_fenced(turn, *changed)

    @trace(names.STORE_REPLY)
    def store_reply(self, reply: Reply, seq: int) -> None:
        """Store one reply: its answer, which ends the turn, or the calls it asks for."""
        with self._hold_turn(seq) as (turn, chat):
            # First: `end_turn` would make a message of it, beside the reply that is stored here.
            turn.partial_text = turn.partial_reasoning = ""
            usage, estimated = self.account.usage_of(reply.usage, reply.text, reply.reasoning)
            self.account.settle(turn, usage, estimated=estimated, reply=reply)
            turn.first_token_at = turn.first_token_at or _first_token_at(reply)
            if self._hides_reasoning and turn.assistant_id is None:  # deleted meanwhile
                reply = replace(reply, reasoning="", provider_fields={})
            stored = store_reply_rows(turn, chat, reply, usage, self._passages, sender=self._sender)
            if reply.calls:
                self.budget_refusal = self.account.renew_reservation(turn, reply, usage)
            turn.step = reply.step
            turn.waiting_calls = [waiting_call(call) for call in reply.unapproved]
            if not reply.calls:
                ending = TurnEnding(TurnStatus.COMPLETED, finish_reason=reply.finish_reason)
                end_turn(turn, chat, ending)
            self._save(turn, seq, reply.step, stored, spent=usage)

    def store_result(self, step: int, call: ToolCall, result: ToolResult, seq: int) -> None:
        """Store a call's result with its passages and its file, then the files that it shows."""
        tool_call = store_answered_call(call, reply_id(self.turn, step))
        with self._hold_turn(seq) as (turn, chat):
            kept, shown = self.files.save(result) if self.files else (None, [])
            append = partial(transcript.append_to_turn, turn, chat, step=step, tool_call=tool_call)
            citations = list(result.passages)
            stored = [
                append(
                    role=MessageRole.TOOL, content=result.content, file=kept, citations=citations
                )
            ]
            stored += [append(role=MessageRole.FILE, file=file) for file in shown]
            turn.waiting_calls = without_call(turn.waiting_calls, call.id)
            self._save(turn, seq, step, stored, before=_source_events(step, citations))

    def take_approved(self, calls: Sequence[ToolCall]) -> None:
        """Clear the approval of these calls before they are made.

        A later attempt must not take it for permission to make them again.
        """
        with self._hold_turn() as (turn, _):
            for call in calls:
                turn.waiting_calls = without_call(turn.waiting_calls, call.id)
            self._update(turn, *_STATE_FIELDS)

    def wait(self, seq: int) -> None:
        """Give the turn up until somebody has decided on its `waiting_calls`.

        This does not count as an attempt. If it was cancelled at the same moment it ends: a turn
        that waits has no worker that would see the request.
        """
        with self._hold_turn(seq) as (turn, chat):
            if turn.cancel_requested_at is not None:
                end_turn(turn, chat, TurnEnding(TurnStatus.CANCELLED))
            else:
                release_budgets([turn])
                turn.leave(TurnStatus.WAITING, is_counted=False)
                announce(turn)
            self._save(turn, seq, turn.step, [])

    def return_client_calls(self, finish_reason: str, seq: int) -> None:
        """End the turn; its last calls are for the client to make."""
        with self._hold_turn(seq) as (turn, chat):
            end_turn(turn, chat, TurnEnding(TurnStatus.COMPLETED, finish_reason=finish_reason))
            self._save(turn, seq, turn.step, [])

    def end(self, ending: TurnEnding, shown: ShownText) -> None:
        """End the turn without a complete answer; text that was shown is kept."""
        with self._hold_turn() as (turn, chat):
            # No `seq` to hold against: a try that was committed has ended the turn, which fences the next.
            _keep_shown(turn, shown)
            outcome = ending.error["code"] if ending.error else str(ending.status)
            usage = self._settle_cut_off(turn, shown, outcome)
            stored = end_turn(turn, chat, ending, passages=self._passages)
            self._save(turn, shown.seq, turn.step + 1, stored, spent=usage)

    def release(self, shown: ShownText, *, is_counted: bool = False) -> None:
        """Release the turn to the queue. Its text is kept; the attempt does not count unless it failed."""
        with self._hold_turn() as (turn, _):
            _keep_shown(turn, shown)
            usage = self._settle_cut_off(turn, shown, RELEASED)
            turn.leave(TurnStatus.QUEUED, is_counted=is_counted)
            turn.seq = shown.seq
            self._update(turn, *_STATE_FIELDS)
            if turn.assistant_id and usage.total_tokens:
                count_tokens(turn.assistant_id, usage.total_tokens)

    def settle_deleted(self, shown: ShownText) -> None:
        """Record the call that was under way if the turn was deleted: nobody else will, and budgets count
        it. Of a turn that another worker has, the sweep has recorded it."""
        with suppress(IntegrityError), transaction.atomic():  # whose turn it was may be gone, too
            if not Turn.objects.filter(pk=self.turn.pk).exists():
                self._settle_cut_off(copy(self.turn), shown, "cancelled")

    # -- Private: inside one transaction ---------------------------------------------------------

    def _settle_cut_off(self, turn: Turn, shown: ShownText, outcome: str) -> Usage:
        """Record the call that was cut off, if a request was made. If its answer had begun its usage is
        estimated, also if nothing of it was shown: it may have been hidden, or the arguments of a call."""
        usage = Usage()
        if self.account.is_asking and self.account.is_answered:
            usage, _ = self.account.usage_of(None, shown.text, shown.reasoning)
        self.account.settle(turn, usage, estimated=True, outcome=outcome)
        return usage

    @contextmanager
    def _hold_turn(self, seq: int | None = None) -> Iterator[tuple[Turn, Chat | None]]:
        """Lock the turn for a write that comes after event `seq`, and may be tried again if it fails.

        Raises Fenced, also if an earlier try was committed although its connection broke: then the
        stored state is already past `seq`. Viewers find it in Postgres.
        """
        self._make_manifest()
        with self.account.undone_on_error(), transaction.atomic():
            chat = self._lock_current_chat()
            turn = copy(self.turn)
            stored_seq, *current, children = Turn.objects.holding(
                turn.pk, turn.fence, *_CHANGED_BY_OTHERS, beside=transcript.TIP_CHILDREN_SQL
            )
            if seq is not None and stored_seq > seq:
                raise Fenced
            turn.tip_id, turn.assistant_id, turn.cancel_requested_at = current
            # The siblings of a message without a parent are the chat's roots, which this did not read.
            turn.tip_children = children if turn.tip_id else None
            yield turn, chat
        # Only after the commit: a failed transaction leaves the turn as it was last stored.
        self.turn = turn
        self._unwritten = None

    def _lock_current_chat(self) -> Chat | None:
        """Lock the chat.

        While we hold the fence only leaf and name can change: the rest is not read.
        """
        if self.turn.chat is None:
            return None
        chat = copy(self.turn.chat)
        found = _lock_chat(chat_id=chat.pk)
        if not found:
            raise Fenced
        chat.active_leaf_id, chat.name = found[0]
        return chat

    def _write_fenced(self, turn: Turn, *names: str) -> None:
        """Write these columns without a lock: one statement, with the fence in its condition."""
        self._make_manifest()
        where = {"fence": turn.fence, "status": TurnStatus.RUNNING}
        if not self._update(turn, *names, where=where):
            raise Fenced
        self._unwritten = None

    def _make_manifest(self) -> None:
        """Make the manifest before anything is locked, since it counts tokens; once, even if it
        fails."""
        make, self.manifest = self.manifest, None
        if make is not None:
            self._unwritten = make()

    def _update(self, turn: Turn, *names: str, where: dict[str, Any] | None = None) -> bool:
        """Write these columns, and a manifest that was not written yet."""
        if self._unwritten is not None:
            turn.manifest = self._unwritten
            names = (*names, "manifest")
        return update_leased(turn, *names, where=where)

    def _save(
        self,
        turn: Turn,
        seq: int,
        step: int,
        stored: Sequence[MessageWire],
        *,
        before: Sequence[Event] = (),
        spent: Usage | None = None,
    ) -> None:
        """Save the turn, and put the events of the commit into the outbox.

        The assistant's total comes last: all its turns wait for each other there.
        """
        events: list[Event] = [
            *before,
            *(("message.stored", {"step": step, "message": message}) for message in stored),
        ]
        if turn.status != TurnStatus.RUNNING:
            events.append(last_event(turn))
        turn.seq = seq + len(events)
        self._update(turn, *_STATE_FIELDS)
        if spent is not None and turn.assistant_id:
            count_tokens(turn.assistant_id, spent.total_tokens)
        transaction.on_commit(lambda: self.outbox.extend(events))


def _keep_shown(turn: Turn, shown: ShownText) -> list[str]:
    """Keep what was shown of a step in the turn; return the columns that changed."""
    changed = {"partial_text": shown.text, "partial_reasoning": shown.reasoning}
    changed = {name: text for name, text in changed.items() if getattr(turn, name) != text}
    for name, text in changed.items():
        setattr(turn, name, text)
    return list(changed)


@cache_sql
def _lock_chat(*, chat_id: UUID) -> QuerySet[Chat, tuple[UUID | None, str]]:
    locked = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id)
    return locked.values_list("active_leaf_id", "name")


def _source_events(step: int, passages: Iterable[dict[str, Any]]) -> list[Event]:
    return [("source.added", {"step": step, "passage": passage}) for passage in passages]


def _first_token_at(reply: Reply) -> datetime | None:
    if reply.first_token_seconds is None:
        return None
    return timezone.now() - timedelta(seconds=reply.seconds - reply.first_token_seconds)
