"""Prepares a turn's requests: gathered on the task's thread, embedded on the loop, then composed.

The first one is gathered before the turn's coroutine is started, which would hand exactly that back
at once: two changes of thread less before the provider hears of the question. What is composed is
told to the turn's writer. Decides nothing: `chats.context.gathering` does.
"""

from amber.lib.database.connections import release_connections
from amber.lib.workers.thread_bridge import RunInThread, outcome_of
from chats.context import gathering
from chats.context.lookups import QuestionEmbedding, embed_question
from chats.events.stream import Event
from chats.messages.turn_messages import first_events
from chats.running.writer import TurnWriter


class Preparation:
    """Made on the task's thread, before the coroutine: there the first events and request are read."""

    def __init__(self, writer: TurnWriter) -> None:
        self._writer = writer
        self._first_events = outcome_of(lambda: first_events(writer.turn))
        self._first = outcome_of(self._gather)
        release_connections()

    def first_events(self) -> list[Event]:
        """Raises what reading them raised."""
        return self._first_events.result()

    async def first(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Raises what `context.gather` and `context.prepare` raise."""
        return await self._embed_question(run_in_thread, *self._first.result())

    async def again(self, run_in_thread: RunInThread) -> gathering.PreparedRequest:
        """Over what has been stored since."""
        return await self._embed_question(run_in_thread, *await run_in_thread(self._gather))

    async def _embed_question(
        self,
        run_in_thread: RunInThread,
        gathered: gathering.GatheredContext,
        prepared: gathering.PreparedRequest | None,
    ) -> gathering.PreparedRequest:
        """No connection is held while the question is embedded."""
        if prepared is not None:
            return prepared
        embedded = await embed_question(gathered.wanted)
        return await run_in_thread(lambda: self._compose(gathered, embedded))

    def _gather(self) -> tuple[gathering.GatheredContext, gathering.PreparedRequest | None]:
        """Where nothing is to be embedded, the request is composed at once."""
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
