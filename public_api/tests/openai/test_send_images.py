"""Images in requests: as bytes, or as addresses that Amber fetches under guard."""

import io
from typing import Any

import pytest
from PIL import Image

from amber.lib.rest import orderly
from amber.lib.tests.local_server import LocalServer, say, send_to
from chats.models import Turn
from libraries.models import File
from public_api.openai import sent_images
from public_api.tests.exchange import Answer, request
from public_api.tests.test_proxy_chats import said, seen_by_model
from tests.fakes.answers import answer_text

pytestmark = pytest.mark.django_db(transaction=True)


def png() -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(written, "PNG")
    return written.getvalue()


@pytest.fixture
def server(settings):
    with LocalServer() as running:
        settings.AMBER_TOOL_ALLOWED_HOSTS = (f"127.0.0.1:{running.port}",)
        settings.AMBER_PUBLIC_URL = ""
        yield running


@pytest.fixture
def secret(alice):
    return alice.new_key(scopes=["public"])[1]


def post(secret: str, *urls: str, path: str = "/v1/chat/completions", **more: Any) -> Answer:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    body = {"model": "fake-echo", "messages": [said(parts)], **more}
    answer = request("POST", path, body=body, headers={"authorization": f"Bearer {secret}"})
    assert answer is not None
    return answer


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat"])
def test_an_image_is_fetched_and_shown_as_ours(secret, new_model, worker, server, path):
    new_model("fake-echo", vision=True)
    server.routes |= {"/a.png": say(png()), "/b.png": send_to("/a.png")}
    urls = [f"http://127.0.0.1:{server.port}/{name}.png" for name in "ab"]
    answer = post(secret, *urls, path=path)
    assert answer.status == 200, answer.body
    if path == "/chat":
        (message,) = seen_by_model(answer)
        shown = [part["image_url"]["url"] for part in message["content"]]
        assert all(url.startswith("data:image/png;base64,") for url in shown)
    assert [file.mime_type for file in File.objects.all()] == ["image/png", "image/png"]


@pytest.mark.parametrize(
    ("path", "code"),
    [("/missing.png", "invalid_value"), ("/page", "invalid_value"), ("/moved", "unsafe_address")],
)
def test_what_is_no_image_names_its_place_and_leaves_nothing(
    secret, new_model, worker, server, path, code
):
    new_model("fake-echo", vision=True)
    server.routes |= {
        "/missing.png": say(b"", status=404),
        "/page": say(b"<p>Hello</p>"),
        "/moved": send_to("http://127.0.0.2/a.png"),
        "/a.png": say(png()),
    }
    root = f"http://127.0.0.1:{server.port}"
    answer = post(secret, f"{root}/a.png", f"{root}{path}")
    assert answer.status == 400
    assert answer.error["param"].startswith("messages[0].content[1]")
    assert answer.error["code"] == code
    assert not File.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/a.png", "http://169.254.169.254/latest", "http://localhost:5432/"]
)
def test_addresses_at_home_are_not_called(secret, new_model, worker, url):
    new_model("fake-echo", vision=True)
    answer = post(secret, url)
    assert (answer.status, answer.error["code"]) == (400, "unsafe_address")
    assert not Turn.objects.exists()


def test_an_image_alone_is_a_question(secret, new_model, worker, server):
    new_model("fake-model", vision=True)
    server.routes["/a.png"] = say(png())
    url = f"http://127.0.0.1:{server.port}/a.png"
    answer = post(secret, url, model="fake-model", max_tokens=6)
    assert answer.json()["choices"][0]["message"]["content"] == answer_text(64)


def test_while_an_image_is_fetched_other_questions_are_let_in(
    secret, new_model, worker, server, monkeypatch
):
    """Two requests to a server that never answers would else hold all places."""
    new_model("fake-echo", vision=True)
    server.routes |= {"/a.png": say(png())}
    free: list[int] = []
    fetch_images = sent_images._fetch_images

    def note_places(urls: Any) -> Any:
        free.append(orderly._ENTRY._free)
        return fetch_images(urls)

    monkeypatch.setattr(sent_images, "_fetch_images", note_places)
    assert post(secret, f"http://127.0.0.1:{server.port}/a.png").status == 200
    assert free == [2]
