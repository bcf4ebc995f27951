"""The people of a run and the rows they have, made in the database of the platform that is tried.

A *party* is `credentials` by the names of OpenAPI's security schemes, and `values`: what stands in
the place of generated values of that name, so that requests find rows that are there.
"""

import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from accounts.models import Invitation, Role
from amber.lib.secrets import sha256_hex
from assistants.models import Assistant
from libraries.models import Document, DocumentStatus, File
from providers.models import Budget
from public_api.models import DeliveryStatus, WebhookDelivery
from tests.fixtures.personas import Guest, Persona, api, found, join, visit
from tests.tenancy.test_guest_tenancy import rows_of_guest
from tests.tenancy.test_tenancy import rows_of

Party = dict[str, dict[str, Any]]
AMPLE_TOKENS = 10**10


def cast_for(operations: list[str]) -> dict[str, Any]:
    """`main`, `rival` and `guest`; by operation those that are `apart`, each a party of its own."""
    return {
        "main": member("main"),
        "rival": member("rival"),
        "guest": guest("guest"),
        "apart": {
            operation: guest(f"apart{n}") if "/public/" in operation else member(f"apart{n}")
            for n, operation in enumerate(operations)
        },
    }


def member(name: str) -> Party:
    """The owner of an organization, with a session and a key."""
    persona = found(name, f"{name} Ltd")
    colleague = join(f"{name}-colleague", persona.organization, Role.MEMBER)
    rows: dict[str, Any] = rows_of(persona)
    store(rows["file_id"])
    rows["member_id"] = colleague.user.memberships.get(organization=persona.organization).pk
    Budget.objects.filter(pk=rows["budget_id"]).update(limit=AMPLE_TOKENS)
    Document.objects.filter(pk=rows["document_id"]).update(status=DocumentStatus.FAILED)
    WebhookDelivery.objects.filter(pk=rows["delivery_id"]).update(status=DeliveryStatus.FAILED)
    session = str(api(persona).cookies["sessionid"].value)
    return {
        "credentials": {"session": session, "apiKey": persona.new_key()[1]},
        "values": {
            **{field: str(pk) for field, pk in rows.items()},
            "own_email": persona.user.email,
            "invitation_token": invited(persona, by=f"{name}-host"),
            "guest_token": visitor_of(persona).token,
        },
    }


def guest(name: str) -> Party:
    """A visitor of a public assistant."""
    visitor = visitor_of(found(name, f"{name} Ltd"))
    rows = rows_of_guest(visitor)
    store(rows["file_id"])
    values = {field: str(pk) for field, pk in rows.items()}
    return {"credentials": {"guestToken": visitor.token}, "values": values}


def store(file_id: UUID) -> None:
    default_storage.save(File.objects.get(pk=file_id).path, ContentFile(b"A"))


def visitor_of(host: Persona) -> Guest:
    mine = {"organization": host.organization, "user": host.user}
    open_to_all = {"slug": "open", "public": True, "guest_files": True}
    return visit(Assistant.objects.create(**mine, **open_to_all, name="Open"))


def invited(persona: Persona, *, by: str) -> str:
    """The token of an invitation into somebody's organization."""
    token = secrets.token_urlsafe(32)
    host = found(by, f"{by} Ltd")
    Invitation.objects.create(
        organization=host.organization,
        invited_by=host.user,
        email=persona.user.email,
        token_sha256=sha256_hex(token),
        expires_at=timezone.now() + timedelta(days=1),
    )
    return token
