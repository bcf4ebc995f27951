"""Runs one claimed turn: gathers its context, drives the engine, stores each step, ends it.

The coroutine (`TurnRun.drive`) lives on the worker's loop and hands every database write to the
task's thread (`TurnWriter`), which is the turn's only writer. What is stored equals the fold of
what was emitted: `turn.seq` is the number of the last event that the stored state includes.
"""

import asyncio
import enum
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from amber.lib.bridge import Hand, outcome_of, run_on_loop, worker_loop
from amber.lib.connections import release_connections
from amber.lib.errors import CODES, RETRYABLE, AmberError
from amber.lib.lease import Fenced
from chats import context
from chats.approval import DECLINED, sort_calls
from chats.endings import Ending
from chats.knowledge import Knowledge
from chats.lookups import Embedded, embed_question
from chats.models import Turn, TurnStatus
from chats.stream import Feed, publisher
from chats.turn_writer import TurnWriter, open_calls
from engine import happenings, loop
from engine.messages import ToolCall
from engine.model import ProviderError
from engine.reply import Patience
from engine.tools import ToolResult
from tools.toolbox import TurnToolbox

logger = structlog.get_logger(__name__)

PARTIAL_SECONDS = 1.0
PARTIAL_CHARS = 2_048
"""How much shown text a crash may take back: a second's, or this much (design 5.5)."""

UNKNOWN_OUTCOME = (
    "The worker stopped while this call was running. Its outcome is unknown; it was not repeated."
)


