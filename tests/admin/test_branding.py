"""An installation has a name, a logo and colours of its own, which can be read whatever they are."""

import random

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from amber.lib import environment as env
from amber.lib.egress import FetchError
from amber.lib.palette import contrast, palette
from amber.web import branding as logos

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
TEXT = 4.5


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch):
    logos._own_logo.cache_clear()
    monkeypatch.setattr(logos, "_fetched", logos._FetchedLogo())
    yield
    logos._own_logo.cache_clear()


@pytest.fixture
def ours(settings):
    settings.AMBER_NAME, settings.AMBER_COLOR = "Rhône & Söhne", "#ffe600"
    settings.AMBER_PALETTE = palette("#ffe600")
    return settings


def colours():
    usual = ["#000", "#ffffff", "#808080", "#ffee00", "#00ff00", "#0000ff", "#a34e06"]
    seeded = random.Random(7)
    return usual + [f"#{seeded.randrange(1 << 24):06x}" for _ in range(200)]


def test_text_in_any_colour_can_be_read():
    for colour in colours():
        shades = palette(colour)
        on_light = [
            (shades[each], ground)
            for each in ("600", "700")
            for ground in ("#ffffff", "#f3efe7", shades["100"])
        ]
        on_dark = [
            (shades[each], ground)
            for each in ("400", "500")
            for ground in ("#101828", "#1e2939", "#221e1a")
        ]
        on_own = [(shades["400"], shades["950"]), (shades["300"], shades["950"])]
        for one, other in on_light + on_dark + on_own:
            assert contrast(one, other) >= TEXT, (colour, one, other)


def test_a_colour_that_can_be_read_is_taken_as_it_is():
    assert palette("#a34e06")["600"] == "#a34e06"
    assert palette("#0b4f8a")["600"] == "#0b4f8a"


def test_a_wrong_value_stops_the_start_with_a_sentence(monkeypatch, tmp_path):
    text = tmp_path / "logo.png"
    text.write_text("no picture")
    wrong = [
        (env.colour, "orange", "must be a colour like #0b6e4f"),
        (env.logo, str(text), "an SVG, PNG, JPEG or WebP picture"),
        (env.logo, str(tmp_path / "missing.svg"), "an SVG, PNG, JPEG or WebP picture"),
        (env.logo, "http://example.com/logo.png", "must be an https address"),
    ]
    for read, value, said in wrong:
        monkeypatch.setenv("AMBER_X", value)
        with pytest.raises(ImproperlyConfigured, match=said):
            read("AMBER_X")
    monkeypatch.setenv("AMBER_X", "two\nlines")
    with pytest.raises(ImproperlyConfigured, match="one line"):
        env.line("AMBER_X", "Amber", most_chars=40)


def test_the_pages_have_name_logo_and_colours(ours, db):
    client = Client()
    for path in ("/", "/identity/sign-in", "/admin/login/"):
        text = client.get(path).content.decode()
        assert "Rhône &amp; Söhne" in text, path
        assert "/branding/logo?v=" in text, path
        assert "<title>Amber" not in text
    for path in ("/", "/identity/sign-in"):
        assert "/branding/colours.css?v=" in client.get(path).content.decode()
    sheet = client.get("/branding/colours.css")
    assert sheet["Content-Type"].startswith("text/css")
    assert f"--accent: {ours.AMBER_PALETTE['600']};" in sheet.content.decode()


def test_without_a_colour_the_pages_keep_ambers(settings, db):
    settings.AMBER_COLOR = ""
    assert "colours.css" not in Client().get("/").content.decode()


def test_the_logo_of_a_file_is_served_and_runs_nothing(settings, tmp_path, client):
    path = tmp_path / "ours.svg"
    path.write_bytes(SVG)
    settings.AMBER_LOGO = str(path)
    for address in ("/branding/logo", "/favicon.ico"):
        answer = client.get(address)
        assert (answer.content, answer["Content-Type"]) == (SVG, "image/svg+xml")
        assert "sandbox" in answer["Content-Security-Policy"]
        assert "default-src 'none'" in answer["Content-Security-Policy"]


def test_ambers_own_logo_takes_the_colour(ours, client):
    assert ours.AMBER_PALETTE["600"] in client.get("/branding/logo").content.decode()


def test_the_logo_of_an_address_is_fetched_once(settings, client, monkeypatch):
    settings.AMBER_LOGO = "https://example.com/logo.svg"
    asked = []

    def fetch(*how, **more):
        asked.append(how)
        return Answer(SVG)

    monkeypatch.setattr(logos, "fetch_sync", fetch)
    assert [client.get("/branding/logo").content for _ in range(3)] == [SVG] * 3
    assert len(asked) == 1


def test_nobody_waits_while_somebody_else_fetches_the_logo(settings, client, monkeypatch):
    """Anybody may ask for it: a server that hangs would else hold a thread for each who does."""
    settings.AMBER_LOGO = "https://example.com/logo.svg"
    seen = []

    def fetch(*_, **__):
        seen.append(client.get("/favicon.ico").content)
        return Answer(SVG)

    monkeypatch.setattr(logos, "fetch_sync", fetch)
    assert client.get("/branding/logo").content == SVG
    assert b"linearGradient" in seen[0]


@pytest.mark.parametrize("fault", ["no picture", "refused", "away"])
def test_ambers_own_stands_in_for_a_logo_that_cannot_be_fetched(
    settings, client, monkeypatch, fault
):
    settings.AMBER_LOGO = "https://example.com/logo.svg"

    def fetch(*_, **__):
        if fault == "away":
            raise FetchError("timeout")
        return Answer(b"<html>" if fault == "no picture" else SVG, is_success=fault != "refused")

    monkeypatch.setattr(logos, "fetch_sync", fetch)
    answer = client.get("/branding/logo")
    assert answer.status_code == 200
    assert b"linearGradient" in answer.content


class Answer:
    def __init__(self, body, *, is_success=True):
        self.body, self.is_success = body, is_success
