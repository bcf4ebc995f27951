from typing import Any

import pytest

from amber.lib.secrets import sha256_hex
from amber.lib.tests.local_server import say, send_to
from libraries.models import File
from libraries.tests.stored_files import FILES, HTML, picture
from tests.fixtures.personas import Persona, api


def fetch(persona: Persona, url: str, **headers: str) -> Any:
    return api(persona).post(FILES, {"url": url}, headers=headers)


@pytest.fixture
def base(server):
    return f"http://127.0.0.1:{server.port}"


def test_stores_what_the_address_gives(alice, server, base, media):
    server.routes["/plans/my%20kitchen.png"] = say(picture("PNG"))
    url = f"{base}/plans/my%20kitchen.png?size=1"
    answer = fetch(alice, url)
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["name"], shown["mime_type"]) == ("my kitchen.png", "image/png")
    assert shown["url"] == url
    file = File.objects.get()
    assert (file.user, file.url_hash) == (alice.user, sha256_hex(url))
    assert len(media()) == 1


@pytest.mark.parametrize(
    ("path", "name"), [("/", "127.0.0.1"), ("/a/..%2F..%2Fetc%2Fpasswd", "passwd")]
)
def test_the_name_comes_from_the_address(alice, server, base, path, name):
    server.routes[path] = say(b"hello", headers={"Content-Disposition": "attachment; filename=x"})
    assert fetch(alice, base + path).json()["name"] == name


def test_the_type_follows_the_bytes(alice, server, base):
    server.routes["/a.png"] = say(HTML, headers={"Content-Type": "image/png"})
    assert fetch(alice, f"{base}/a.png").json()["mime_type"] == "text/plain"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://10.0.0.1/x.png",
        "http://0x7f.1/",
        "file:///etc/passwd",
        "data:text/plain,hello",
        "https://user:password@example.com/",
        "no address",
    ],
)
def test_private_addresses_are_refused(alice, media, url):
    answer = fetch(alice, url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsafe_address")
    assert set(answer.json()["error"]["fields"]) == {"url"}
    assert not File.objects.exists()
    assert media() == []


def test_a_redirect_to_a_private_address_is_refused(alice, server, base):
    server.routes["/"] = send_to("http://127.0.0.1:1/")
    assert fetch(alice, f"{base}/").json()["error"]["code"] == "unsafe_address"


@pytest.mark.parametrize("answer", [say(b"gone", status=404), say(b"", status=204), say(b"")])
def test_an_address_without_a_file_is_refused(alice, server, base, answer):
    server.routes["/"] = answer
    refused = fetch(alice, f"{base}/")
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {"url"}
    assert not File.objects.exists()


def test_too_large_is_413(alice, server, base, settings, media):
    settings.AMBER_MAX_UPLOAD_BYTES = 10
    server.routes["/"] = say(b"x" * 11)
    answer = fetch(alice, f"{base}/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert media() == []


def test_the_same_key_fetches_once(alice, server, base):
    server.routes["/a"] = server.routes["/b"] = say(b"hello")
    first = fetch(alice, f"{base}/a", **{"Idempotency-Key": "k"})
    assert fetch(alice, f"{base}/a", **{"Idempotency-Key": "k"}).json() == first.json()
    assert len(server.requests) == File.objects.count() == 1
    other = fetch(alice, f"{base}/b", **{"Idempotency-Key": "k"})
    assert other.json()["error"]["code"] == "idempotency_mismatch"


def test_refuses_strangers_before_it_asks_anybody(server, base, db):
    assert api().post(FILES, {"url": base}).status_code == 401
    assert server.accepted == 0
