"""A primary of Redis, its replica and three sentinels, each a real process of the tests'.

Passwords hold signs that addresses must quote; the sentinels have one of their own.
"""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis

from amber.embedded import prepare_redis
from amber.processes import spawn, stop, wait_until
from tests.fixtures.ports import free_port

SERVICE = "amber"
PASSWORD = "of/redis:@1"
SENTINEL_PASSWORD = "of@the:sentinels/"
NOTICE_MS = 1_500
"""How long a primary is silent before a sentinel takes it for dead."""
PATIENCE_SECONDS = 60.0


@dataclass
class Sentinels:
    """The servers by port; the first two are Redis, the others the sentinels."""

    home: Path
    running: "dict[int, subprocess.Popen[bytes]]" = field(default_factory=dict)
    redis_ports: list[int] = field(default_factory=list)
    sentinel_ports: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        places = ",".join(f"127.0.0.1:{port}" for port in self.sentinel_ports)
        return (
            f"redis+sentinel://:{quote(PASSWORD, '')}@{places}/{SERVICE}/2"
            f"?sentinel_password={quote(SENTINEL_PASSWORD, '')}"
        )

    def start(self) -> None:
        self.redis_ports = [free_port(), free_port()]
        self.sentinel_ports = [free_port() for _ in range(3)]
        first, second = self.redis_ports
        self.start_redis(first)
        self.start_redis(second, f"replicaof 127.0.0.1 {first}")
        self.until(lambda: self._info(second)["master_link_status"] == "up")
        for port in self.sentinel_ports:
            self._start_sentinel(port, first)
        self.until(lambda: all(map(self._sees_all, self.sentinel_ports)))

    def start_redis(self, port: int, *lines: str) -> None:
        lines = (*lines, f"requirepass {PASSWORD}", f"masterauth {PASSWORD}", 'save ""')
        self._start(port, [*lines, "appendonly no", "repl-diskless-sync-delay 0"])
        self.until(lambda: bool(self.at(port).ping()))

    def _start_sentinel(self, port: int, primary: int) -> None:
        lines = [
            f'requirepass "{SENTINEL_PASSWORD}"',
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary} 2",
            f"sentinel auth-pass {SERVICE} {PASSWORD}",
            f"sentinel down-after-milliseconds {SERVICE} {NOTICE_MS}",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        self._start(port, [*lines, f'sentinel sentinel-pass "{SENTINEL_PASSWORD}"'], "--sentinel")

    def _start(self, port: int, lines: list[str], *arguments: str) -> None:
        folder = self.home / str(port)
        folder.mkdir(exist_ok=True)
        common = [f"port {port}", "bind 127.0.0.1", f'dir "{folder}"']
        (folder / "redis.conf").write_text("\n".join([*common, *lines]) + "\n")
        self._spawn(port, *arguments)

    def _spawn(self, port: int, *arguments: str) -> None:
        folder, program = self.home / str(port), prepare_redis(self.home).argv[0]
        argv = [program, str(folder / "redis.conf"), *arguments]
        with (folder / "log").open("ab") as output:
            self.running[port] = spawn(argv, env={}, output=output)

    def stop(self) -> None:
        for process in self.running.values():
            stop(process, how=signal.SIGKILL, grace_seconds=10)

    def kill_primary(self) -> int:
        """Kill it as the kernel does; return its port once the sentinels have another one."""
        port = self.primary_port
        self.running[port].kill()
        self.running[port].wait()
        self.until(lambda: self.primary_port != port and self._is(self.primary_port, "master"))
        return port

    @contextlib.contextmanager
    def without_first_sentinel(self) -> Iterator[None]:
        """Let the one that addresses name first be dead inside of the block."""
        port = self.sentinel_ports[0]
        self.running[port].kill()
        self.running[port].wait()
        yield
        self._spawn(port, "--sentinel")  # it has written down what it knew
        self.until(lambda: self._sees_all(port))

    def come_back(self, port: int) -> None:
        """Start one that was killed: the sentinels make it a replica."""
        self.start_redis(port)
        self.until(lambda: self._is(port, "slave"))
        self.until(lambda: self._info(port)["master_link_status"] == "up")

    @property
    def primary_port(self) -> int:
        """What the last sentinel takes for the primary."""
        sentinel = self._sentinel(self.sentinel_ports[-1])
        place: Any = sentinel.sentinel_get_master_addr_by_name(SERVICE)
        return int(place[1])

    def at(self, port: int) -> "redis.Redis":
        return redis.Redis(port=port, password=PASSWORD, db=2)

    def _sentinel(self, port: int) -> "redis.Redis":
        return redis.Redis(port=port, password=SENTINEL_PASSWORD)

    def _sees_all(self, port: int) -> bool:
        state: Any = self._sentinel(port).sentinel_master(SERVICE)
        return bool(state["num-other-sentinels"] == 2 and state["num-slaves"] == 1)

    def _info(self, port: int) -> dict[str, str]:
        found: dict[str, str] = self.at(port).info("replication")
        return found

    def _is(self, port: int, role: str) -> bool:
        return self._info(port)["role"] == role

    def until(self, check: Callable[[], bool]) -> None:
        """Wait until the check holds; a server that does not answer yet is no fault."""

        def holds() -> bool:
            with contextlib.suppress(redis.RedisError):
                return check()
            return False

        assert wait_until(holds, timeout_seconds=PATIENCE_SECONDS), self._said_last()

    def _said_last(self) -> str:
        return "\n".join(
            (self.home / str(port) / "log").read_text()[-1_500:] for port in self.sentinel_ports
        )


@contextlib.contextmanager
def watched(home: Path) -> Iterator[Sentinels]:
    """All five, gone with the block."""
    servers = Sentinels(home)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
