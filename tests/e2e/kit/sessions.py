"""People who are signed in, as a web page signs them in: session cookie, CSRF token."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx2

from tests.e2e.kit.platform import Platform

PASSWORD = "correct horse battery staple"
SESSION = "/_allauth/browser/v1/auth/session"
ANSWER_SECONDS = 60
"""A busy machine takes its time over a chat of ten thousand messages."""


def new_account(platform: Platform, name: str) -> str:
    """Made by an operator; its address."""
    email = f"{name}-{uuid4().hex[:8]}@example.com"
    named = ("--email", email, "--password-stdin")
    platform.command("manage.py", "create_account", *named, typed=f"{PASSWORD}\n")
    return email


@contextmanager
def signed_in(platform: Platform, email: str) -> Iterator[httpx2.Client]:
    address = f"http://127.0.0.1:{platform.port}"
    usual = {"Referer": address}
    with httpx2.Client(
        base_url=address, trust_env=False, headers=usual, timeout=ANSWER_SECONDS
    ) as http:
        http.get(SESSION)
        send(
            http, "POST", "/_allauth/browser/v1/auth/login", {"email": email, "password": PASSWORD}
        )
        yield http


def send(http: httpx2.Client, method: str, path: str, body: Any = None) -> Any:
    """Raises AssertionError for a refusal."""
    token = {"X-CSRFToken": http.cookies["csrftoken"]}
    answer = http.request(method, path, json=body, headers=token)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()
