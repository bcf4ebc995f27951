"""A real server on 127.0.0.1 (and ::1 where there is one) that counts who connects."""

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connections

Answer = Callable[[socket.socket, "Request"], None]


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class LocalServer:
    """`routes` by path without query; `accepted` counts TCP connections, `requests` what came."""

    routes: dict[str, Answer] = field(default_factory=dict)
    context: ssl.SSLContext | None = None
    accepted: int = 0
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> "LocalServer":
        self._listeners = [socket.create_server(("127.0.0.1", 0))]
        self.port: int = self._listeners[0].getsockname()[1]
        try:
            self._listeners.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        except OSError:
            pass
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(5)
            try:
                if self.context is not None:
                    connection = self.context.wrap_socket(connection, server_side=True)
                request = _read(connection)
                self.requests.append(request)
                path = request.target.partition("?")[0]
                self.routes.get(path, say(b"hello"))(connection, request)
                connection.close()
            except OSError:
                connection.close()
            finally:
                connections.close_all()  # an answer may have asked the database; its thread ends


def say(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    def answer(connection: socket.socket, _: Request) -> None:
        lines = {"Content-Length": str(len(body)), "Connection": "close"} | (headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    return answer


def send_to(location: str, status: int = 302) -> Answer:
    return say(b"", status=status, headers={"Location": location})


def raw(*parts: bytes) -> Answer:
    def answer(connection: socket.socket, _: Request) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


def _read(connection: socket.socket) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65_536)
        if not received:
            raise ConnectionError
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)
