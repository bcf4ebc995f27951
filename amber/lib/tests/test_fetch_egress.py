"""The guarded client against real servers: what it refuses, it does not even connect to."""

import asyncio
import datetime
import socket
import ssl
import time
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from amber.lib import egress
from amber.lib.addresses import is_allowable, is_public, plain_address
from amber.lib.egress import (
    EgressPolicy,
    FetchError,
    FetchLimits,
    Response,
    UnsafeAddress,
    fetch,
    fetch_sync,
)
from amber.lib.egress_transport import GuardedBackend
from amber.lib.tests.hostile_urls import HOSTILE_URLS, NAMES
from amber.lib.tests.local_server import LocalServer, Request, raw, say, send_to

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


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running


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


# -- Addresses ---------------------------------------------------------------------------------


def test_there_are_enough_hostile_addresses() -> None:
    assert len(set(HOSTILE_URLS)) >= 120


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
def test_a_hostile_address_is_refused_without_a_connection(url: str, server: LocalServer) -> None:
    with pytest.raises(UnsafeAddress):
        get(url.format(port=server.port), guarded(server.port))
    assert server.accepted == 0


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
def test_a_redirect_to_a_hostile_address_is_not_followed(
    url: str, server: LocalServer, other: LocalServer
) -> None:
    location = url.format(port=other.port)
    if any(sign in location for sign in "\r\n\0") or not location:
        pytest.skip("no header can say this")
    server.routes["/"] = lambda connection, _: connection.sendall(
        b"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + location.encode() + b"\r\n\r\n"
    )
    try:
        answer = get(door(server), through_door(server, other))
    except (UnsafeAddress, FetchError):
        pass
    else:
        # Without a scheme it is a path of the door itself.
        assert answer.url.startswith(f"http://door.test:{server.port}/")
    assert other.accepted == 0


def test_the_refusal_reveals_nothing(server: LocalServer) -> None:
    said = set()
    for host in ("127.0.0.1", "loopback.test", "private.test", "unknown.test", "no-address.test"):
        for port in (server.port, 80):
            with pytest.raises(UnsafeAddress) as caught:
                get(f"http://{host}:{port}/", guarded(server.port))
            said.add((caught.value.code, caught.value.message, str(caught.value.fields)))
    assert len(said) == 1


def test_ports_other_than_the_webs_are_refused_before_the_name_is_looked_up() -> None:
    policy = guarded()
    for port in (22, 25, 6379, 8080):
        with pytest.raises(UnsafeAddress):
            get(f"http://loopback.test:{port}/", policy)
    assert policy.resolve.asked == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_public_addresses_are_public(text: str) -> None:
    address = plain_address(text)
    assert address is not None
    assert is_public(address)
    assert is_allowable(address)


