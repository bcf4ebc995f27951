"""Two Redis servers, one the other's replica, and three Sentinels that decide which of them is the primary."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import redis

from amber.embedded import make_var
from tests.cluster.members import Member
from tests.cluster.postgres import wait
from tests.cluster.programs import fill, free_ports, program

SERVICE: Final = "amber"
"""By this name Sentinels know the pair."""


class RedisServers:
    def __init__(self, folder: Path, password: str) -> None:
        self._folder = folder
        self._password = password
        ports = free_ports(5)
        self._redis_ports, self._sentinel_ports = ports[:2], ports[2:]
        self.servers = [self._new_server(n, port) for n, port in enumerate(self._redis_ports, 1)]
        self.sentinels = [
            self._new_sentinel(n, port) for n, port in enumerate(self._sentinel_ports, 1)
        ]

    @property
    def members(self) -> list[Member]:
        return [*self.servers, *self.sentinels]

    @property
    def url(self) -> str:
        """Return the address by which Amber asks the Sentinels for the primary."""
        sentinels = ",".join(f"127.0.0.1:{port}" for port in self._sentinel_ports)
        return f"redis+sentinel://:{self._password}@{sentinels}/{SERVICE}/0?sentinel_password={self._password}"

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for sentinel in self.sentinels:
            sentinel.start()
        wait(self.is_whole, "a primary with a replica, and three Sentinels")

    @property
    def primary(self) -> Member:
        """Return the one that the Sentinels name. Raises RedisError."""
        return self.servers[self._redis_ports.index(self.primary_port())]

    def primary_name(self) -> str:
        """Return its name, or a question mark while no Sentinel answers."""
        with suppress(redis.RedisError):
            return self.primary.name
        return "?"

    def primary_port(self) -> int:
        """Raises RedisError if no Sentinel answers."""
        for port in self._sentinel_ports:
            with suppress(redis.ConnectionError, redis.TimeoutError), self._connect(port) as client:
                return int(client.sentinel_get_master_addr_by_name(SERVICE)[1])
        raise redis.ConnectionError("No Sentinel answers.")

    def connect(self) -> redis.Redis:
        """Return a client of the primary."""
        return self._connect(self.primary_port())

    def is_whole(self) -> bool:
        """Whether the primary has a replica that is in step, and every Sentinel knows the two others."""
        with suppress(redis.RedisError):
            with self.connect() as client:
                found = client.info("replication")
            has_replica = any(
                isinstance(about, dict) and about["state"] == "online"
                for name, about in found.items()
                if name.startswith("slave") and name[5:].isdigit()
            )
            return found["role"] == "master" and has_replica and self._are_acquainted()
        return False

    def _are_acquainted(self) -> bool:
        for port in self._sentinel_ports:
            with self._connect(port) as client:
                state = client.sentinel_master(SERVICE)
            if state["num-other-sentinels"] != 2 or state["num-slaves"] < 1:
                return False
        return True

    def _connect(self, port: int) -> redis.Redis:
        return redis.Redis(
            port=port, password=self._password, socket_timeout=2, decode_responses=True
        )

    def _answers(self, port: int) -> bool:
        with suppress(redis.RedisError), self._connect(port) as client:
            return bool(client.ping())
        return False

    def _new_server(self, number: int, port: int) -> Member:
        home = make_var(self._folder / f"redis-{number}")
        text = fill("redis.conf", port=port, folder=home, password=self._password)
        if number > 1:
            text += f"replicaof 127.0.0.1 {self._redis_ports[0]}\n"
        return self._new_member(f"redis-{number}", "redis-server", home, text, port)

    def _new_sentinel(self, number: int, port: int) -> Member:
        home = make_var(self._folder / f"sentinel-{number}")
        text = fill(
            "sentinel.conf",
            port=port,
            folder=home,
            password=self._password,
            redis_port=self._redis_ports[0],
        )
        return self._new_member(f"sentinel-{number}", "redis-sentinel", home, text, port)

    def _new_member(self, name: str, engine: str, home: Path, text: str, port: int) -> Member:
        settings = home / f"{engine}.conf"
        settings.touch(mode=0o600)
        settings.write_text(text)
        log = self._folder / f"{name}.log"
        return Member(name, [program(engine), str(settings)], log, partial(self._answers, port))
