"""Prepare a turn's requests: gather on the task's thread, embed on the loop meanwhile, then compose.

The first one is gathered before the turn's coroutine starts, which would send exactly that back to
the thread at once: it saves two thread switches before the provider gets the question. The turn's
writer is told what was composed. Nothing is decided here: `chats.context.gathering` does that.
"""

from django.db import transaction

from amber.lib.database.connections import release_connections
from amber.lib.workers.entry_gate import EntryPlace
from amber.lib.workers.thread_bridge import RunInThread, outcome_of
from chats.context import gathering
from chats.context.question_embedding import PendingEmbedding, QuestionEmbedding
from chats.events.stream import Event
from chats.messages.turn_messages import first_events
from chats.running.writer import TurnWriter
from providers import reranker

_Begun = tuple[gathering.GatheredContext, gathering.RequestLayout] | gathering.PreparedRequest
"""What was gathered for a request that something must be waited for, else the request."""


class Preparation:
    """Reads the first events and gathers the first request when it is made, on the task's thread."""

    def __init__(self, writer: TurnWriter, place: EntryPlace) -> None:
        self._writer = writer
        self._place = place
        self.embedding = PendingEmbedding()
        with transaction.atomic():  # so that the tenant is said once for all that is read
            self._first_events = outcome_of(lambda: first_events(writer.turn))
            first = outcome_of(self._read)
        self._first = outcome_of(lambda: self._go_on(first.result()))
        release_connections()

    def first_events(self) -> list[Event]:
        """Return the turn's first events. Raises what reading them raised."""
        return self._first_events.result()

    async def prepare_first(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Return the first request.

        Raises what `gathering.gather`, `gathering.lay_out` and `gathering.prepare` raise.
        """
        return await self._finish(run_in_thread, self._first.result())

    async def prepare_again(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Return a new request, over what has been stored since, and with a vector that came late."""
        return await self._finish(
            run_in_thread, await run_in_thread(lambda: self._go_on(self._read()))
        )

    async def _finish(self, run_in_thread: RunInThread, begun: _Begun) -> gathering.PreparedRequest:
        """Wait for the question's vector, holding no connection, and compose the request."""
        if isinstance(begun, gathering.PreparedRequest):
            return begun
        context, layout = begun
        embedded = await self.embedding.wait(context.wanted)
        return await run_in_thread(lambda: self._compose(context, layout, embedded))

    def _read(self) -> _Begun:
        """Gather, in a transaction maybe, so compose only what needs no vector and cannot take long."""
        context = gathering.gather(self._writer.turn, self.embedding)
        layout = gathering.lay_out(self._writer.turn, context)
        if _may_take_long(context) or context.wanted.embedding_models:
            return context, layout
        return self._compose(context, layout, QuestionEmbedding())

    def _go_on(self, begun: _Begun) -> _Begun:
        """Compose what needs no vector. The turn leaves the gate for what may take long, so that no other
        waits behind it."""
        if isinstance(begun, gathering.PreparedRequest):
            return begun
        context, layout = begun
        if _may_take_long(context):
            self._place.leave()
        if context.wanted.embedding_models:
            return begun
        return self._compose(context, layout, QuestionEmbedding())

    def _compose(
        self,
        context: gathering.GatheredContext,
        layout: gathering.RequestLayout,
        embedded: QuestionEmbedding,
    ) -> gathering.PreparedRequest:
        prepared = gathering.prepare(self._writer.turn, context, layout, embedded)
        self._writer.expect_answer(prepared, embedded.usages)
        return prepared


def _may_take_long(context: gathering.GatheredContext) -> bool:
    """Return whether files must be read, the library searched, or a reranker waited for."""
    is_slow = bool(context.tail.unread_files) or context.library is not None
    return is_slow or reranker.may_serve_turns()
