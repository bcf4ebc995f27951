"""Choose whether Postgres keeps a statement's plan (`amber.lib.postgres.base` prepares them)."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_plans_each: ContextVar[bool] = ContextVar("plans_each", default=False)


@contextmanager
def with_own_plans() -> Iterator[None]:
    """Let Postgres plan each statement for its own values inside of the block.

    For searches: which way is the best depends on what is asked, and on settings of the transaction.
    """
    token = _plans_each.set(True)
    try:
        yield
    finally:
        _plans_each.reset(token)


def plans_each() -> bool:
    """Whether statements are planned anew each time here."""
    return _plans_each.get()
