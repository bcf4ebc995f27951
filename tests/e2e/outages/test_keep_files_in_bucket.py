"""A whole platform whose files are in a bucket: documents, images for models, and erasing a person."""

import io
import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from PIL import Image

from tests.e2e.kit.client import Client
from tests.e2e.kit.platform import Platform, started_platform
from tests.e2e.kit.sessions import PASSWORD, signed_in
from tests.fixtures.bucket import KEYS, Bucket, bucket
from tests.fixtures.provider import RunningProvider

__all__ = ["bucket"]

pytestmark = pytest.mark.e2e

ANN = "ann@example.com"


@pytest.fixture(scope="module")
def own_platform(fake_provider: RunningProvider, bucket: Bucket) -> Iterator[Platform]:
    """Its bucket gives links to models, as a public one would by itself."""
    url = bucket.url(sse="AES256", links="1")
    with started_platform(fake_provider.base_url, AMBER_FILES_URL=url, **KEYS) as platform:
        yield platform


def upload(who: Client, path: str, name: str, data: bytes) -> Any:
    """Send a form with one file; return the answer's JSON."""
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
    kind = f"multipart/form-data; boundary={boundary}"
    answer = who.request("POST", path, body, headers={"Content-Type": kind})
    assert answer.status == 201, answer
    return answer.body


def picture() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (40, 30), "green").save(made, format="PNG")
    return made.getvalue()


def fetch(url: str) -> tuple[bytes, str]:
    """As a provider would, without credentials."""
    with build_opener(ProxyHandler({})).open(url, timeout=20) as answer:
        return answer.read(), answer.headers["Content-Type"]


def test_documents_images_and_people_in_a_bucket(own_platform, bucket, fake_provider):
    platform = own_platform
    bob = platform.new_person("bob", "Acme")
    kept = upload(bob, "files/", "bob.txt", b"Bob's own notes")

    named = ("--email", ANN, "--organization", "Acme", "--api-key", "--password-stdin")
    made = platform.command("manage.py", "create_account", *named, typed=f"{PASSWORD}\n")
    ann = Client(platform.port, key=json.loads(made)["api_key"])
    library = {"name": "Rules", "embedding_model": "fake-embedding"}
    library_id = ann.post("libraries/", library).body["id"]
    rules = b"The annual dues are 42 crowns, payable in May."
    document = upload(ann, f"libraries/{library_id}/documents/", "rules.txt", rules)

    def is_ready() -> bool:
        shown = ann.get(f"documents/{document['id']}/").body
        assert shown["status"] != "failed", shown["error"]
        return bool(shown["status"] == "ready")

    platform.wait_for(is_ready, "a document that is ready")
    found = ann.post(f"libraries/{library_id}/search/", {"query": "annual dues"}).body
    assert "42 crowns" in json.dumps(found)

    image = upload(ann, "files/", "cat.png", picture())
    chat_id = ann.new_chat("fake-vision")
    ann.post(f"chats/{chat_id}/messages/", {"role": "file", "file_id": image["id"]})
    asked = ann.ask("What does marker-7b3 show?", chat_id=chat_id)
    assert ann.ended(asked.turn_id)["status"] == "completed"
    [sent] = fake_provider.requests("marker-7b3")
    url = _image_url(sent)
    assert url.startswith(bucket.endpoint)
    seen, kind = fetch(url)
    assert (kind, Image.open(io.BytesIO(seen)).size) == ("image/png", (40, 30))
    signature = urlsplit(url).query.rpartition("X-Amz-Signature=")[2]
    assert signature not in platform.log.read_text(errors="replace")
    own = [m for m in ann.messages(chat_id) if m["role"] != "assistant"]  # that model echoes
    [(manifest,)] = platform.query("SELECT manifest FROM chats_turn WHERE id = %s", asked.turn_id)
    assert "X-Amz" not in json.dumps([own, ann.turn(asked.turn_id), manifest])

    stored = platform.query("SELECT path, name FROM libraries_file ORDER BY created_at")
    assert sorted(bucket.names()) == sorted(f"amber/{path}" for path, _ in stored)
    assert {bucket.about(n)["ServerSideEncryption"] for n in bucket.names()} == {"AES256"}
    assert not list((platform.home / "files").rglob("*")), "nothing is on the disk"

    with signed_in(platform, ANN) as http:
        token = {"X-CSRFToken": http.cookies["csrftoken"]}
        asked_for = {"confirm": ANN, "account": True}
        gone = http.post("/api/v1/me/erase/", json=asked_for, headers=token)
    assert gone.status_code == 202, gone.text
    [(bobs,)] = platform.query("SELECT path FROM libraries_file WHERE id = %s", kept["id"])
    platform.wait_for(lambda: bucket.names() == [f"amber/{bobs}"], "an empty bucket", seconds=90)


def _image_url(request: dict[str, Any]) -> str:
    parts = [
        part for m in request["messages"] if isinstance(m["content"], list) for part in m["content"]
    ]
    [image] = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return str(image)
