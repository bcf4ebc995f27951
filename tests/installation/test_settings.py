"""Settings that cannot be used stop the start, and the message names them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from amber.lib import environment

ROOT = Path(__file__).resolve().parents[2]
NAME = "AMBER_ANY"


@pytest.mark.parametrize(
    "value",
    [
        "http://searxng:8080",
        "https://search.example/engine/",
        "http://127.0.0.1:9966/tts",
        "http://[::1]:8080",
        " http://searxng ",
    ],
)
def test_an_address_is_taken_as_it_is_written(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    assert environment.address(NAME) == value.strip()


@pytest.mark.parametrize(
    "value",
    [
        "searxng:8080",
        "ftp://searxng",
        "http://",
        "http:///search",
        "http://user:password@searxng",
        "http://searxng?key=1",
        "http://searxng#x",
        "http://sear xng",
        "http://searxng:eighty",
        "http://searxng:0",
        "http://searxng:99999",
    ],
)
def test_what_is_no_address_stops_the_start(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        environment.address(NAME)


def test_an_address_that_is_not_given_is_the_default(monkeypatch):
    monkeypatch.setenv(NAME, "")
    assert environment.address(NAME) == ""
    assert environment.address(NAME, "https://a.example") == "https://a.example"


@pytest.mark.parametrize("value", ["5", "0.00001", "1e-5", "-1"])
def test_a_numeral_is_kept_as_it_is_written(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    assert environment.numeral(NAME, "7") == value


@pytest.mark.parametrize("value", ["fast", "1,5", "nan", "inf", "5 %"])
def test_what_is_no_number_stops_the_start(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        environment.numeral(NAME, "7")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMBER_ANY", "inf"),
        ("AMBER_ANY", "nan"),
        ("AMBER_ANY", "-1"),
        ("AMBER_ANY_SECONDS", "1e300"),
        ("AMBER_ANY_HOURS", "999999999999"),
        ("AMBER_ANY_DAYS", "999999"),
    ],
)
def test_numbers_with_which_nothing_can_be_counted_stop_the_start(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=f"{name}='{value}': must be a number"):
        environment.number(name, 1)
    with pytest.raises(ImproperlyConfigured, match=f"{name}='{value}': must be a whole number"):
        environment.integer(name, 1)


def test_a_hundred_years_are_still_counted_with(monkeypatch):
    for unit, most in environment.LONGEST.items():
        monkeypatch.setenv(f"{NAME}{unit}", str(most))
        assert environment.integer(f"{NAME}{unit}", 1) == most
    monkeypatch.setenv(NAME, str(10**400))
    assert environment.integer(NAME, 1) == 10**400


@pytest.mark.parametrize(
    "value", ["amber.example.com", "localhost, [::1],127.0.0.1", ".example.com", "*", "my_box"]
)
def test_hosts_are_taken(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    assert environment.hosts(NAME, ()) == [each.strip() for each in value.split(",")]


@pytest.mark.parametrize(
    "value", ["https://amber.example.com", "amber.example.com:8000", "a.example/", "a b", "::1"]
)
def test_what_names_no_host_stops_the_start(monkeypatch, value):
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match="without https://"):
        environment.hosts(NAME, ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMBER_SEARXNG_URL", "searxng:8080"),
        ("AMBER_TAVILY_URL", "api.tavily.com"),
        ("AMBER_TTS_URL", "file:///tts"),
        ("AMBER_TTS_SPEED", "fast"),
        ("AMBER_TTS_MAX_CHARS", "0"),
    ],
)
def test_wrong_services_stop_the_start(name, value):
    run = subprocess.run(
        [sys.executable, "-c", "import amber.settings"],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert f"ImproperlyConfigured: {name}=" in run.stderr


def start(**environ: str) -> "subprocess.CompletedProcess[str]":
    code = "import amber.settings as s; print(s.AMBER_OPEN_SIGNUP, s.ACCOUNT_EMAIL_VERIFICATION)"
    inherited = {
        k: v
        for k, v in os.environ.items()
        if k not in ("AMBER_OPEN_SIGNUP", "AMBER_SMTP_URL", "AMBER_PUBLIC_URL")
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**inherited, **environ},
        capture_output=True,
        text=True,
    )


def test_sign_up_is_closed_unless_it_is_opened_and_wants_mail_then():
    assert start().stdout.split() == ["False", "none"]
    mail = {"AMBER_SMTP_URL": "smtp://mail.example", "AMBER_PUBLIC_URL": "https://amber.example"}
    assert start(**mail).stdout.split() == ["False", "mandatory"]
    opened = start(AMBER_OPEN_SIGNUP="1", **mail)
    assert opened.stdout.split() == ["True", "mandatory"]
    without = start(AMBER_OPEN_SIGNUP="1")
    assert without.returncode != 0
    assert "AMBER_OPEN_SIGNUP=1 needs AMBER_SMTP_URL" in without.stderr


def test_mails_want_the_address_that_their_links_lead_to():
    refused = start(AMBER_SMTP_URL="smtp://mail.example")
    assert refused.returncode != 0
    assert "AMBER_SMTP_URL needs AMBER_PUBLIC_URL" in refused.stderr


def test_postgres_that_vanishes_is_noticed_unless_its_address_says_how(monkeypatch):
    monkeypatch.setenv(NAME, "postgresql://amber@db.example/amber")
    options = environment.database(NAME)["OPTIONS"]
    assert (options["connect_timeout"], options["tcp_user_timeout"]) == (5, 15_000)
    monkeypatch.setenv(NAME, "postgresql://amber@db.example/amber?connect_timeout=30")
    assert environment.database(NAME)["OPTIONS"]["connect_timeout"] == "30"


@pytest.mark.parametrize(
    "value", ["postgresql://me@host/amber", "postgresql://host", "http://host/amber", "host:5432"]
)
def test_another_address_of_the_database_has_no_login(monkeypatch, value):
    monkeypatch.setenv(NAME, "postgresql://host:6000/amber?sslmode=require")
    place = environment.database_place(NAME)
    assert (place["HOST"], place["PORT"], place["NAME"]) == ("host", "6000", "amber")
    assert place["OPTIONS"]["sslmode"] == "require"
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} .* without a user"):
        environment.database_place(NAME)


def test_a_replica_has_the_login_of_its_primary(monkeypatch):
    primary = {"USER": "amber_app", "PASSWORD": "secret"}
    assert environment.replica(NAME, primary) == {}
    monkeypatch.setenv(NAME, "postgresql://standby/amber")
    assert primary.items() <= environment.replica(NAME, primary).items()
    monkeypatch.setenv(NAME, "postgresql://postgres:word@standby/amber")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must log in as DATABASE_URL does"):
        environment.replica(NAME, primary)
