"""Rows are deleted while others begin to refer to them, and locked in the order in which workers lock them:
nobody gets a 500 for it, nothing is left behind, and no answer is lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models import Model

from amber.processes import wait_until
from assistants.models import Assistant
from chats.models import Chat, ChatMessage
from chats.tests.conftest import fake_provider, new_model, provider
from chats.tests.rows import error_of, messages, new_assistant, new_chat, new_file, new_turn
from libraries.models import Document, DocumentChunk, File, Library
from libraries.tests import ledger
from libraries.tests.ledger import beside, new_library
from libraries.tests.shelf import shelve
from public_api.models import Webhook, WebhookDelivery
from public_api.tests.webhooks.hooks import enqueued, hook, receiver, turn_of
from public_api.webhooks import outbox
from public_api.webhooks.services import delete_webhook
from tests.fixtures.personas import Persona, api
from tools.models import Tool, ToolCallRecord

__all__ = ["enqueued", "fake_provider", "hook", "new_model", "provider", "receiver"]

pytestmark = pytest.mark.django_db(transaction=True)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=partial(beside, work))
    thread.start()
    return thread


@contextmanager
def struck_before_the_row(model: type[Model], work: Callable[[], object]) -> Iterator[None]:
    """Let somebody commit this after the cascade, just before the row itself is deleted."""
    left = [work]

    def strike(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if left and sql.startswith(f'DELETE FROM "{model._meta.db_table}"'):
            left.pop()()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(strike):
        yield
    assert not left


# -- Referred to anew ------------------------------------------------------------------------------


def test_an_assistant_that_is_asked_while_it_is_deleted(alice):
    assistant = new_assistant(alice)
    chats: list[Chat] = []

    def ask() -> None:
        chats.append(new_chat(alice, assistant=assistant))

    with struck_before_the_row(Assistant, partial(beside, ask)):
        answer = api(alice).delete(f"/api/v1/assistants/{assistant.pk}/")
    assert answer.status_code == 204, answer.content
    assert not Assistant.objects.exists()
    assert Chat.objects.get(pk=chats[0].pk).assistant_id is None


def test_a_tool_that_is_called_while_it_is_deleted(alice):
    mine = {"organization": alice.organization, "user": alice.user}
    tool = Tool.objects.create(**mine, name="T", kind="discovery")
    record = {"tool": tool, "function": "f", "outcome": "ok", "latency_ms": 1}
    called = partial(ToolCallRecord.objects.create, **mine, **record)
    with struck_before_the_row(Tool, partial(beside, called)):
        answer = api(alice).delete(f"/api/v1/tools/{tool.pk}/")
    assert answer.status_code == 204, answer.content
    assert not ToolCallRecord.objects.exists()


def test_a_webhook_of_which_a_turn_tells_while_it_is_deleted(alice, hook):
    webhook, _ = hook(alice)
    delivery = {"event": "turn.completed", "payload": {}, "due_at": webhook.created_at}
    mine = {"organization": alice.organization, "webhook": webhook, "turn_id": webhook.pk}
    told = partial(WebhookDelivery.objects.create, **mine, **delivery)
    with struck_before_the_row(Webhook, partial(beside, told)):
        answer = api(alice).delete(f"/api/v1/webhooks/{webhook.pk}/")
    assert answer.status_code == 204, answer.content
    assert not WebhookDelivery.objects.exists()


def test_a_file_that_is_sent_while_it_is_deleted(alice):
    """Nobody can refer to it any more from the moment it is looked at; who tries is told so."""
    file, chat = new_file(alice), new_chat(alice)
    sending: list[threading.Thread] = []
    answers: list[Any] = []

    def send() -> None:
        body = {"role": "file", "file_id": str(file.pk)}
        answers.append(api(alice).post(messages(chat), body))

    def send_beside() -> None:
        sending.append(in_thread(send))
        sending[0].join(0.5)

    with struck_before_the_row(File, send_beside):
        answer = api(alice).delete(f"/api/v1/files/{file.pk}/")
    sending[0].join()
    assert answer.status_code == 204, answer.content
    assert error_of(answers[0]) in [(409, "conflict"), (404, "not_found")]
    assert not ChatMessage.objects.exists()


def test_who_names_what_is_deleted_in_that_moment_is_told_so(alice, monkeypatch):
    assistant = new_assistant(alice)
    delete = partial(Assistant.objects.filter(pk=assistant.pk).delete)
    monkeypatch.setattr("chats.services.tell_of_chat", lambda *_: beside(delete))
    answer = api(alice).post("/api/v1/chats/", {"assistant_id": str(assistant.pk)})
    assert error_of(answer) == (409, "conflict")
    assert not Chat.objects.exists()


@pytest.mark.parametrize("is_early", [True, False])
def test_no_answer_is_lost_with_a_webhook(alice, new_model, hook, monkeypatch, is_early):
    """It is deleted just before the turn holds on to it, or between that and its commit."""
    new_model(default=True)
    webhook, _ = hook(alice)
    deleting: list[threading.Thread] = []
    keep, create = outbox._keep, WebhookDelivery.objects.bulk_create

    def delete() -> None:
        deleting.append(in_thread(partial(delete_webhook, webhook)))
        deleting[0].join(5 if is_early else 0.5)

    def keep_late(webhooks: Any) -> Any:
        found = list(webhooks)
        if is_early:
            delete()
        return keep(found)

    def create_late(rows: Any) -> Any:
        made = create(rows)
        if not is_early:
            delete()
        return made

    monkeypatch.setattr(outbox, "_keep", keep_late)
    monkeypatch.setattr(WebhookDelivery.objects, "bulk_create", create_late)
    turn = turn_of(alice)
    deleting[0].join()
    assert (turn.status, turn.error) == ("completed", None)
    assert not WebhookDelivery.objects.exists()


# -- Locked in the order of workers ----------------------------------------------------------------


@contextmanager
def worker_between(first: Any, second: Any) -> Iterator[None]:
    """A worker that has locked the first row when the block begins, and wants the second as soon as the
    block waits for it. Fails if the block holds that by then, which would be a deadlock."""
    failed: list[BaseException] = []

    def go_on(worker: psycopg.Connection) -> None:
        try:
            assert wait_until(lambda: _is_waited_for(worker), timeout_seconds=30)
            worker.execute("SET LOCAL lock_timeout = '2s'")
            _lock(worker, second)
        except BaseException as exc:  # noqa: BLE001  (raised again in the test's thread)
            failed.append(exc)
        finally:
            worker.rollback()

    parameters = connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}
    with psycopg.connect(**parameters) as worker:
        _lock(worker, first)
        thread = threading.Thread(target=go_on, args=(worker,))
        thread.start()
        yield
        thread.join()
    if failed:
        raise failed[0]


def _is_waited_for(worker: psycopg.Connection) -> bool:
    blocked = (
        "SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    )
    return worker.execute(blocked.encode()).rowcount > 0


def _lock(worker: psycopg.Connection, row: Any) -> None:
    sql = f"SELECT FROM {row._meta.db_table} WHERE id = %s FOR NO KEY UPDATE"
    assert worker.execute(sql.encode(), [row.pk]).rowcount == 1


def erase(persona: Persona) -> Any:
    return api(persona).post("/api/v1/me/erase/", {"confirm": persona.user.email})


def close(persona: Persona) -> Any:
    return api(persona).delete(f"/api/v1/organizations/{persona.organization.pk}/")


@pytest.mark.parametrize("leave", [erase, close])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (1, 2)])
def test_who_goes_while_a_turn_is_stored(alice, leave, first, second):
    """Its worker locks the chat, the turn, and at last the assistant."""
    chat = new_chat(alice, assistant=new_assistant(alice))
    turn = new_turn(chat, status="running", assistant=chat.assistant)
    rows = (chat, turn, chat.assistant)
    with worker_between(rows[first], rows[second]):
        answer = leave(alice)
    assert answer.status_code in (202, 204), answer.content


def delete(library: Library, persona: Persona) -> Any:
    return api(persona).delete(f"/api/v1/libraries/{library.pk}/")


def reindex(library: Library, persona: Persona) -> Any:
    return api(persona).post(f"/api/v1/libraries/{library.pk}/reindex/")


def call_the_switch_off(library: Library, persona: Persona) -> Any:
    body = {"embedding_model": library.embedding_model.alias}
    return api(persona).patch(f"/api/v1/libraries/{library.pk}/", body)


@pytest.fixture
def library(alice: Persona, monkeypatch: pytest.MonkeyPatch) -> Library:
    for name in ("enqueue_erasure", "enqueue_ingestion"):
        monkeypatch.setattr(f"libraries.services.{name}", lambda: None)
    later = ledger.new_model(upstream_id="other")
    made: Library = new_library(alice, next_embedding_model=later)
    return made


def new_running(library: Library) -> Document:
    document: Document = ledger.new_document(library)
    Document.objects.filter(pk=document.pk).update(status="running", stage="ready")
    return document


@pytest.mark.parametrize(
    "change",
    [
        delete,
        call_the_switch_off,
        lambda _, persona: erase(persona),
        lambda _, persona: close(persona),
    ],
)
def test_a_library_that_goes_or_changes_while_a_document_is_published(alice, library, change):
    document = new_running(library)
    with worker_between(document, library):
        answer = change(library, alice)
    assert answer.status_code in (200, 202, 204), answer.content


@pytest.mark.parametrize("change", [delete, reindex, call_the_switch_off])
def test_documents_that_are_published_together(alice, library, change):
    """Their worker locks them by id, wherever Postgres keeps them."""
    first, second = new_running(library), new_running(library)
    Document.objects.filter(pk=first.pk).update(content_hash="written anew, behind the other")
    with worker_between(first, second):
        answer = change(library, alice)
    assert answer.status_code in (200, 202, 204), answer.content


@pytest.mark.parametrize("second", ["document", "library"])
def test_a_document_that_goes_while_its_content_is_replaced(alice, library, second):
    """Its worker deletes the old chunks first, then locks the document, and at last the library."""
    document = shelve(library, "The pump is bled at its valve.")
    chunk = DocumentChunk.objects.get(document=document)
    with worker_between(chunk, document if second == "document" else library):
        answer = api(alice).delete(f"/api/v1/documents/{document.pk}/")
    assert answer.status_code == 204, answer.content
    assert not DocumentChunk.objects.exists()
