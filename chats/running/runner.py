"""Run one claimed turn: gather its context, drive the engine, store each step, end it.

The coroutine (`TurnRun.drive`) lives on the worker's loop and sends every database write to the
task's thread (`TurnWriter`), which is the turn's only writer. What is stored equals the fold of
what was emitted: `turn.seq` is the number of the last event that the stored state includes.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections

from amber.lib.database.lease import Fenced
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.errors import CODES, RETRYABLE, AmberError
from amber.lib.tracing import names, spans
from amber.lib.tracing.spans import trace
from amber.lib.workers.entry_gate import EntryGate, EntryPlace
from amber.lib.workers.leases import StopReason
from amber.lib.workers.thread_bridge import RunInThread, run_on_loop
from amber.lib.workers.worker import this_worker
from chats.context import gathering
from chats.context.knowledge import Knowledge
from chats.events.stream import Feed, publisher
from chats.models import Turn
from chats.running.partial_text import PartialText, ShownText
from chats.running.preparation import Preparation
from chats.running.resumption import close_calls
from chats.running.stopping import TaskRun, running_turns
from chats.running.writer import TurnWriter
from chats.turns import claims
from chats.turns.attempt_spans import attempt_span, describe_outcome
from chats.turns.endings import TurnEnding
from engine import loop, loop_events
from engine.events import TurnStatus
from engine.provider.model import ProviderError
from engine.provider.reply import RetryPolicy
from engine.tool_calls import item_form

logger = structlog.get_logger(__name__)

ENTRY: Final = EntryGate(places=2)
"""Turns at once between their claim and their request."""

STORE_SECONDS: Final = 60.0
"""How long an answer is kept for a Postgres that is away: three leases, and longer than most restarts."""
STORE_PAUSE_SECONDS: Final = 0.5


def run_next(*, worker: str) -> TurnStatus | None:
    """Claim the turn that is next, and run it. Return its state afterwards, or None if none may run.

    `queued` means that it was released and needs another worker; `waiting`, that a person must
    decide on calls first.
    """
    with ENTRY.place() as place:
        began_ns = spans.clock_ns()
        with across_tenants():
            claimed = claims.claim_next(worker)
        return run_claimed(*claimed, place, began_ns) if claimed else None


def run_claimed(
    turn_id: UUID, whose: tuple[Any, ...], place: EntryPlace, began_ns: int = 0
) -> TurnStatus | None:
    """Run a turn that this worker has claimed, on behalf of its owner.

    Leave the place once the request is prepared. `began_ns` is when the claim began, for its span.
    """
    with as_tenant(Tenant(*whose)):
        try:
            return _run_claimed(turn_id, place, began_ns)
        except (OperationalError, InterfaceError) as exc:
            logger.warning("turn_not_begun", turn_id=str(turn_id), reason=type(exc).__name__)
            return _return_claim(turn_id)


def _return_claim(turn_id: UUID) -> TurnStatus | None:
    """Queue a turn that was claimed and not begun, once Postgres is back.

    Give up after half of its lease: later another worker may have it.
    """
    give_up_at = time.monotonic() + settings.AMBER_LEASE_SECONDS / 2
    while time.monotonic() < give_up_at:
        connections.close_all()
        try:
            is_queued = Turn.objects.return_claim(turn_id, worker=this_worker().name)
        except (OperationalError, InterfaceError):
            time.sleep(STORE_PAUSE_SECONDS)
        else:
            return TurnStatus.QUEUED if is_queued else None
    return None


def _run_claimed(turn_id: UUID, place: EntryPlace, began_ns: int) -> TurnStatus | None:
    turn = gathering.load_claimed_turn(turn_id)
    if turn is None:
        return None
    with attempt_span(turn, began_ns) as span:
        spans.add(names.CLAIM, began_ns)
        return _run_turn(turn, place, span)


def _run_turn(turn: Turn, place: EntryPlace, span: spans.TraceSpan) -> TurnStatus | None:
    run = TurnRun(turn)
    about = {"turn_id": str(turn.pk), "organization_id": str(turn.organization_id)}
    with running_turns.listing([turn], run), structlog.contextvars.bound_contextvars(**about):
        try:
            run.prepare(place)
            place.leave()
            status: TurnStatus | None = run_on_loop(run.drive, on_task=run.set_task)
            return status
        finally:
            if span.is_recorded:
                span.set(run.describe_outcome())
            run.erase_leftovers()


class TurnRun(TaskRun):
    """One attempt at one turn."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._writer = TurnWriter(turn)
        self._first_events_task: asyncio.Task[None] | None = None
        self._start_task: asyncio.Task[None] | None = None
        self._knowledge_task: asyncio.Task[None] | None = None
        self._late_task: asyncio.Task[None] | None = None
        self._is_vector_new = False
        assistant = turn.assistant
        self._shows_reasoning = assistant is None or not assistant.hide_reasoning

    # -- On the task's thread, before and after the coroutine ------------------------------------

    @trace(names.PREPARE)
    def prepare(self, place: EntryPlace) -> None:
        self._preparation = Preparation(self._writer, place)

    def describe_outcome(self) -> spans.Attributes:
        return describe_outcome(self._writer.turn)

    def erase_leftovers(self) -> None:
        """Erase the files of results that were never stored."""
        if self._writer.files is not None:
            self._writer.files.erase_unsaved()

    # -- The coroutine ---------------------------------------------------------------------------

    async def drive(self, run_in_thread: RunInThread) -> TurnStatus | None:
        """Run the turn. Whatever happens, it reaches a state, or another worker has it."""
        self._run_in_thread = run_in_thread
        turn = self._writer.turn
        self._feed = Feed(publisher(), turn, on_fenced=lambda: self.stop(StopReason.FENCED))
        self._partial = PartialText(self._text_shown, self._save_partial)
        saver = asyncio.create_task(self._partial.save_forever())
        try:
            return await self._end_or_give_back()
        except Fenced:
            with self._guard_write():
                shown = self._text_shown()
                await self._run_in_thread(lambda: self._writer.settle_deleted(shown))
            return None
        finally:
            saver.cancel()
            self._preparation.embedding.give_up()
            if self._late_task is not None:
                self._late_task.cancel()
            begun = (
                self._first_events_task,
                self._knowledge_task,
                self._start_task,
                self._late_task,
            )
            # They write: each is waited for, and not cut off in the middle.
            others = [task for task in begun if task is not None]
            await asyncio.gather(saver, *others, return_exceptions=True)
            await self._feed.wait_until_flushed()
            # They hold callbacks of this run: in that cycle all that the turn has read would stay
            # in memory until the garbage collector runs.
            del self._feed, self._partial

    async def _end_or_give_back(self) -> TurnStatus | None:
        """Work until the turn has ended; without Postgres, give it back, so that a worker goes on with it."""
        try:
            return await self._work_to_the_end()
        except (OperationalError, InterfaceError):
            logger.exception("turn_lost_postgres")
            return await self._give_back()

    async def _work_to_the_end(self) -> TurnStatus | None:
        try:
            try:
                async with asyncio.timeout(settings.AMBER_TURN_SECONDS):
                    await self._work()
            finally:
                # From here on the turn is being ended: a second stop must not cut that off.
                self.let_finish()
            return TurnStatus(self._writer.turn.status)
        except (Fenced, OperationalError, InterfaceError):
            raise
        except asyncio.CancelledError:
            return await self._end_stopped()
        except TimeoutError:
            return await self._fail("provider_timeout")
        except (ProviderError, AmberError) as exc:
            return await self._fail(exc.code, exc.message)
        except Exception:
            logger.exception("turn_broke")
            return await self._fail("internal")

    async def _work(self) -> None:
        self._first_events_task = asyncio.create_task(self._emit_first_events())
        # Also before calls are closed: its toolbox says which of them may be made again.
        prepared = await self._preparation.prepare_first(self._run_in_thread)
        if self._writer.turn.step:
            prepared = await self._resume(prepared)
            if self._writer.turn.status != TurnStatus.RUNNING:
                return
        self._start_task = asyncio.create_task(self._record_start())
        if self._preparation.embedding.is_late:
            self._late_task = asyncio.create_task(self._record_late_vector())
        deadline = asyncio.get_running_loop().time() + settings.AMBER_TURN_SECONDS
        await self._run_steps(prepared, deadline)
        while self._is_vector_new and self._writer.turn.status == TurnStatus.RUNNING:
            self._is_vector_new = False
            renewed = await self._preparation.prepare_again(self._run_in_thread)
            await self._run_steps(renewed, deadline)

    async def _run_steps(self, prepared: gathering.PreparedRequest, deadline: float) -> None:
        """Run the turn to its end, or until a round of tools is over and the question's late vector has come.

        The next request then finds more.
        """
        self._writer.manifest = prepared.manifest
        self._knowledge_task = asyncio.create_task(self._store_knowledge(prepared.knowledge))
        new_events = loop.run(
            self._writer.account.watch_model(prepared.model),
            prepared.request,
            toolbox=prepared.toolbox,
            retry_policy=_retry_policy(deadline),
            max_tool_rounds=settings.AMBER_MAX_TOOL_ROUNDS,
            first_step=self._writer.turn.step + 1,
            on_retry=self._writer.account.note_retry,
            on_answer=self._writer.account.note_answer,
            exposure=prepared.exposure,
            mark=prepared.mark,
            is_outdated=lambda: self._is_vector_new,
        )
        async with aclosing(new_events):
            async for loop_event in new_events:
                await self._await_sources()
                await self._handle_event(loop_event)

    async def _handle_event(self, loop_event: loop_events.LoopEvent) -> None:
        """Tell the viewers of a loop event, and store the step that it completes."""
        feed, writer = self._feed, self._writer
        match loop_event:
            case loop_events.Text(step=step, text=text):
                feed.emit_text(step, text)
                self._partial.note_length(len(feed.text))
            case loop_events.Reasoning(step=step, text=text):
                if self._shows_reasoning:
                    feed.emit_reasoning(step, text)
            case loop_events.ReasoningTakenBack(step=step):
                if self._shows_reasoning:
                    feed.emit("turn.restarted", attempt=writer.turn.attempt, step=step)
                    feed.take_back(step)
            case loop_events.Reply():
                # Text that is held back has no number yet, and the commit follows the last number.
                feed.flush_text()
                await self._commit(lambda seq: writer.store_reply(loop_event, seq))
                if writer.budget_refusal is not None:
                    raise writer.budget_refusal
            case loop_events.CallStarted(step=step, call=call):
                feed.emit("tool.started", step=step, **item_form(call))
            case loop_events.CallFinished(step=step, call=call, result=result):
                feed.emit(
                    "tool.finished",
                    step=step,
                    call_id=call.id,
                    ok=result.ok,
                    content=result.content,
                )
                await self._commit(lambda seq: writer.store_result(step, call, result, seq))
            case loop_events.ApprovalNeeded():
                await self._commit(writer.wait)
            case loop_events.ClientCallsReturned(finish_reason=reason):
                await self._commit(lambda seq: writer.return_client_calls(reason, seq))

    async def _commit(self, write: Callable[[int], None]) -> None:
        """Store what comes after the last event, and emit the events of the commit."""
        # Nothing else emits until this commit's events are out, or they would share numbers: text has
        # been flushed, and what the model says next waits for the sources.
        seq = self._feed.seq
        await self._store(lambda: write(seq))
        self._emit_outbox()

    def _emit_outbox(self) -> None:
        """Emit the outbox: events of what was committed, whose numbers the commit has fixed."""
        outbox, self._writer.outbox = self._writer.outbox, []
        for name, fields in outbox:
            self._feed.emit(name, **fields)

    # -- Beginning -----------------------------------------------------------------------------

    async def _resume(self, prepared: gathering.PreparedRequest) -> gathering.PreparedRequest:
        """Close the calls that an earlier attempt left open, and prepare the request anew."""
        await self._await_first_events()
        closed = await close_calls(
            self._writer, prepared, run_in_thread=self._run_in_thread, handle=self._handle_event
        )
        if closed and self._writer.turn.status == TurnStatus.RUNNING:
            return await self._preparation.prepare_again(self._run_in_thread)
        return prepared

    async def _record_start(self) -> None:
        """Write, while the model thinks, what cannot wait for the turn's next write."""
        if self._writer.must_record_start:
            with self._guard_write():
                await self._run_in_thread(self._writer.record_start)

    async def _record_late_vector(self) -> None:
        """Wait for a vector that came too late for the first request, and account for it."""
        found = await self._preparation.embedding.wait_for_late()
        if found.usages:
            with self._guard_write():
                await self._run_in_thread(lambda: self._writer.record_embedding(found.usages))
        self._is_vector_new = bool(found.vectors) and not found.problem

    @contextmanager
    def _guard_write(self) -> Iterator[None]:
        """Guard a write that nobody waits for: a lost turn stops, an absent Postgres is logged."""
        try:
            yield
        except Fenced:
            self.stop(StopReason.FENCED)
        except (OperationalError, InterfaceError) as exc:
            logger.warning("turn_write_skipped", reason=type(exc).__name__)

    async def _emit_first_events(self) -> None:
        """Emit the first events, while the model is asked."""
        for name, fields in self._preparation.first_events():
            self._feed.emit(name, **fields)

    async def _store_knowledge(self, knowledge: Knowledge | None) -> None:
        """Store what the library's search found as a message, while the model thinks."""
        if knowledge is None:
            return
        await self._await_first_events()
        await self._commit(lambda seq: self._writer.store_knowledge(knowledge, seq))

    async def _await_first_events(self) -> None:
        """Wait until the first events are out: nothing is emitted before them, or if they
        failed."""
        await _await_task(self._first_events_task)

    async def _await_sources(self) -> None:
        """Wait until the sources are out: nothing of an answer is emitted before them."""
        await self._await_first_events()
        await _await_task(self._knowledge_task)

    # -- Text of the step under way --------------------------------------------------------------

    def _text_shown(self) -> ShownText:
        """Return the step's text as it was sent to viewers, up to the feed's last event."""
        self._feed.flush_text()
        step = self._writer.turn.step + 1
        return ShownText(step, *self._feed.shown_of(step), self._feed.seq)

    async def _save_partial(self, shown: ShownText) -> None:
        with self._guard_write():
            await self._run_in_thread(lambda: self._writer.save_partial(shown))

    async def _store(self, write: Callable[[], None]) -> None:
        """Write what must not be lost: again while Postgres is away, since it is promoted or restarted
        in seconds, and asking the model again would take longer. The fence says whether it is too late."""
        give_up_at = asyncio.get_running_loop().time() + STORE_SECONDS
        while True:
            try:
                await self._run_in_thread(write)
            except (OperationalError, InterfaceError) as exc:
                if asyncio.get_running_loop().time() >= give_up_at:
                    raise
                logger.warning("turn_write_repeated", reason=type(exc).__name__)
                await asyncio.sleep(STORE_PAUSE_SECONDS)
            else:
                return

    # -- Ending ----------------------------------------------------------------------------------

    async def _end_stopped(self) -> TurnStatus | None:
        """End or release a turn whose task was cancelled: by a person, a shutdown, or a lost
        lease."""
        is_ended_here = self._writer.turn.status != TurnStatus.RUNNING
        # A renewal takes a turn for lost, too, that has just ended here: its last events are still to go.
        if self.stopped_as is StopReason.FENCED and not is_ended_here:
            raise Fenced
        await self._await_sources()
        # It may have been cancelled while a commit ran, whose events nobody has emitted.
        self._emit_outbox()
        if self._writer.turn.status != TurnStatus.RUNNING:
            return TurnStatus(self._writer.turn.status)
        if self.stopped_as is StopReason.CANCELLED:
            return await self._close(TurnEnding(TurnStatus.CANCELLED))
        shown = self._text_shown()
        await self._store(lambda: self._writer.release(shown))
        return TurnStatus.QUEUED

    async def _give_back(self) -> TurnStatus | None:
        """Queue the turn again, once Postgres is back: nobody need wait for its lease to run out.

        The attempt counts, since what failed may fail for ever. The sweep ends a turn after its last one.
        """
        if self._writer.turn.status != TurnStatus.RUNNING or self._writer.turn.is_last_attempt:
            return None
        shown = self._text_shown()
        try:
            await self._store(lambda: self._writer.release(shown, is_counted=True))
        except (OperationalError, InterfaceError):
            return None
        return TurnStatus.QUEUED

    async def _fail(self, code: str, message: str = "") -> TurnStatus | None:
        """End the turn as failed, or as incomplete if text of this step was shown, which is
        kept."""
        await self._await_sources()
        self._emit_outbox()
        if self._writer.turn.status != TurnStatus.RUNNING:
            return TurnStatus(self._writer.turn.status)
        text = self._text_shown().text
        status = TurnStatus.INCOMPLETE if text.strip() else TurnStatus.FAILED
        said = {
            "code": code,
            "message": message or CODES[code][1],
            "retryable": code in RETRYABLE,
        }
        return await self._close(TurnEnding(status, error=said))

    async def _close(self, ending: TurnEnding) -> TurnStatus | None:
        shown = self._text_shown()
        await self._store(lambda: self._writer.end(ending, shown))
        self._emit_outbox()
        return ending.status


async def _await_task(task: "asyncio.Task[None] | None") -> None:
    """Wait for a task, if it was begun. Raises what it raised."""
    if task is None:
        return
    if not task.done():
        # Not `await task`: who is cancelled while awaiting a task cancels that, too.
        await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        raise error


def _retry_policy(deadline: float) -> RetryPolicy:
    return RetryPolicy(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        idle_seconds=settings.AMBER_IDLE_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
        deadline=deadline,
    )
