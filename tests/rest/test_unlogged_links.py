"""A link that was mailed is as good as a password: it is never in the log."""

import io
import json
import logging
import logging.config
from pathlib import Path

import pytest
import structlog
from django.conf import settings
from django.test import Client

from accounts import services
from accounts.tests.browsers import new_browser, post
from amber.lib.environment import mail_server
from amber.lib.mail.log_redaction import LINK_PATHS
from amber.web.page import PLACES

ROOT = Path(__file__).resolve().parents[2]
KEY = "1f-c9xk2l-5a6b7c8d9e"


@pytest.fixture
def log():
    """What the settings' own handler writes."""
    stdout = next(h for h in logging.getLogger().handlers if h.get_name() == "stdout")
    assert isinstance(stdout, logging.StreamHandler)
    written = io.StringIO()
    before = stdout.setStream(written)
    yield written
    stdout.setStream(before)


def test_a_mail_that_cannot_be_sent_is_not_written_down(monkeypatch, db, log, settings, capsys):
    monkeypatch.delenv("AMBER_SMTP_URL", raising=False)
    settings.EMAIL_BACKEND = mail_server("AMBER_SMTP_URL")["EMAIL_BACKEND"]
    email = services.sign_up("eve@example.com", password="a quite long sentence").email
    assert post(new_browser(), "password/request", {"email": email}).status_code == 200
    said = log.getvalue()
    assert [line for line in said.splitlines() if json.loads(line)["event"] == "mail_not_sent"]
    for secret in ("reset-password", email):
        assert secret not in said + "".join(capsys.readouterr())


@pytest.mark.parametrize("path", LINK_PATHS)
def test_a_link_that_comes_to_amber_is_logged_without_its_key(db, log, path):
    status = Client().get(f"/{path}/{KEY}").status_code
    assert status == (200 if path in PLACES else 404)
    logging.getLogger("django.request").warning("Not Found: %s", f"/{path}/{KEY}")
    structlog.get_logger("amber.request").info("request", path=f"/{path}/{KEY}", status=404)
    structlog.get_logger("x").error("said", detail=f"<a href='https://a.example/{path}/{KEY}'>")
    said = log.getvalue()
    # Django writes of what it does not find, and the three lines above.
    assert said.count(f"/{path}/…") + said.count(f"/{path}/\\u2026") >= (3 if status == 200 else 4)
    assert KEY not in said


def test_every_mailed_link_is_known():
    with_keys = [url for url in settings.HEADLESS_FRONTEND_URLS.values() if "{key}" in url]
    assert sorted(url.split("/")[-2] for url in with_keys) == sorted(LINK_PATHS)


def test_a_trace_says_nothing_either(log):
    try:
        raise ValueError(f"/reset-password/{KEY}")
    except ValueError:
        logging.getLogger("django.request").exception("failed")
    assert "Traceback" in log.getvalue()
    assert KEY not in log.getvalue()
