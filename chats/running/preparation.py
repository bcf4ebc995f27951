"""Prepare a turn's requests: gather on the task's thread, embed on the loop, then compose.

The first one is gathered before the turn's coroutine starts, which would send exactly that back to
the thread at once: it saves two thread switches before the provider gets the question. The turn's
writer is told what was composed. Nothing is decided here: `chats.context.gathering` does that.
"""

from amber.lib.database.connections import release_connections
from amber.lib.workers.thread_bridge import RunInThread, outcome_of
from chats.context import gathering
from chats.context.lookups import QuestionEmbedding, embed_question
from chats.events.stream import Event
from chats.messages.turn_messages import first_events
from chats.running.writer import TurnWriter


class Preparation:
    """Reads the first events and gathers the first request, on the task's thread, when it is
    made."""

    def __init__(self, writer: TurnWriter) -> None:
        self._writer = writer
        self._first_events = outcome_of(lambda: first_events(writer.turn))
        self._first = outcome_of(self._gather)
        release_connections()

    def first_events(self) -> list[Event]:
        """Return the turn's first events. Raises what reading them raised."""
        return self._first_events.result()

    async def prepare_first(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Return the first request.

        Raises what `gathering.gather` and `gathering.prepare` raise.
        """
        return await self._embed_question(run_in_thread, *self._first.result())

    async def prepare_again(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Return a new request, over what has been stored since."""
        return await self._embed_question(run_in_thread, *await run_in_thread(self._gather))

    async def _embed_question(
        self,
        run_in_thread: RunInThread,
        gathered: gathering.GatheredContext,
        prepared: gathering.PreparedRequest | None,
    ) -> gathering.PreparedRequest:
        """Embed the question, holding no connection meanwhile, and compose the request."""
        if prepared is not None:
            return prepared
        embedded = await embed_question(gathered.wanted)
        return await run_in_thread(lambda: self._compose(gathered, embedded))

    def _gather(self) -> tuple[gathering.GatheredContext, gathering.PreparedRequest | None]:
        """Gather the context; if nothing is to be embedded, compose the request at once, too."""
        gathered = gathering.gather(self._writer.turn)
        if gathered.wanted.embedding_models:
            return gathered, None
        return gathered, self._compose(gathered, QuestionEmbedding())

    def _compose(
        self, gathered: gathering.GatheredContext, embedded: QuestionEmbedding
    ) -> gathering.PreparedRequest:
        prepared = gathering.prepare(self._writer.turn, gathered, embedded)
        self._writer.expect_answer(prepared, embedded.usages)
        return prepared
