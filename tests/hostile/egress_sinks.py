"""Every way in which a stranger's address reaches the network: the table of sinks.

`SINKS[name](world, url)` makes Amber use `url` that way and gives what was said of it. A room that
learns to call strangers in another way adds a sink here; `test_egress_sinks.py` does the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.test import override_settings
from django.utils import timezone

from amber.lib.errors import AmberError, Invalid
from amber.lib.tests.local_server import LocalServer, Request
from amber.lib.workers.worker import Worker
from chats.models import Turn
from libraries.git import importing
from libraries.git.services import start_import
from libraries.ingestion.document_services import add_from_url, refresh_document
from libraries.tests.ledger import new_document, new_library
from public_api.models import Webhook, WebhookDelivery
from public_api.openai.messages import RemoteImage
from public_api.openai.sent_images import unsaved_images
from public_api.webhooks.delivery import deliver_due
from public_api.webhooks.services import create_webhook, delete_webhook
from tests.fixtures.personas import OPERATOR, Persona
from tools.connections.trials import try_function
from tools.models import Tool, ToolKind
from tools.protocol import ToolContext, ToolError
from tools.services import create_tool, refresh_tool, update_tool
from tools.tests.services import call as call_builtin
from tools.tests.services import say_json
from tools.tests.tool_service import function

KINDS: Final = tuple(ToolKind)


@dataclass
class World:
    """`door` is the one server that may be called, under the name door.test."""

    persona: Persona
    door: LocalServer

    @property
    def door_url(self) -> str:
        return f"http://door.test:{self.door.port}/"

    def redirect(self, url: str) -> str:
        """An address that may be called and sends whoever comes on to `url`."""
        head = f"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: {url}\r\n\r\n".encode()

        def answer(connection: Any, _: Request) -> None:
            connection.sendall(head)

        self.door.routes["/"] = answer
        return self.door_url


Sink = Callable[[World, str], str]


def said(work: Callable[[], object]) -> str:
    """The refusal; empty if there was none."""
    try:
        work()
    except AmberError as error:
        return said_of(error)
    return ""


def said_of(error: AmberError) -> str:
    texts = [text for field in (error.fields or {}).values() for text in field]
    return " ".join(dict.fromkeys([error.message, *texts]))


# -- Tools ---------------------------------------------------------------------------------------


def stored(world: World, kind: str, *, address: str, calls: str = "") -> Tool:
    """A tool that was good once. `calls` is where its function leads, by default its address."""
    plan = {
        "method": "GET",
        "server": (calls or address).rstrip("/"),
        "path": "/",
        "places": [],
        "media_type": "",
        "body_argument": "",
    }
    entry = function("f", idempotent=False, request=plan)
    return Tool.objects.create(
        organization=world.persona.organization,
        user=world.persona.user,
        name="T",
        kind=kind,
        discovery_url=address,
        data={"callback_url": calls or address, "functions": [entry]},
    )


def create(world: World, url: str, *, kind: str) -> str:
    given = {"kind": kind, "discovery_url": url}
    return said(lambda: create_tool(world.persona.principal, given=given))


def update(world: World, url: str, *, kind: str) -> str:
    tool = stored(world, kind, address=world.door_url)
    return said(lambda: update_tool(tool, changes={"discovery_url": url}, by=OPERATOR))


def refresh(world: World, url: str, *, kind: str) -> str:
    """The address was good when it was stored, and is not any more."""
    return refresh_tool(stored(world, kind, address=url)).last_error


def call(world: World, url: str, *, kind: str) -> str:
    tool = stored(world, kind, address=world.door_url if kind != ToolKind.MCP else url, calls=url)
    return said_by(tool, world)


def said_by(tool: Tool, world: World) -> str:
    """What a call is refused with."""
    trial = try_function(tool, world.persona.principal, function="f", arguments={})
    return "" if trial.ok else trial.content


def create_with_callback(world: World, url: str) -> str:
    manifest = {
        "name": "T",
        "description": "A tool.",
        "callback_url": url,
        "functions": [function("f")],
    }
    world.door.routes["/"] = say_json(manifest)
    return create_and_call(world, {"kind": ToolKind.DISCOVERY, "discovery_url": world.door_url})


def create_with_server(world: World, url: str) -> str:
    document = '{"openapi": "3.1.0", "info": {}, "paths": {"/a": {"get": {"operationId": "f"}}}}'
    options = {"server": url}
    return create_and_call(
        world, {"kind": ToolKind.OPENAPI, "document": document, "options": options}
    )


def create_and_call(world: World, given: dict[str, Any]) -> str:
    """Adding a tool looks no name up: what a name means is judged with each call."""
    try:
        tool = create_tool(world.persona.principal, given=given)
    except AmberError as error:
        return said_of(error)
    return said_by(tool, world)


def create_redirected(world: World, url: str, *, kind: str) -> str:
    return create(world, world.redirect(url), kind=kind)


def call_redirected(world: World, url: str, *, kind: str) -> str:
    tool = stored(world, kind, address=world.redirect(url))
    return try_function(tool, world.persona.principal, function="f", arguments={}).content


# -- Built-in tools ------------------------------------------------------------------------------


def refused_by(name: str, arguments: dict[str, Any], world: World) -> str:
    """What a call of the built-in tool is refused with."""
    principal = world.persona.principal
    context = ToolContext(organization_id=principal.organization_id, user_id=principal.user_id)
    try:
        call_builtin(name, arguments, context)
    except ToolError as error:
        return str(error)
    return ""


def browse(world: World, url: str) -> str:
    return refused_by("web_browse", {"url": url}, world)


def browse_redirected(world: World, url: str) -> str:
    return browse(world, world.redirect(url))


def speak(world: World, url: str) -> str:
    """The operator's own service says that the audio is there."""
    world.door.routes["/tts"] = say_json({"url": url})
    with override_settings(AMBER_TTS_URL=f"{world.door_url}tts"):
        return refused_by("text_to_speech", {"text": "Hi"}, world)


