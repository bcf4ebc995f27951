"""Guests' addresses, and what their tests do all the time."""

from typing import Any

from chats.models import Chat
from tests.fixtures.personas import Guest, api

PUBLIC = "/api/v1/public/assistants/"


def of(guest: Guest, rest: str = "") -> str:
    return f"{PUBLIC}{guest.assistant.pk}/{rest}"


def get(guest: Guest, rest: str = "", **headers: str) -> Any:
    return api(key=guest.token).get(of(guest, rest), headers=headers)


def post(guest: Guest, rest: str, body: Any = None, **headers: str) -> Any:
    return api(key=guest.token).post(of(guest, rest), body or {}, headers=headers)


def open_chat(guest: Guest, **body: Any) -> Chat:
    answer = post(guest, "chats/", body)
    assert answer.status_code == 201, answer.content
    return Chat.objects.get(pk=answer.json()["id"])


def ask(guest: Guest, chat: Chat, content: str = "Hi", **headers: str) -> Any:
    return post(guest, f"chats/{chat.pk}/messages/", {"content": content}, **headers)
