"""The database side of a running turn: each method is one transaction, on the task's thread.

Every transaction locks the chat, then the turn with its fence; a turn that is no longer ours raises
Fenced and writes nothing. What viewers must be told of a commit waits in `outbox`: the runner emits
it, also when it was cancelled while the commit ran.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from amber.lib.errors import RateLimited
from amber.lib.lease import Fenced
from amber.lib.prepared import prepared
from amber.lib.row_writes import update_row
from assistants.models import Assistant
from chats import transcript
from chats.admission import dismiss, renew
from chats.approval import waiting_call, without_call
from chats.endings import Ending, end_turn, last_event
from chats.knowledge import Knowledge, cited_in
from chats.models import Chat, MessageRole, Turn, TurnStatus
from chats.stream import Event, first_seq
from chats.turn_news import announce
from chats.wire import turn_wire
from engine import tokens
from engine.happenings import Reply
from engine.messages import ProviderMessage, ToolCall
from engine.model import ProviderError, Usage
from engine.tools import ToolResult
from providers import ledger
from providers.models import EmbeddingModel, LanguageModel
from tools.result_files import ResultFiles

_MOVING = (
    "status",
    "error",
    "finish_reason",
    "lease_until",
    "worker",
    "attempt",
    "waiting_calls",
    "ended_at",
    "digest_at",
    "first_token_at",
    "partial_text",
    "seq",
    "step",
    "tip",
    "usage",
    "output",
    "updated_at",
)


class TurnWriter:
    """Writes one turn for as long as its fence holds. `turn` is the row as last committed.

    `model`, `asked` and `files` are those of the request under way, once it was composed.
    """

    def __init__(self, turn: Turn) -> None:
        if turn.tip_id == turn.question_id:
            turn.tip = turn.question
        self.turn = turn
        self.outbox: list[Event] = []
        self.retried: list[ProviderError] = []
        """Provider calls that failed and were made again: they go into the ledger too."""
        self.model: LanguageModel | None = None
        self.asked: Sequence[ProviderMessage] = ()
        self.files: ResultFiles | None = None
        self.embedded: Sequence[tuple[EmbeddingModel, Usage]] = ()
        self.manifest: Callable[[], dict[str, Any]] | None = None
        """Makes that of the request under way, until it was written: with the turn's next write."""
        self.passages: Iterable[dict[str, Any]] = ()
        self.refused: RateLimited | None = None
        """Why no budget affords the next request of this turn, if so."""

    def greeting(self) -> list[Event]:
        """The first events of this attempt; after a break, what is stored is said again."""
        turn = self.turn
        if turn.waiting_calls and turn.seq > first_seq(turn.attempt):
            return []  # it goes on where it waited, and every viewer knows what it had said
        if turn.attempt == 1 and turn.seq == 0:
            question = transcript.shown([turn.question])[0] if turn.question else None
            return [("turn.started", {"turn": turn_wire(turn), "message": question})]
        restarted = ("turn.restarted", {"attempt": turn.attempt, "step": turn.step + 1})
        stored = transcript.steps_of_turn(turn)
        return [
            restarted,
            *(("message.stored", {"step": step, "message": message}) for step, message in stored),
        ]

    @property
    def must_begin(self) -> bool:
        """Whether the request under way leaves something to write before its answer comes."""
        return bool(self.turn.partial_text or self.embedded)

    def begin(self) -> None:
        """Take back the text of an attempt that broke off; note what embedding the question cost."""
        turn = copy(self.turn)
        turn.partial_text = ""
        self._keep(turn, "partial_text", "updated_at")
        self.turn = turn
        for model, usage in self.embedded:
            self._record(self.turn, usage, model=model)
        self.embedded = ()

    def store_knowledge(self, knowledge: Knowledge, seq: int) -> None:
        """What the library had to say, before anything of the answer."""
        with self._held() as (turn, chat):
            step = turn.step + 1
            message = transcript.append_to_turn(
                turn,
                chat,
                role=MessageRole.KNOWLEDGE,
                content=knowledge.content,
                citations=list(knowledge.passages),
                step=step,
            )
            self._save(turn, seq, step, [message], before=_added(step, knowledge.passages))

    def save_partial(self, step: int, text: str, seq: int) -> None:
        """Keep text that was shown. Does nothing once its step is stored."""
        if step != self.turn.step + 1 or self.turn.status != TurnStatus.RUNNING:
            return
        turn = copy(self.turn)
        turn.partial_text, turn.seq = text, seq
        self._keep(turn, "partial_text", "seq")

    def store_reply(self, reply: Reply, seq: int) -> None:
        """The rows of one reply: its answer, which ends the turn, or the calls it asks for."""
        with self._held() as (turn, chat):
            turn.partial_text = ""
            usage, estimated = self._usage_of(reply.usage, reply.text)
            self._account(turn, usage, estimated=estimated, reply=reply)
            counted = _token_fields(usage)
            turn.first_token_at = turn.first_token_at or _first_token_at(reply)
            if reply.calls:
                stored = self._store_calls(turn, chat, reply, counted)
                self.refused = self._renewed(turn, reply, usage)
            else:
                stored = [self._store_answer(turn, chat, reply, counted)]
            turn.step = reply.step
            turn.waiting_calls = [waiting_call(call) for call in reply.unapproved]
            if not reply.calls:
                ending = Ending(TurnStatus.COMPLETED, finish_reason=reply.finish_reason)
                end_turn(turn, chat, ending)
            self._save(turn, seq, reply.step, stored)

    def store_result(self, step: int, call: ToolCall, result: ToolResult, seq: int) -> None:
        """The result with its passages and the document that belongs to it, then what it shows."""
        tool_call = {
            "id": call.id,
            "name": call.name,
            "arguments": "",
            "reply_id": self._reply_id(step),
        }
        with self._held() as (turn, chat):
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
            self._save(turn, seq, step, stored, before=_added(step, citations))

    def take_approved(self, calls: Sequence[ToolCall]) -> None:
        """Clear what was decided on these calls, before they are made: whoever comes after us
        must not take an approval for a second one."""
        with self._held() as (turn, _):
            for call in calls:
                turn.waiting_calls = without_call(turn.waiting_calls, call.id)
            self._update(turn, *_MOVING)

    def wait(self, seq: int) -> None:
        """Let go of the turn until somebody has decided on its `waiting_calls`.

        Not counted as an attempt. If it was cancelled in the same moment it ends: a turn that
        waits has no worker who would hear of it.
        """
        with self._held() as (turn, chat):
            if turn.cancel_requested_at is not None:
                end_turn(turn, chat, Ending(TurnStatus.CANCELLED))
            else:
                dismiss([turn])
                turn.status = TurnStatus.WAITING
                turn.attempt -= 1
                turn.worker = ""
                turn.lease_until = None
                announce(turn)
            self._save(turn, seq, turn.step, [])

    def hand_back(self, finish_reason: str, seq: int) -> None:
        """The turn is over; its last calls are for whoever asked."""
        with self._held() as (turn, chat):
            end_turn(turn, chat, Ending(TurnStatus.COMPLETED, finish_reason=finish_reason))
            self._save(turn, seq, turn.step, [])

    def end(self, ending: Ending, *, text: str, seq: int, error: ProviderError | None) -> None:
        """End the turn otherwise than by an answer; text that was shown is kept."""
        with self._held() as (turn, chat):
            turn.partial_text = text
            if text or error is not None or turn.step == 0:
                usage, _ = self._usage_of(None, text) if text else (Usage(), False)
                outcome = ending.error["code"] if ending.error else str(ending.status)
                self._account(turn, usage, estimated=True, outcome=outcome)
            stored = end_turn(turn, chat, ending, passages=self.passages)
            self._save(turn, seq, turn.step + 1, stored)

    def release(self, *, text: str, seq: int) -> None:
        """Give the turn back to the queue, its text kept, the attempt not counted."""
        with self._held() as (turn, _):
            turn.partial_text = text
            turn.status = TurnStatus.QUEUED
            turn.attempt -= 1
            turn.worker = ""
            turn.lease_until = None
            turn.seq = seq
            self._update(turn, *_MOVING)

    # -- Private: inside one transaction ---------------------------------------------------------

    @contextmanager
    def _held(self) -> Iterator[tuple[Turn, Chat | None]]:
        with transaction.atomic():
            chat = self._locked_chat()
            turn = copy(self.turn)
            turn.tip_id, turn.assistant_id, turn.cancel_requested_at = Turn.objects.holding(
                turn.pk, turn.fence, "tip_id", "assistant_id", "cancel_requested_at"
            )
            yield turn, chat
        self.turn = turn
        self.manifest = None

    def _locked_chat(self) -> Chat | None:
        """Under the fence only leaf and name can have changed: nothing else is read again."""
        if self.turn.chat is None:
            return None
        chat = copy(self.turn.chat)
        found = _locked(chat_id=chat.pk)
        if not found:
            raise Fenced
        chat.active_leaf_id, chat.name = found[0]
        return chat

    def _keep(self, turn: Turn, *names: str) -> None:
        """Without a lock: one statement that asks for the fence itself."""
        where = {"fence": turn.fence, "status": TurnStatus.RUNNING}
        if not self._update(turn, *names, where=where):
            raise Fenced
        self.manifest = None

    def _update(self, turn: Turn, *names: str, where: dict[str, Any] | None = None) -> bool:
        """These columns, and the manifest that was not written yet."""
        if self.manifest is not None:
            turn.manifest = self.manifest()
            names = (*names, "manifest")
        return update_row(turn, *names, where=where)

    def _save(
        self,
        turn: Turn,
        seq: int,
        step: int,
        stored: Sequence[dict[str, Any]],
        *,
        before: Sequence[Event] = (),
    ) -> None:
        events: list[Event] = [
            *before,
            *(("message.stored", {"step": step, "message": message}) for message in stored),
        ]
        if turn.status != TurnStatus.RUNNING:
            events.append(last_event(turn))
        turn.seq = seq + len(events)
        self._update(turn, *_MOVING)
        transaction.on_commit(lambda: self.outbox.extend(events))

    def _store_answer(
        self, turn: Turn, chat: Chat | None, reply: Reply, counted: dict[str, int]
    ) -> dict[str, Any]:
        return transcript.append_to_turn(
            turn,
            chat,
            role=MessageRole.ASSISTANT,
            content=reply.text,
            assistant=turn.assistant,
            citations=cited_in(reply.text, self.passages),
            step=reply.step,
            **counted,
        )

    def _reply_id(self, step: int) -> str:
        """Unique over all turns of a chat: calls with one id are one reply."""
        return f"{self.turn.pk}:{step}"

    def _store_calls(
        self, turn: Turn, chat: Chat | None, reply: Reply, counted: dict[str, int]
    ) -> list[dict[str, Any]]:
        """One row a call; the first carries the reply's text, what it cites, and token counts."""
        cited = cited_in(reply.text, self.passages)
        stored = []
        for number, call in enumerate(reply.calls):
            stored.append(
                transcript.append_to_turn(
                    turn,
                    chat,
                    role=MessageRole.TOOL_CALL,
                    content="" if number else reply.text,
                    assistant=turn.assistant,
                    step=reply.step,
                    tool_call={
                        "id": call.id,
                        "name": call.name,
                        "arguments": call.arguments,
                        "reply_id": self._reply_id(reply.step),
                    },
                    **({} if number else {**counted, "citations": cited}),
                )
            )
        return stored

    def _usage_of(self, usage: Usage | None, text: str) -> tuple[Usage, bool]:
        """The provider's count, or our own estimate, and whether it is one."""
        if usage is not None:
            return usage, False
        encoding = self.model.encoding if self.model else tokens.DEFAULT_ENCODING
        asked = tokens.count_messages(self.asked, encoding)
        return Usage(asked, tokens.count_text(text, encoding)), True

    def _account(
        self,
        turn: Turn,
        usage: Usage,
        *,
        estimated: bool,
        reply: Reply | None = None,
        outcome: str = "ok",
    ) -> None:
        """Ledger rows for this call and the retried ones before it; totals of turn and assistant."""
        if self.model is None:
            return
        for error in self.retried:
            self._record(turn, Usage(), outcome=error.code)
        self.retried = []
        self._record(
            turn,
            usage,
            estimated=estimated,
            outcome=outcome,
            first_token_ms=_ms(reply.first_token_seconds) if reply else None,
            latency_ms=_ms(reply.seconds) or 0 if reply else 0,
        )
        turn.usage = _add(turn.usage, usage)
        if turn.assistant_id:
            Assistant.objects.filter(pk=turn.assistant_id).update(
                total_token_usage=F("total_token_usage") + usage.total_tokens
            )

    def _renewed(self, turn: Turn, reply: Reply, usage: Usage) -> RateLimited | None:
        """Whether the next request can be afforded, where the turn goes on by itself."""
        handed_back = {tool["name"] for tool in turn.options.get("tools", ())}
        rests = reply.unapproved or any(call.name in handed_back for call in reply.calls)
        if rests or self.model is None:
            return None
        return renew(turn, self.model, usage)

    def _record(
        self, turn: Turn, usage: Usage, *, model: EmbeddingModel | None = None, **fields: Any
    ) -> None:
        """One provider call: of the answering model, unless another is named."""
        assert self.model is not None
        ledger.record(
            model or self.model,
            usage,
            organization_id=turn.organization_id,
            user_id=turn.user_id,
            api_key_id=turn.api_key_id,
            guest_id=turn.guest_id,
            assistant_id=turn.assistant_id,
            turn_id=turn.pk,
            is_budgeted=turn.is_budgeted,
            **fields,
        )


