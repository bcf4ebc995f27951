"""Make a history, or one text, fit a number of tokens by leaving parts out.

Pure: how tokens are counted is the caller's argument. It rewrites no message; what to do with
what was left out (recall, search) is decided elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.messages import ProviderMessage, is_asked

_SHRINK = 0.95
"""The share of the proportional length to try: tokens are not spread evenly over a text."""

_MOST_CHARS_A_TOKEN = 32
"""A text with more on average is hardly one (o200k_base: English 4.5, its longest words 20), and
not counted as a whole: 10 MB would cost a second."""


class BudgetError(Exception):
    """The messages that must stay are too long already."""

    def __init__(self, *, needed_tokens: int, limit_tokens: int) -> None:
        super().__init__(f"At least {needed_tokens} tokens are needed, {limit_tokens} are allowed.")
        self.needed_tokens = needed_tokens
        self.limit_tokens = limit_tokens


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """The messages that stay, their tokens, and those dropped; both oldest first."""

    messages: list[ProviderMessage]
    dropped: list[ProviderMessage]
    tokens: int


def fit(
    messages: Sequence[ProviderMessage],
    *,
    limit_tokens: int,
    count: Callable[[ProviderMessage], int],
) -> FittedMessages:
    """Drop oldest exchanges until the rest fits.

    `messages` are normalised, oldest first. `limit_tokens` is for the messages alone: the caller
    has taken the reply's reserve and the tools off. An exchange is what a user said, the system
    messages right before it, and all up to the next one, what tools made included. The last
    exchange is dropped only in part and last of all: answers and calls with their results, oldest
    first.

    Never splits a tool call from its results. Never drops the system messages at the start, nor
    the last user message with the system messages right before it, nor system messages at the
    end. Counts each message at most once, and none older than the first that does not fit.
    Raises BudgetError if what must stay alone exceeds the limit.
    """
    units, kept = _divide(messages)
    tokens = sum(count(messages[n]) for n in kept)
    if tokens > limit_tokens:
        raise BudgetError(needed_tokens=tokens, limit_tokens=limit_tokens)
    for unit in reversed(units):
        more = sum(count(messages[n]) for n in unit)
        if tokens + more > limit_tokens:
            break
        tokens += more
        kept.update(unit)
    return FittedMessages(
        messages=[message for n, message in enumerate(messages) if n in kept],
        dropped=[message for n, message in enumerate(messages) if n not in kept],
        tokens=tokens,
    )


def shares(wishes: Sequence[int], *, limit_tokens: int) -> list[int]:
    """Return what each may use: its wish if all fit together, else in proportion to the wishes."""
    wished = sum(wishes)
    if wished <= limit_tokens:
        return list(wishes)
    return [wish * max(limit_tokens, 0) // wished for wish in wishes]


def _divide(messages: Sequence[ProviderMessage]) -> tuple[list[range], set[int]]:
    """Return the positions that may go, in whole units, oldest first; and those that must stay."""
    roles = [message["role"] for message in messages]
    size = len(roles)
    head = next((n for n in range(size) if roles[n] != "system"), size)
    tail = next((n for n in range(size, head, -1) if roles[n - 1] != "system"), head)
    asked = [n for n in range(head, tail) if is_asked(messages[n])]
    last = asked[-1] if asked else head - 1
    exchanges = [_with_systems_before(roles, n, head) for n in asked]
    rounds = [
        _with_systems_before(roles, n, last + 1)
        for n in range(last + 1, tail)
        if roles[n] == "assistant"
    ]
    units = [range(*ends) for ends in pairwise([head, *exchanges])]
    units += [range(*ends) for ends in pairwise([last + 1, *rounds, tail])]
    must = {*range(head), *range(tail, size)}
    if asked:
        must.update(range(exchanges[-1], last + 1))
    return [unit for unit in units if unit], must


def _with_systems_before(roles: Sequence[str], position: int, start: int) -> int:
    """Return where the system messages right before `position` begin, not before `start`."""
    while position > start and roles[position - 1] == "system":
        position -= 1
    return position


def cut_text(text: str, *, limit_tokens: int, count: Callable[[str], int]) -> str:
    """Return the text, or its head and its tail with a note of how much is left out between them.

    Returns nothing where not even the note fits. Costs a few counts of about `limit_tokens`, the
    first of up to 32 times as many characters, however long the text.
    """
    cut, kept_chars = text, len(text)
    most_chars = max(limit_tokens, 0) * _MOST_CHARS_A_TOKEN
    if kept_chars > most_chars:
        cut, kept_chars = _head_and_tail(text, most_chars), most_chars
    while (tokens := count(cut)) > limit_tokens:
        if kept_chars == 0:
            return ""
        share = max(limit_tokens, 0) / tokens
        # At least one less, or this might never end.
        kept_chars = min(kept_chars - 1, int(kept_chars * share * _SHRINK))
        cut = _head_and_tail(text, kept_chars)
    return cut


def _head_and_tail(text: str, kept_chars: int) -> str:
    head = text[: kept_chars - kept_chars // 2]
    tail = text[len(text) - kept_chars // 2 :]
    return f"{head}\n[… {len(text) - kept_chars} characters left out …]\n{tail}"
