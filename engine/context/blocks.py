"""Cut a long conversation: which messages make a block, its text, and where the tail begins.

Pure. A block is a run of whole exchanges; where it ends depends only on the messages before it, so
branches that share a beginning share its blocks. The last exchange is never in a block: it may be
asked again. Refuses to decide what is recalled: that is `engine.context.recall`'s.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.messages import ASKING_ROLES, ROLES, MessageRole, facts_of

_RESULT_CHARS = 600
"""The part of a tool's result that a block keeps; `search_conversation` finds the rest."""


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """One message of a path. `label` names a file, a tool, or who said it. `tokens` counts
    `content`."""

    id: str
    role: str
    content: str
    created_at: datetime
    tokens: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class SealedBlock:
    """The place of a block among the conversation's tokens, counted from its start."""

    first_position: int
    last_position: int
    tokens_before: int
    tokens: int

    @property
    def tokens_through(self) -> int:
        return self.tokens_before + self.tokens


def exchanges(messages: Iterable[SpokenMessage]) -> Iterator[list[SpokenMessage]]:
    """Yield exchanges, oldest first: a question, what belongs to it right before it, all that
    follows.

    What precedes the first question belongs to the first exchange.
    """
    current: list[SpokenMessage] = []
    has_question = False
    for message in messages:
        current.append(message)
        if message.role not in ASKING_ROLES:
            continue
        start = _question_begins(current)
        if has_question and start:
            yield current[:start]
            current = current[start:]
        has_question = True
    if current:
        yield current


def runs(messages: Iterable[SpokenMessage], *, block_tokens: int) -> Iterator[list[SpokenMessage]]:
    """Yield the runs to seal, in order: whole exchanges until `block_tokens` are reached.

    What does not fill a block, and the last exchange in any case, stays open. Linear; holds one
    run and two exchanges at a time.
    """
    run: list[SpokenMessage] = []
    tokens = 0
    waiting: list[SpokenMessage] | None = None
    for exchange in exchanges(messages):
        if waiting is not None:
            run += waiting
            tokens += sum(message.tokens for message in waiting)
            if tokens >= block_tokens:
                yield run
                run, tokens = [], 0
        waiting = exchange


def render(run: Sequence[SpokenMessage]) -> str:
    """Return a block's text: one line per message; tool results are cut, calls left out."""
    return "\n".join(line for line in map(line_of, run) if line)


def line_of(message: SpokenMessage) -> str:
    """Return a message as a block has it; empty if it says nothing."""
    text = message.content.strip()
    if message.role == MessageRole.FILE:
        return f"File: {message.label}" + (f" ({text})" if text else "")
    if message.role == MessageRole.TOOL:
        return f"{message.label or 'Tool'} returned: {_shorten(text)}"
    return said_line(message.role, message.content)


def said_line(role: str, content: str) -> str:
    """Return a message as a block's line; empty if it has no text, or a role in which nobody speaks."""
    label, text = _SPOKEN_BY.get(role), content.strip()
    return f"{label}: {text}" if label and text else ""


_SPOKEN_BY: Final = {
    role: facts.speaker.title()
    for role, facts in ROLES.items()
    if facts.speaker and role != MessageRole.TOOL_CALL
}
"""Who speaks in a role, as a block has it."""


def block_hash(previous_hash: str, run: Sequence[SpokenMessage]) -> str:
    """Return the SHA-256 over the previous block's and this one's contents, in hexadecimal."""
    digest = hashlib.sha256(previous_hash.encode())
    for message in run:
        digest.update(f"\n{message.id} {message.role} ".encode())
        digest.update(hashlib.sha256(message.content.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()


def tail_start(blocks: Sequence[SealedBlock], *, limit_tokens: int) -> int:
    """Return the position where the conversation's tail begins, always a block's first.

    `blocks` are the newest ones of the path, oldest first, at least `limit_tokens` of them if there
    are so many. The tail holds between half of the limit and all of it (and what is not sealed
    yet). It is a step function of the sealed tokens: it stays where it is while half of the limit
    is added, so that the beginning of each request stays the same and providers can cache it.
    """
    if not blocks:
        return 0
    step = max(limit_tokens // 2, 1)
    before = max(blocks[-1].tokens_through - step, 0) // step * step
    for block in blocks:
        if block.tokens_before >= before:
            # Not the first block's position: system messages that open the chat are before it.
            return block.first_position if block.tokens_before else 0
    return blocks[-1].first_position


def _question_begins(messages: Sequence[SpokenMessage]) -> int:
    start = len(messages) - 1
    while start > 0 and facts_of(messages[start - 1].role).joins_question:
        start -= 1
    return start


def _shorten(text: str) -> str:
    if len(text) <= _RESULT_CHARS:
        return text
    return f"{text[:_RESULT_CHARS]} [… {len(text) - _RESULT_CHARS} characters left out …]"
