"""Few at once, in the order of coming; and a place may be left early."""

import threading
import time

import pytest

from amber.lib.workers.entry_gate import EntryGate

SECONDS = 10


def test_no_more_at_once_than_there_are_places():
    gate = EntryGate(places=2)
    inside, most = [], []

    def pass_through():
        with gate.place():
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.002)
            inside.pop()

    threads = [threading.Thread(target=pass_through) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(most) == 20
    assert max(most) <= 2


def test_who_comes_first_goes_first():
    gate = EntryGate(places=1)
    order: list[int] = []

    def pass_through(number):
        with gate.place():
            order.append(number)

    with gate.place():
        threads = []
        for number in range(8):
            thread = threading.Thread(target=pass_through, args=[number])
            thread.start()
            threads.append(thread)
            deadline = time.monotonic() + SECONDS
            while len(gate._waiting) <= number and time.monotonic() < deadline:
                time.sleep(0.001)
    for thread in threads:
        thread.join(SECONDS)
    assert order == list(range(8))


def test_a_place_that_was_left_early_is_given_once():
    gate = EntryGate(places=1)
    with gate.place() as first:
        first.leave()
        with gate.place():
            first.leave()
            assert gate._free == 0
    assert gate._free == 1


def test_a_failure_leaves_the_place():
    gate = EntryGate(places=1)
    with pytest.raises(ValueError, match="broke"), gate.place():
        raise ValueError("broke")
    with gate.place():
        pass
