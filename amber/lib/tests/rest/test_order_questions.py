"""Short posts are worked on two at once, as they come; reads and long posts do not wait for them."""

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from amber.lib.rest import orderly
from amber.lib.rest.orderly import SHORT_BYTES, OrderlyView, leave_entry

SECONDS = 20


class Slow(OrderlyView):
    authentication_classes = ()
    permission_classes = ()
    begun: SimpleQueue[str]
    may_end: threading.Event

    def get(self, request: Any) -> Response:
        return Response("read")

    def post(self, request: Any, name: str) -> Response:
        if name.startswith("waiting"):
            leave_entry()
        self.begun.put(name)
        self.may_end.wait(SECONDS)
        return Response(name)


@pytest.fixture
def posting() -> Iterator[list[threading.Thread]]:
    """Threads that a test starts; at its end what holds them is let go."""
    Slow.begun, Slow.may_end = SimpleQueue(), threading.Event()
    threads: list[threading.Thread] = []
    yield threads
    Slow.may_end.set()
    for thread in threads:
        thread.join(SECONDS)


def post(name: str, body: str = "{}") -> None:
    request = APIRequestFactory().post("/", body, content_type="application/json")
    Slow.as_view()(request, name=name)


def begin(threads: list[threading.Thread], *args: str) -> None:
    threads.append(threading.Thread(target=post, args=args))
    threads[-1].start()


def test_a_third_short_post_waits_and_others_do_not(posting):
    begin(posting, "first")
    begin(posting, "second")
    assert {Slow.begun.get(timeout=SECONDS) for _ in range(2)} == {"first", "second"}
    begin(posting, "third")
    begin(posting, "long", '"' + "x" * SHORT_BYTES + '"')
    assert Slow.begun.get(timeout=SECONDS) == "long"
    assert Slow.as_view()(APIRequestFactory().get("/")).data == "read"
    assert Slow.begun.empty()
    Slow.may_end.set()
    assert Slow.begun.get(timeout=SECONDS) == "third"


def test_a_post_that_waits_for_others_leaves_its_place_once(posting):
    for name in ("waiting 1", "waiting 2", "waiting 3", "first", "second"):
        begin(posting, name)
        assert Slow.begun.get(timeout=SECONDS) == name
    begin(posting, "third")
    Slow.may_end.set()
    assert Slow.begun.get(timeout=SECONDS) == "third"
    for thread in posting:
        thread.join(SECONDS)
    assert orderly._ENTRY._free == 2, "a place that was left early is not given twice"
