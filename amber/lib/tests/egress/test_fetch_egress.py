"""The guarded client against real servers: what it refuses, it does not even connect to."""

import asyncio
import datetime
import ssl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from amber.lib.egress import (
    EgressPolicy,
    FetchError,
    FetchLimits,
    UnsafeAddress,
)
from amber.lib.egress.addresses import is_allowable, is_public, plain_address
from amber.lib.egress.transport import GuardedBackend
from amber.lib.tests.egress.guarded_client import Names, door, get, guarded, reason_of, through_door
from amber.lib.tests.egress.hostile_urls import HOSTILE_URLS
from amber.lib.tests.local_server import LocalServer, send_to

# -- Addresses ---------------------------------------------------------------------------------


def test_there_are_enough_hostile_addresses() -> None:
    assert len(set(HOSTILE_URLS)) >= 120


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
def test_a_hostile_address_is_refused_without_a_connection(url: str, server: LocalServer) -> None:
    with pytest.raises(UnsafeAddress):
        get(url.format(port=server.port), guarded(server.port))
    assert server.accepted == 0


# The others cannot be said in a header.
HOSTILE_LOCATIONS = [url for url in HOSTILE_URLS if url and not set(url) & {"\r", "\n", "\0"}]


@pytest.mark.parametrize("url", HOSTILE_LOCATIONS, ids=ascii)
def test_a_redirect_to_a_hostile_address_is_not_followed(
    url: str, server: LocalServer, other: LocalServer
) -> None:
    location = url.format(port=other.port)
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