class Stop(enum.Enum):
    """Why a running turn is stopped from outside."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    FENCED = "fenced"


_running: dict[UUID, "TurnRun"] = {}


def running_ids() -> list[UUID]:
    """The turns of this process."""
    return list(_running)


def stop(turn_id: UUID, reason: Stop) -> None:
    """Stop a turn of this process; nothing happens when it does not run here."""
    run = _running.get(turn_id)
    if run is not None:
        worker_loop().call_soon_threadsafe(run.stop, reason)


def run(turn_id: UUID, *, worker: str) -> TurnStatus | None:
    """Claim and run a turn. Its state afterwards; None when it was, or became, another's.

    `queued` means that it was released and wants another worker; `waiting`, that a person must
    decide on calls first.
    """
    if not Turn.objects.take(turn_id, worker, settings.AMBER_LEASE_SECONDS):
        return None
    turn = context.claimed(turn_id)
    if turn is None:
        return None
    this = _running[turn.pk] = TurnRun(turn)
    try:
        with structlog.contextvars.bound_contextvars(
            turn_id=str(turn.pk), organization_id=str(turn.organization_id)
        ):
            this.begin()
            status: TurnStatus | None = run_on_loop(this.drive, on_task=this.started)
            return status
    finally:
        this.erase_leftovers()
        if _running.get(turn.pk) is this:  # it may have been lost, and claimed here again
            del _running[turn.pk]


class TurnRun:
    """One attempt at one turn."""

    def __init__(self, turn: Turn) -> None:
        self._writer = TurnWriter(turn)
        self._reason: Stop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._save_wanted = asyncio.Event()
        self._greeting: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._knowing: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """On the task's thread, before the coroutine is started: what it would hand back first."""
        self._first_events = outcome_of(self._writer.greeting)
        self._first_request = outcome_of(self._gather)
        release_connections()

    # -- Stopping from outside (on the loop's thread) ------------------------------------------

    def started(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        if self._reason is not None:
            task.cancel()

    def stop(self, reason: Stop) -> None:
        if self._reason is None:
            self._reason = reason
            if self._task is not None:
                self._task.cancel()

    def erase_leftovers(self) -> None:
        """Files of results that were never stored. After the coroutine, on the task's thread."""
        if self._writer.files is not None:
            self._writer.files.erase_unsaved()

    # -- The coroutine -------------------------------------------------------------------------

    async def drive(self, hand: Hand) -> TurnStatus | None:
        """The outer boundary: whatever happens, the turn reaches a state, or is another's."""
        self._hand = hand
        turn = self._writer.turn
        self._feed = Feed(publisher(), turn, on_fenced=lambda: self.stop(Stop.FENCED))
        saver = asyncio.create_task(self._save_partial_text())
        try:
            return await self._end()
        except Fenced:
            return None
        finally:
            saver.cancel()
            begun = (self._greeting, self._knowing, self._noting)
            others = [task for task in begun if task is not None]
            await asyncio.gather(saver, *others, return_exceptions=True)
            await self._feed.flushed()

    async def _end(self) -> TurnStatus | None:
        """Work until the turn is over, one way or another.

        Without Postgres nothing can be written: the lease runs out, and the turn is run again.
        """
        try:
            try:
                async with asyncio.timeout(settings.AMBER_TURN_SECONDS):
                    await self._work()
            finally:
                self._task = None  # what comes now is short, and must not be cut off
            return TurnStatus(self._writer.turn.status)
        except Fenced:
            raise
        except asyncio.CancelledError:
            return await self._stopped()
        except TimeoutError:
            return await self._fail("provider_timeout")
        except ProviderError as exc:
            return await self._fail(exc.code, exc.message, error=exc)
        except AmberError as exc:
            return await self._fail(exc.code, exc.message)
        except (OperationalError, InterfaceError):
            logger.exception("turn_lost_postgres")
            return None
        except Exception:
            logger.exception("turn_broke")
            return await self._fail("internal")

    async def _work(self) -> None:
        self._greeting = asyncio.create_task(self._greet())
        prepared = await self._embedded(*self._first_request.result())
        if self._writer.turn.step:
            prepared = await self._resume(prepared)
            if self._writer.turn.status != TurnStatus.RUNNING:
                return
        self._knowing = asyncio.create_task(self._know(prepared.knowledge))
        self._noting = asyncio.create_task(self._note(prepared))
        deadline = asyncio.get_running_loop().time() + settings.AMBER_TURN_SECONDS
        told = loop.run(
            prepared.model,
            prepared.request,
            toolbox=prepared.toolbox,
            patience=_patience(deadline),
            max_tool_rounds=settings.AMBER_MAX_TOOL_ROUNDS,
            first_step=self._writer.turn.step + 1,
            on_retry=lambda error, _: self._writer.retried.append(error),
        )
        async with aclosing(told):
            async for happening in told:
                await self._introduced()
                await self._take(happening)

    async def _take(self, happening: happenings.Happening) -> None:
        """Tell the viewers, and store what is whole."""
        feed, writer = self._feed, self._writer
        match happening:
            case happenings.Text(step=step, text=text):
                feed.emit_text(step, text)
                if len(feed.text) - self._saved_chars >= PARTIAL_CHARS:
                    self._save_wanted.set()
            case happenings.Reply():
                feed.flush_text()
                seq = feed.seq
                await self._hand(lambda: writer.store_reply(happening, seq))
                self._announce()
                if writer.refused is not None:
                    raise writer.refused
            case happenings.CallStarted(step=step, call=call):
                feed.emit(
                    "tool.started",
                    step=step,
                    call_id=call.id,
                    name=call.name,
                    arguments=call.arguments,
                )
            case happenings.CallFinished(step=step, call=call, result=result):
                feed.emit(
                    "tool.finished",
                    step=step,
                    call_id=call.id,
                    ok=result.ok,
                    content=result.content,
                )
                seq = feed.seq
                await self._hand(lambda: writer.store_result(step, call, result, seq))
                self._announce()
            case happenings.Waiting():
                seq = feed.seq
                await self._hand(lambda: writer.wait(seq))
                self._announce()
            case happenings.HandedBack(finish_reason=reason):
                seq = feed.seq
                await self._hand(lambda: writer.hand_back(reason, seq))
                self._announce()

    def _announce(self) -> None:
        """Emit what was committed. The numbers were fixed in the commit."""
        outbox, self._writer.outbox = self._writer.outbox, []
        for name, fields in outbox:
            self._feed.emit(name, **fields)

    # -- Beginning -----------------------------------------------------------------------------

    async def _prepare(self) -> context.Prepared:
        return await self._embedded(*await self._hand(self._gather))

    async def _embedded(
        self, gathered: context.Gathered, prepared: context.Prepared | None
    ) -> context.Prepared:
        """No connection is held while the question is embedded."""
        if prepared is not None:
            return prepared
        embedded = await embed_question(gathered.wanted)
        return await self._hand(lambda: self._composed(gathered, embedded))

    def _gather(self) -> tuple[context.Gathered, context.Prepared | None]:
        """On the task's thread. Where nothing is to be embedded, the request is composed at once."""
        gathered = context.gather(self._writer.turn)
        if gathered.wanted.embedding_models:
            return gathered, None
        return gathered, self._composed(gathered, Embedded())

    def _composed(self, gathered: context.Gathered, embedded: Embedded) -> context.Prepared:
        """On the task's thread."""
        writer = self._writer
        prepared = context.prepare(writer.turn, gathered, embedded)
        writer.model, writer.asked = prepared.row, prepared.request.messages
        writer.files = prepared.toolbox.files
        writer.embedded = embedded.usages
        writer.passages = prepared.citable
        return prepared

    async def _resume(self, prepared: context.Prepared) -> context.Prepared:
        """An earlier attempt stored steps: close the calls it left open first, or wait for more."""
        await self._greeted()
        unfinished = await self._hand(lambda: open_calls(self._writer.turn))
        if not unfinished:
            return prepared
        toolbox, step = prepared.toolbox, self._writer.turn.step
        theirs = tuple(call for call in unfinished if toolbox.is_handed_back(call.name))
        undecided = await self._finish_calls([c for c in unfinished if c not in theirs], toolbox)
        if undecided:
            await self._take(happenings.Waiting(step, undecided))
            return prepared
        if theirs:
            await self._take(happenings.HandedBack(step, theirs, "tool_calls"))
            return prepared
        return await self._prepare()

    async def _note(self, prepared: context.Prepared) -> None:
        """Write what cannot wait for the turn's first other write; while the model thinks."""
        self._writer.manifest = prepared.manifest
        if self._writer.must_begin:
            with self._tolerating():
                await self._hand(self._writer.begin)

    @contextmanager
    def _tolerating(self) -> Iterator[None]:
        """For writes that nobody waits for: a lost turn stops, an absent Postgres is logged."""
        try:
            yield
        except Fenced:
            self.stop(Stop.FENCED)
        except (OperationalError, InterfaceError) as exc:
            logger.warning("turn_not_noted", reason=type(exc).__name__)

    async def _greet(self) -> None:
        """The first events; told while the model is asked."""
        for name, fields in self._first_events.result():
            self._feed.emit(name, **fields)

    async def _know(self, knowledge: Knowledge | None) -> None:
        """What the library had to say is a message, too; stored while the model thinks."""
        if knowledge is None:
            return
        await self._greeted()
        seq = self._feed.seq
        await self._hand(lambda: self._writer.store_knowledge(knowledge, seq))
        self._announce()

    async def _greeted(self) -> None:
        """Nothing is told before the greeting; a turn that cannot greet tells nothing."""
        await _done(self._greeting)

    async def _introduced(self) -> None:
        """Nothing of an answer is told before its sources are."""
        await self._greeted()
        await _done(self._knowing)

    async def _finish_calls(
        self, calls: list[ToolCall], toolbox: TurnToolbox
    ) -> tuple[ToolCall, ...]:
        """Close calls that were cut by a crash or waited for a person; those nobody decided on.

        A call that may have been made is made again where that does no harm, else reported.
        """
        step = self._writer.turn.step
        sorted_ = sort_calls(calls, self._writer.turn.waiting_calls)
        repeated = [call for call in sorted_.begun if toolbox.is_safe_to_repeat(call.name)]
        for call in sorted_.declined:
            await self._take(_not_made(step, call, DECLINED))
            await toolbox.record_declined(call_id=call.id, name=call.name)
        for call in sorted_.begun:
            if call not in repeated:
                await self._take(_not_made(step, call, UNKNOWN_OUTCOME))
        if sorted_.approved:
            await self._hand(lambda: self._writer.take_approved(sorted_.approved))
        made = [*repeated, *sorted_.approved]
        async with aclosing(loop.run_calls(made, step=step, toolbox=toolbox)) as told:
            async for happening in told:
                await self._take(happening)
        return sorted_.undecided

    # -- Partial text ----------------------------------------------------------------------------

    async def _save_partial_text(self) -> None:
        """Every second, or 2 KB: text that was shown goes into the turn's row."""
        self._saved_chars = 0
        saved = (0, 0)
        while True:
            try:
                async with asyncio.timeout(PARTIAL_SECONDS):
                    await self._save_wanted.wait()
            except TimeoutError:
                pass
            self._save_wanted.clear()
            step = self._writer.turn.step + 1
            text = self._shown_text()
            if text and (step, len(text)) != saved:
                seq = self._feed.seq
                await self._save(step, text, seq)
                saved = (step, len(text))
            self._saved_chars = len(text)

    async def _save(self, step: int, text: str, seq: int) -> None:
        with self._tolerating():
            await self._hand(lambda: self._writer.save_partial(step, text, seq))

    def _shown_text(self) -> str:
        """Text of the step under way that viewers were sent, up to the feed's last event."""
        self._feed.flush_text()
        return self._feed.text_of(self._writer.turn.step + 1)

    # -- Ending ----------------------------------------------------------------------------------

    async def _stopped(self) -> TurnStatus | None:
        """The task was cancelled: by a person, by a shutdown, or because the turn is another's."""
        if self._reason is Stop.FENCED:
            return None
        await self._introduced()
        self._announce()
        if self._writer.turn.status != TurnStatus.RUNNING:
            return TurnStatus(self._writer.turn.status)
        if self._reason is Stop.CANCELLED:
            return await self._close(Ending(TurnStatus.CANCELLED))
        text, seq = self._shown_text(), self._feed.seq
        await self._hand(lambda: self._writer.release(text=text, seq=seq))
        return TurnStatus.QUEUED

    async def _fail(
        self,
        code: str,
        message: str = "",
        *,
        error: ProviderError | None = None,
    ) -> TurnStatus | None:
        """Failed when nothing of this step was shown, else incomplete with its text kept."""
        await self._introduced()
        self._announce()
        if self._writer.turn.status != TurnStatus.RUNNING:
            return TurnStatus(self._writer.turn.status)
        shown = bool(self._shown_text().strip())
        status = TurnStatus.INCOMPLETE if shown else TurnStatus.FAILED
        said = {
            "code": code,
            "message": message or CODES[code][1],
            "retryable": code in RETRYABLE,
        }
        return await self._close(Ending(status, error=said), error)

    async def _close(self, ending: Ending, error: ProviderError | None = None) -> TurnStatus | None:
        text, seq = self._shown_text(), self._feed.seq
        await self._hand(lambda: self._writer.end(ending, text=text, seq=seq, error=error))
        self._announce()
        return ending.status


def _not_made(step: int, call: ToolCall, why: str) -> happenings.CallFinished:
    return happenings.CallFinished(step, call, ToolResult(call_id=call.id, ok=False, content=why))


async def _done(task: "asyncio.Task[None] | None") -> None:
    """Wait for what was begun, if it was; raises what it raised."""
    if task is None:
        return
    if not task.done():
        await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        raise error


def _patience(deadline: float) -> Patience:
    return Patience(
        first_token_seconds=settings.AMBER_FIRST_TOKEN_SECONDS,
        idle_seconds=settings.AMBER_IDLE_SECONDS,
        retries=settings.AMBER_PROVIDER_RETRIES,
        deadline=deadline,
    )
