from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.core import signing
from django.utils import timezone

from libraries.files import links
from libraries.files.links import STEP_SECONDS, signed_content_url
from libraries.models import File
from libraries.tests.stored_files import body_of, content, picture, stored
from tests.fixtures.personas import api

PUBLIC = "https://amber.example.com"


@pytest.fixture
def now(monkeypatch):
    """Seconds, to be moved; half an hour past the hour."""
    clock = {"time": 1_000 * STEP_SECONDS + 1_800.0}
    monkeypatch.setattr("libraries.files.links.time.time", lambda: clock["time"])
    return clock


@pytest.fixture
def image(alice, settings):
    settings.AMBER_PUBLIC_URL = PUBLIC
    return stored(alice, "a.png", picture("PNG"))


def ask(url: str) -> Any:
    return api().get(url.removeprefix(PUBLIC))


def test_a_link_needs_no_session(image):
    url = signed_content_url(image)
    assert url.startswith(f"{PUBLIC}{content(image)}?signature=")
    answer = ask(url)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "image/png"
    assert len(body_of(answer)) == image.size


def test_a_link_stays_the_same_for_an_hour(image, now):
    url = signed_content_url(image)
    now["time"] += 1_799
    assert signed_content_url(image) == url
    now["time"] += 1
    assert signed_content_url(image) != url


def test_a_link_ends_after_one_to_two_hours(image, now):
    url = signed_content_url(image)
    now["time"] += STEP_SECONDS
    body_of(ask(url))
    now["time"] += STEP_SECONDS
    assert ask(url).status_code == 404


def test_a_forged_link_is_404(image, alice):
    good = urlsplit(signed_content_url(image)).query
    other = stored(alice, "b.png", picture("PNG"))
    stamp = signing.TimestampSigner(salt="other").sign(str(image.pk)).partition(":")[2]
    for query in ("signature=", "signature=x", good[:-1], f"{good}x", f"signature={stamp}"):
        assert ask(f"{content(image)}?{query}").status_code == 404
    assert ask(f"{content(other)}?{good}").status_code == 404
    assert ask(f"{content(image).replace(str(image.pk), str(uuid4()))}?{good}").status_code == 404
    assert api(alice).get(f"{content(image)}?signature=x").status_code == 404
    assert ask(content(image)).status_code == 401


def test_a_link_ends_with_its_file(image):
    url = signed_content_url(image)
    File.objects.update(expired_at=timezone.now() - timedelta(seconds=1))
    assert ask(url).status_code == 404
    image.delete()
    assert ask(url).status_code == 404


def test_a_link_opens_nothing_but_the_bytes(image):
    query = urlsplit(signed_content_url(image)).query
    assert ask(f"/api/v1/files/{image.pk}/?{query}").status_code == 401
    assert api().delete(f"/api/v1/files/{image.pk}/?{query}").status_code == 401
    assert api().post(f"{content(image)}?{query}").status_code == 405


def test_links_are_for_images_and_need_a_public_address(alice, image, settings):
    text = stored(alice)
    with pytest.raises(ValueError, match="images"):
        signed_content_url(text)
    signature = links._signer().sign(str(text.pk)).partition(":")[2]
    assert ask(f"{content(text)}?signature={signature}").status_code == 404
    settings.AMBER_PUBLIC_URL = ""
    with pytest.raises(ValueError, match="AMBER_PUBLIC_URL"):
        signed_content_url(image)
