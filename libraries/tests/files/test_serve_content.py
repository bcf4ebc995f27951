import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, AsyncRequestFactory
from django.utils import timezone

from amber.web.single_thread_handler import PIECE_BYTES, SingleThreadHandler
from libraries.models import File
from libraries.tests.stored_files import HTML, SVG, body_of, content, picture, stored
from tests.fixtures.personas import api


@pytest.fixture
def file(alice):
    return stored(alice)


def test_serves_the_bytes_as_a_download(alice, file):
    answer = api(alice).get(content(file))
    assert answer.status_code == 200
    assert body_of(answer) == b"Milk and honey"
    headers = dict(answer.items())
    assert headers["Content-Type"] == "text/plain"
    assert headers["Content-Length"] == "14"
    assert headers["Content-Disposition"] == 'attachment; filename="notes.txt"'
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert headers["Cache-Control"].startswith("private")
    assert headers["ETag"] == f'"{file.file_hash}"'


def test_nobody_else_reads_it(file, bob, carol, mallory):
    assert api().get(content(file)).status_code == 401
    for other in (bob, carol, mallory):
        answer = api(other).get(content(file))
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "not_found"
        assert api(other).head(content(file)).status_code == 404
        same = {"If-None-Match": f'"{file.file_hash}"'}
        assert api(other).get(content(file), headers=same).status_code == 404


def test_a_key_reads_it_if_it_may(alice, file):
    _, reads = alice.new_key(scopes=["read"])
    _, writes = alice.new_key(scopes=["write"])
    assert body_of(api(key=reads).get(content(file))) == b"Milk and honey"
    assert api(key=writes).get(content(file)).status_code == 403


@pytest.mark.parametrize("data", [HTML, SVG, b"PK\x03\x04\0\0"])
def test_only_images_are_shown_inline(alice, data):
    answer = api(alice).get(content(stored(alice, "a.png", data)), {"inline": "1"})
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"] in ("text/plain", "application/octet-stream")
    body_of(answer)


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_images_are_shown_inline_when_asked(alice, image_format):
    file = stored(alice, "a", picture(image_format))
    shown = api(alice).get(content(file), {"inline": "1"}, headers={"Accept": "image/*"})
    assert shown["Content-Disposition"].startswith("inline")
    assert shown["Content-Type"] == f"image/{image_format.lower()}"
    assert shown["Content-Security-Policy"] == "sandbox; default-src 'none'"
    body_of(shown)
    for query in ({}, {"inline": "0"}):
        downloaded = api(alice).get(content(file), query)
        assert downloaded["Content-Disposition"].startswith("attachment")
        body_of(downloaded)


@pytest.mark.parametrize("name", ['a"b\r\nX-Evil: 1.txt', "报告.txt", "a;b.txt"])
def test_names_do_not_break_out_of_the_header(alice, name):
    file = stored(alice, name)
    answer = api(alice).get(content(file))
    assert "X-Evil" not in answer
    said = answer["Content-Disposition"]
    assert said.startswith("attachment; filename")
    assert file.name in said.replace("\\", "") or quote(file.name) in said
    body_of(answer)


def test_unchanged_bytes_are_not_sent_again(alice, file):
    same = {"If-None-Match": f'"{file.file_hash}"'}
    answer = api(alice).get(content(file), headers=same)
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer["ETag"] == f'"{file.file_hash}"'
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    other = api(alice).get(content(file), headers={"If-None-Match": '"other"'})
    assert body_of(other) == b"Milk and honey"


def test_head_says_the_same_without_the_bytes(alice, file):
    got, head = api(alice).get(content(file)), api(alice).head(content(file))
    assert (head.status_code, head.content) == (200, b"")
    assert body_of(got) == b"Milk and honey"
    for name in ("Content-Type", "Content-Length", "Content-Disposition", "ETag"):
        assert head[name] == got[name]


def test_expired_and_lost_files_are_absent(alice, file, media):
    [path] = media()
    path.unlink()
    assert api(alice).get(content(file)).status_code == 404
    File.objects.update(expired_at=timezone.now() - timedelta(seconds=1))
    assert api(alice).get(content(file)).status_code == 404


def test_errors_are_json_whatever_was_asked_for(bob, file):
    answer = api(bob).get(content(file), headers={"Accept": "image/png"})
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.django_db(transaction=True)
def test_streams_in_the_web_process_a_piece_at_a_time(alice):
    data = b"0123456789" * PIECE_BYTES
    file = stored(alice, "a.bin", b"\0" + data)
    _, key = alice.new_key()
    request = AsyncRequestFactory().get(content(file), headers={"Authorization": f"Bearer {key}"})

    async def read() -> tuple[list[bytes], str]:
        answer: Any = await SingleThreadHandler().run_get_response(request)
        pieces = [piece async for piece in answer]
        answer.close()
        return pieces, answer["Content-Length"]

    pieces, length = async_to_sync(read)()
    assert b"".join(pieces) == b"\0" + data
    assert len(pieces) == 11
    assert length == str(file.size)


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_nobody_reads_is_closed(alice):
    """An open file would end as a ResourceWarning, which is an error here."""
    file = stored(alice)
    _, key = alice.new_key()

    async def leave() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        answer = await AsyncClient().get(content(file), headers=headers)
        await asyncio.to_thread(answer.close)

    async_to_sync(leave)()