@prepared
def _locked(*, chat_id: UUID) -> QuerySet[Chat, tuple[UUID | None, str]]:
    locked = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id)
    return locked.values_list("active_leaf_id", "name")


def open_calls(turn: Turn) -> list[ToolCall]:
    """Calls of the turn's last stored step that have no result: a worker died while they ran."""
    rows = transcript.rows_of_step(turn)
    finished = [row["tool_call"]["id"] for row in rows if row["role"] == MessageRole.TOOL]
    calls = []
    for row in rows:
        if row["role"] != MessageRole.TOOL_CALL:
            continue
        call = row["tool_call"]
        if call["id"] in finished:
            finished.remove(call["id"])
        else:
            calls.append(ToolCall(call["id"], call["name"], call["arguments"], call["reply_id"]))
    return calls


def _added(step: int, passages: Iterable[dict[str, Any]]) -> list[Event]:
    return [("source.added", {"step": step, "passage": passage}) for passage in passages]


def _token_fields(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def _add(total: dict[str, int], usage: Usage) -> dict[str, int]:
    counted = {**_token_fields(usage), "cached_tokens": usage.cached_tokens}
    return {name: total.get(name, 0) + number for name, number in counted.items()}


def _first_token_at(reply: Reply) -> datetime | None:
    if reply.first_token_seconds is None:
        return None
    return timezone.now() - timedelta(seconds=reply.seconds - reply.first_token_seconds)


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
