"""Renew leases in a thread that does nothing else, over a database connection of its own.

Whatever else a worker does meanwhile (a sweep that takes minutes, a periodic job, a pool whose
connections are all in use), its leases are renewed. Refuses to know whose leases they are: the
caller says how to renew them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

from amber.lib.database.connections import use_own_connection
from amber.lib.workers.guard import guard


def start_renewing(renew: Callable[[], None], is_over: threading.Event) -> threading.Thread:
    """Call `renew` until `is_over` is set.

    It connects at once, so as not to fail later when the server has no connection left.
    """
    return _start(renew, is_over, connect_first=True)


@contextmanager
def renewing(renew: Callable[[], None]) -> Iterator[None]:
    """Call `renew` for as long as the block lasts. A short block costs no connection."""
    is_over = threading.Event()
    thread = _start(renew, is_over, connect_first=False)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _start(
    renew: Callable[[], None], is_over: threading.Event, *, connect_first: bool
) -> threading.Thread:
    arguments = (renew, is_over, connect_first)
    thread = threading.Thread(target=_renew_until, args=arguments, name="leases", daemon=True)
    thread.start()
    return thread


def _renew_until(renew: Callable[[], None], is_over: threading.Event, connect_first: bool) -> None:
    """Renew until it is over. The connection is kept while all goes well, and replaced after a
    fault."""
    use_own_connection()
    try:
        if connect_first:
            with guard("renew_leases"):
                connections["default"].ensure_connection()
        while not is_over.wait(_every_seconds()):
            is_renewed = False
            with guard("renew_leases"):
                renew()
                is_renewed = True
            if not is_renewed:
                with guard("renew_leases"):
                    connections.close_all()
    finally:
        connections.close_all()


def _every_seconds() -> float:
    """Return a pause so short that a lease outlives three failures."""
    return min(settings.AMBER_SWEEP_SECONDS, settings.AMBER_LEASE_SECONDS / 4)