@pytest.mark.parametrize(
    ("text", "allowable"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("::1", True),
        ("fd00::1", True),
        ("169.254.169.254", False),
        ("100.100.100.200", False),
        ("0.0.0.0", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("64:ff9b::a9fe:a9fe", False),
    ],
)
def test_an_allowed_name_may_be_private_but_no_metadata(text: str, allowable: bool) -> None:
    address = plain_address(text)
    assert address is not None
    assert not is_public(address)
    assert is_allowable(address) is allowable


# -- Where the connection goes -------------------------------------------------------------------


class Recorder(httpcore2.AsyncNetworkBackend):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> Any:
        self.calls.append((host, port))
        raise httpcore2.ConnectError


def connected(*answers: list[str]) -> tuple[list[tuple[str, int]], int]:
    """(sockets that would have been opened, look-ups) when answers follow each other."""
    pending = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return pending.pop(0)

    recorder = Recorder()
    backend = GuardedBackend(EgressPolicy(resolve=resolve), recorder)
    with pytest.raises((httpcore2.ConnectError, UnsafeAddress)):
        asyncio.run(backend.connect_tcp("rebind.test", 80, timeout=1))
    return recorder.calls, len(answers) - len(pending)


def test_a_name_is_looked_up_once_and_the_judged_address_is_called() -> None:
    assert connected(["93.184.215.14"], ["127.0.0.1"]) == ([("93.184.215.14", 80)], 1)


def test_a_name_that_turns_public_later_is_refused() -> None:
    assert connected(["127.0.0.1"], ["93.184.215.14"]) == ([], 1)


def test_one_private_address_spoils_the_public_ones() -> None:
    assert connected(["93.184.215.14", "10.0.0.1"]) == ([], 1)


def test_every_address_is_tried() -> None:
    calls, _ = connected(["93.184.215.14", "8.8.8.8", "93.184.215.14", "2606:4700::1111"])
    assert calls == [("93.184.215.14", 80), ("8.8.8.8", 80), ("2606:4700::1111", 80)]


def test_the_second_lookup_of_a_fetch_never_happens(server: LocalServer) -> None:
    names = Names({"door.test": ["127.0.0.1"]})
    policy = EgressPolicy.allowing(["door.test"], resolve=names)
    assert get(door(server), policy).body == b"hello"
    assert names.asked == ["door.test"]
    assert server.requests[0].headers["host"] == f"door.test:{server.port}"


def test_a_name_server_that_is_silent_costs_the_connect_time() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    policy = EgressPolicy(resolve=resolve)
    assert reason_of("http://a.test/", policy, FetchLimits(connect_seconds=0.05)) == "timeout"


def test_proxies_of_the_environment_are_ignored(
    server: LocalServer, other: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{other.port}")
    assert get(door(server), through_door(server)).body == b"hello"
    assert other.accepted == 0


# -- What the operator allowed -------------------------------------------------------------------


def test_an_allowed_host_is_open_on_every_port(server: LocalServer, other: LocalServer) -> None:
    policy = guarded(allow=["door.test"])
    assert get(door(server), policy).body == b"hello"
    assert get(door(other), policy).body == b"hello"


def test_an_allowed_host_and_port_opens_that_port_only(
    server: LocalServer, other: LocalServer
) -> None:
    policy = guarded(other.port, allow=[f"DOOR.test:{server.port}"])
    assert get(door(server), policy).status == 200
    for url in (door(other), f"http://other.test:{server.port}/", "http://door.test/"):
        with pytest.raises(UnsafeAddress):
            get(url, policy)
    assert other.accepted == 0


def test_an_address_can_be_allowed(server: LocalServer) -> None:
    policy = guarded(allow=[f"127.0.0.1:{server.port}"])
    assert get(f"http://127.0.0.1:{server.port}/", policy).body == b"hello"
    with pytest.raises(UnsafeAddress):
        get(f"http://127.0.0.2:{server.port}/", policy)


def test_an_allowed_name_does_not_lead_to_metadata() -> None:
    with pytest.raises(UnsafeAddress):
        get("http://metadata.test/", guarded(allow=["metadata.test"]))


@pytest.mark.parametrize("entry", ["", "a b", "http://x", "x:y", "u@x", "x/", "1.2.3", "[::1"])
def test_a_wrong_entry_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="neither host nor host:port"):
        EgressPolicy.allowing([entry])


# -- TLS -----------------------------------------------------------------------------------------


def certificate_for(name: str, folder: Path) -> Path:
    """Key and self-signed certificate in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_the_certificate_must_be_the_names_though_the_address_is_called(tmp_path: Path) -> None:
    path = certificate_for("tls.test", tmp_path)
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.sni_callback = lambda _, name, __: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(path))
    with LocalServer(context=context) as server:
        policy = replace(guarded(allow=["tls.test", "other.test"]), ssl_context=trusting)
        assert get(f"https://tls.test:{server.port}/", policy).body == b"hello"
        assert asked == ["tls.test"]
        assert reason_of(f"https://other.test:{server.port}/", policy) == "unreachable"
        distrusting = guarded(allow=["tls.test"])
        assert reason_of(f"https://tls.test:{server.port}/", distrusting) == "unreachable"


def test_https_is_not_left_for_http(tmp_path: Path, server: LocalServer) -> None:
    path = certificate_for("tls.test", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with LocalServer({"/": send_to(door(server))}, context=context) as secure:
        policy = guarded(allow=["tls.test", "door.test"])
        policy = replace(policy, ssl_context=ssl.create_default_context(cafile=str(path)))
        assert reason_of(f"https://tls.test:{secure.port}/", policy) == "bad_redirect"
    assert server.accepted == 0


# -- Redirects -----------------------------------------------------------------------------------


def test_three_redirects_are_followed_and_a_fourth_is_not(server: LocalServer) -> None:
    for step in range(4):
        server.routes[f"/{step}"] = send_to(f"/{step + 1}")
    policy = through_door(server)
    answer = get(door(server, "/1"), policy)
    assert (answer.body, answer.url) == (b"hello", door(server, "/4"))
    assert reason_of(door(server, "/0"), policy) == "bad_redirect"


def test_a_chain_of_allowed_hops_ends_before_a_forbidden_one(
    server: LocalServer, other: LocalServer
) -> None:
    server.routes["/"] = send_to("/next", 307)
    server.routes["/next"] = send_to(f"http://loopback.test:{other.port}/", 308)
    with pytest.raises(UnsafeAddress):
        get(door(server), through_door(server, other))
    assert (len(server.requests), other.accepted) == (2, 0)


def test_credentials_do_not_leave_their_origin(server: LocalServer, other: LocalServer) -> None:
    server.routes["/"] = send_to("/same")
    server.routes["/same"] = send_to(door(other))
    secrets = {"Authorization": "Bearer s", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "a/b"}
    get(door(server), guarded(allow=["door.test"]), headers=secrets)
    for request in server.requests:
        assert request.headers.items() >= {(k.lower(), v) for k, v in secrets.items()}
    (foreign,) = other.requests
    assert set(foreign.headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert foreign.headers["accept"] == "a/b"


def test_cookies_are_not_kept(server: LocalServer) -> None:
    server.routes["/"] = say(
        b"", status=302, headers={"Location": "/next", "Set-Cookie": "a=1; Path=/"}
    )
    get(door(server), through_door(server))
    get(door(server), through_door(server))
    assert all("cookie" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("HEAD", 302, "HEAD"),
        ("DELETE", 307, "DELETE"),
    ],
)
def test_the_method_after_a_redirect(
    method: str, status: int, then: str, server: LocalServer
) -> None:
    server.routes["/"] = send_to("/next", status)
    body = b"text" if method in ("POST", "PUT") else None
    fetch_sync(method, door(server), content=body, policy=through_door(server), limits=QUICK)
    last = server.requests[-1]
    assert (last.method, last.target) == (then, "/next")
    assert last.body == (b"" if body is None or then == "GET" else body)


def test_a_body_does_not_go_to_another_origin(server: LocalServer, other: LocalServer) -> None:
    server.routes["/"] = send_to(door(other), 307)
    server.routes["/get"] = send_to(door(other), 303)
    policy = guarded(allow=["door.test"])
    with pytest.raises(FetchError, match="redirects"):
        fetch_sync("POST", door(server), json={"a": 1}, policy=policy, limits=QUICK)
    assert other.accepted == 0
    fetch_sync("POST", door(server, "/get"), json={"a": 1}, policy=policy, limits=QUICK)
    assert (other.requests[0].method, other.requests[0].body) == ("GET", b"")


def test_a_redirect_without_a_location_is_an_answer(server: LocalServer) -> None:
    server.routes["/"] = say(b"choose", status=302)
    assert get(door(server), through_door(server)).status == 302


# -- Time and size -------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 X\r\n"


def endless(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"x" * 65_536)


def slow(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def silent(connection: socket.socket, _: Request) -> None:
    connection.recv(1)


def trickled_head(connection: socket.socket, _: Request) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.02)


def forever_about_to(connection: socket.socket, _: Request) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


@pytest.mark.parametrize("answer", [slow, silent, trickled_head, forever_about_to])
def test_time_is_limited_as_a_whole(answer: Any, server: LocalServer) -> None:
    server.routes["/"] = answer
    limits = FetchLimits(total_seconds=0.4)
    assert reason_of(door(server), through_door(server), limits) == "timeout"


def test_an_endless_body_is_cut(server: LocalServer) -> None:
    server.routes["/"] = endless
    limits = FetchLimits(max_bytes=1_000_000, total_seconds=5)
    assert reason_of(door(server), through_door(server), limits) == "too_large"


def test_a_body_of_exactly_the_limit_is_taken(server: LocalServer) -> None:
    server.routes["/"] = say(b"x" * 1000)
    policy = through_door(server)
    assert len(get(door(server), policy, FetchLimits(max_bytes=1000)).body) == 1000
    assert reason_of(door(server), policy, FetchLimits(max_bytes=999)) == "too_large"


def gzipped(megabytes: int) -> bytes:
    squeeze = zlib.compressobj(9, wbits=31)
    zeros = b"\0" * 1_000_000
    return b"".join(squeeze.compress(zeros) for _ in range(megabytes)) + squeeze.flush()


def test_a_gzip_bomb_is_cut_without_being_held_in_memory(server: LocalServer) -> None:
    server.routes["/"] = say(gzipped(200), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        assert reason_of(door(server), through_door(server)) == "too_large"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40_000_000


def test_a_bomb_within_a_bomb_is_cut(server: LocalServer) -> None:
    twice = zlib.compress(gzipped(200))
    server.routes["/"] = say(twice, headers={"Content-Encoding": "gzip, deflate"})
    assert reason_of(door(server), through_door(server)) == "too_large"


def test_compressed_answers_are_decoded(server: LocalServer) -> None:
    server.routes["/"] = say(gzipped(1), headers={"Content-Encoding": "gzip"})
    assert get(door(server), through_door(server)).body == b"\0" * 1_000_000


@pytest.mark.parametrize(
    "parts",
    [
        (b"SSH-2.0-OpenSSH_9.0\r\n",),
        (b"",),
        (HEAD + b"Content-Length: 100\r\n\r\n", b"short"),
        (HEAD + b"Content-Length: -1\r\n\r\n",),
        (HEAD + b"X-A: " + b"b" * 200_000 + b"\r\n\r\n",),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",),
        (b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(
    parts: tuple[bytes, ...], server: LocalServer
) -> None:
    server.routes["/"] = raw(*parts)
    assert reason_of(door(server), through_door(server)) in ("bad_answer", "unreachable")


def test_a_closed_port_is_unreachable(server: LocalServer) -> None:
    with LocalServer() as gone:
        pass
    assert reason_of(door(gone), guarded(allow=["door.test"])) == "unreachable"


def test_cancelling_a_fetch_closes_the_connection(server: LocalServer) -> None:
    closed: list[bytes] = []
    server.routes["/"] = lambda connection, _: closed.append(connection.recv(1))

    async def cancelled() -> None:
        task = asyncio.create_task(fetch("GET", door(server), policy=through_door(server)))
        while not server.requests:  # noqa: ASYNC110  (the server is a thread)
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    ends_at = time.monotonic() + 5
    while not closed and time.monotonic() < ends_at:
        time.sleep(0.01)
    assert closed == [b""]


# -- What is sent, what comes back -----------------------------------------------------------------


def test_json_goes_out_and_comes_back(server: LocalServer) -> None:
    server.routes["/"] = say(b'{"content": "42"}', headers={"Content-Type": "application/json"})
    answer = fetch_sync("POST", door(server), json={"a": "ü"}, policy=through_door(server))
    (request,) = server.requests
    assert request.body == '{"a":"ü"}'.encode()
    assert request.headers["content-type"] == "application/json"
    assert (answer.json(), answer.mime_type, answer.is_success) == (
        {"content": "42"},
        "application/json",
        True,
    )


@pytest.mark.parametrize(
    "body",
    [b"[" * 51 + b"]" * 51, b'{"a":' * 51 + b"1" + b"}" * 51, b"[" * 100_000, b"{", b"", b"NaN"],
    ids=["arrays", "objects", "open", "cut", "empty", "nan"],
)
def test_deep_or_broken_json_is_not_parsed(body: bytes, server: LocalServer) -> None:
    server.routes["/"] = say(body)
    answer = get(door(server), through_door(server))
    with pytest.raises(FetchError) as caught:
        answer.json()
    assert caught.value.reason == "bad_answer"


def test_json_as_deep_as_the_limit_is_parsed(server: LocalServer) -> None:
    server.routes["/"] = say(b"[" * 50 + b'"]]]{{{"' + b"]" * 50)
    value = get(door(server), through_door(server)).json()
    for _ in range(50):
        (value,) = value
    assert value == "]]]{{{"


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=gbk", "健康".encode("gbk"), "健康"),
        ("text/html", "健康".encode(), "健康"),
        ("text/plain; charset=bz2", b"plain", "plain"),
        ("text/plain; charset=punycode", b"a-b", "a-b"),
        ("text/plain; charset=nonsense", b"\xff", "\ufffd"),
    ],
)
def test_text_is_decoded_by_known_charsets(
    content_type: str, body: bytes, text: str, server: LocalServer
) -> None:
    server.routes["/"] = say(body, headers={"Content-Type": content_type})
    assert get(door(server), through_door(server)).text() == text


def test_headers_of_the_connection_are_not_the_callers(server: LocalServer) -> None:
    headers = {"Host": "x", "Transfer-Encoding": "chunked", "Proxy-Authorization": "x", "X": "é"}
    get(door(server), through_door(server), headers=headers)
    (request,) = server.requests
    assert request.headers["host"] == f"door.test:{server.port}"
    assert not request.headers.keys() & {"transfer-encoding", "proxy-authorization"}
    assert request.headers["x"].encode("latin-1").decode() == "é"


def test_a_header_cannot_smuggle_another(server: LocalServer) -> None:
    with pytest.raises(FetchError):
        get(door(server), through_door(server), headers={"X": "a\r\nY: b"})
    assert server.requests == []


def test_connect_is_no_method() -> None:
    with pytest.raises(ValueError, match="CONNECT"):
        fetch_sync("CONNECT", "http://a.test/", policy=EgressPolicy())


def test_the_limits_are_those_of_the_rule() -> None:
    assert FetchLimits() == FetchLimits(10, 30, 10_000_000, 3)
    assert egress.MAX_JSON_DEPTH == 50
