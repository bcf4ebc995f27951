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

_Gathered = tuple[gathering.GatheredContext, gathering.RequestLayout]


class Preparation:
    """Reads the first events and gathers the first request when it is made, on the task's thread."""

    def __init__(self, writer: TurnWriter, place: EntryPlace) -> None:
        self._writer = writer
        self._place = place
        self.embedding = PendingEmbedding()
        with transaction.atomic():  # so that the tenant is said once for all that is read
            self._first_events = outcome_of(lambda: first_events(writer.turn))
            first = outcome_of(lambda: self._with_request(self._read(), may_wait=False))
        self._first = outcome_of(lambda: self._with_request(first.result()))
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
        return await self._finish(run_in_thread, await run_in_thread(self._gather))

    async def _finish(
        self,
        run_in_thread: RunInThread,
        gathered: _Gathered | gathering.PreparedRequest,
    ) -> gathering.PreparedRequest:
        """Wait for the question's vector, holding no connection, and compose the request."""
        if isinstance(gathered, gathering.PreparedRequest):
            return gathered
        context, layout = gathered
        embedded = await self.embedding.wait(context.wanted)
        return await run_in_thread(lambda: self._compose(context, layout, embedded))

    def _gather(self) -> _Gathered | gathering.PreparedRequest:
        return self._with_request(self._read())

    def _read(self) -> _Gathered:
        context = gathering.gather(self._writer.turn, self.embedding)
        return context, gathering.lay_out(self._writer.turn, context)

    def _with_request(
        self, gathered: _Gathered | gathering.PreparedRequest, *, may_wait: bool = True
    ) -> _Gathered | gathering.PreparedRequest:
        """Return the composed request, or what was gathered if something must be waited for first.

        Unread files, the library's search and the reranker may take long. Unless the turn `may_wait` they are
        left for later; if it may, it leaves the gate for them, so that no turn waits behind it. A question that
        must be embedded is left to `_finish`.
        """
        if isinstance(gathered, gathering.PreparedRequest):
            return gathered
        context, layout = gathered
        waits = bool(context.tail.unread_files) or context.library is not None
        if (waits or reranker.may_serve_turns()) and not may_wait:
            return gathered
        if waits:
            self._place.leave()
        if context.wanted.embedding_models:
            return gathered
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