def speak_redirected(world: World, url: str) -> str:
    return speak(world, world.redirect(url))


# -- Libraries -----------------------------------------------------------------------------------


def add_document(world: World, url: str) -> str:
    return said(lambda: add_from_url(new_library(world.persona), url=url, user_id=None))


def add_document_redirected(world: World, url: str) -> str:
    return add_document(world, world.redirect(url))


def fetch_document_again(world: World, url: str) -> str:
    """The address was good when it was stored, and is not any more."""
    document = new_document(new_library(world.persona), "What it said.", source=url)
    return said(lambda: refresh_document(document))


def import_repository(world: World, url: str) -> str:
    """Only https is taken; that the scheme is wrong would hide what is wrong with the address."""
    return said(lambda: _import(world, url.replace("http://", "https://", 1)))


def _import(world: World, url: str) -> None:
    repository = start_import(new_library(world.persona), user_id=None, git_url=url, token="t")
    claimed = importing.claim(Worker("w1"))
    assert claimed == repository
    importing.run(claimed)
    claimed.refresh_from_db()
    raise Invalid(claimed.error)


# -- Webhooks ------------------------------------------------------------------------------------


def add_webhook(world: World, url: str) -> str:
    """What the address is refused with at once, or when something is sent there."""
    return said(lambda: _deliver(world, url))


def send_webhook(world: World, url: str) -> str:
    """The address was good when it was stored, and is not any more."""
    return said(lambda: _deliver(world, world.door_url, moved_to=url))


def send_webhook_redirected(world: World, url: str) -> str:
    return add_webhook(world, world.redirect(url))


def _new_turn(world: World) -> Turn:
    """A stateless turn that the webhook's owner may know of: others are not told of any more."""
    turn: Turn = Turn.objects.create(
        organization=world.persona.organization, user=world.persona.user, status="completed"
    )
    return turn


def _deliver(world: World, url: str, *, moved_to: str = "") -> None:
    webhook, _ = create_webhook(
        world.persona.principal, fields={"url": url, "events": ["turn.completed"]}
    )
    if moved_to:
        Webhook.objects.filter(pk=webhook.pk).update(url=moved_to)
    delivery = WebhookDelivery.objects.create(
        organization=world.persona.organization,
        webhook=webhook,
        turn_id=_new_turn(world).pk,
        event="turn.completed",
        payload={"id": "x"},
        due_at=timezone.now(),
    )
    deliver_due()
    delivery.refresh_from_db()
    delete_webhook(webhook)
    raise Invalid(delivery.error)


# -- Images in requests of the public API ----------------------------------------------------------


def send_image(world: World, url: str) -> str:
    image = {"messages.0.content.0": RemoteImage(url)}
    try:
        with unsaved_images(world.persona.principal, image, expired_at=None):
            return ""
    except AmberError as error:
        return said_of(error)


def send_image_redirected(world: World, url: str) -> str:
    return send_image(world, world.redirect(url))


SINKS: Final[dict[str, Sink]] = {
    **{f"create {kind}": partial(create, kind=kind) for kind in KINDS},
    **{f"update {kind}": partial(update, kind=kind) for kind in KINDS},
    **{f"refresh {kind}": partial(refresh, kind=kind) for kind in KINDS},
    **{f"call {kind}": partial(call, kind=kind) for kind in KINDS},
    "create with callback": create_with_callback,
    "create with server": create_with_server,
    "web_browse": browse,
    "text_to_speech": speak,
    "document": add_document,
    "document again": fetch_document_again,
    "git": import_repository,
    "webhook": add_webhook,
    "webhook moved": send_webhook,
    "image": send_image,
}
"""`url` is used as it is."""

REDIRECTED: Final[dict[str, Sink]] = {
    **{f"create {kind} redirected": partial(create_redirected, kind=kind) for kind in KINDS},
    **{f"call {kind} redirected": partial(call_redirected, kind=kind) for kind in KINDS},
    "web_browse redirected": browse_redirected,
    "text_to_speech redirected": speak_redirected,
    "document redirected": add_document_redirected,
    "webhook redirected": send_webhook_redirected,
    "image redirected": send_image_redirected,
}
"""`url` is where a server that may be called sends Amber."""
