"""The guarded client as the tests use it: local names, short times, one open door."""

import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from amber.lib.egress import EgressPolicy, FetchError, FetchLimits, Response, fetch_sync
from amber.lib.tests.egress.hostile_urls import NAMES
from amber.lib.tests.local_server import LocalServer

QUICK = FetchLimits(connect_seconds=2, total_seconds=5)
HERE = {"door.test": ["127.0.0.1"], "other.test": ["127.0.0.1"], "tls.test": ["127.0.0.1"]}


class Names:
    """A resolver: answers from the tables, and remembers who asked."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self.names = names
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.names[host]


def guarded(*ports: int, allow: Sequence[str] = ()) -> EgressPolicy:
    """As an installation's, but with more web ports and the tests' resolver."""
    policy = EgressPolicy.allowing(allow, resolve=Names(NAMES | HERE))
    return replace(policy, ports=policy.ports | set(ports))


def get(url: str, policy: EgressPolicy, limits: FetchLimits = QUICK, **more: Any) -> Response:
    return fetch_sync("GET", url, policy=policy, limits=limits, **more)


def reason_of(url: str, policy: EgressPolicy, limits: FetchLimits = QUICK) -> str:
    with pytest.raises(FetchError) as caught:
        get(url, policy, limits)
    return caught.value.reason


def door(server: LocalServer, path: str = "/") -> str:
    return f"http://door.test:{server.port}{path}"


def through_door(server: LocalServer, *more: LocalServer) -> EgressPolicy:
    """Only the door is open; the others' ports are, too, so that the address decides."""
    ports = [each.port for each in more]
    return guarded(*ports, allow=[f"door.test:{server.port}"])
