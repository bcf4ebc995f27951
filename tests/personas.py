"""The people of the tests, as pytest fixtures (a plugin that the root conftest.py loads).

alice owns the organization Acme, carol is its admin, bob a member; mallory owns Rival, another
tenant. Each has a personal organization besides. `guest` is a visitor of alice's public assistant,
`operator` the browser of whoever runs the installation. `api(persona)` is a JSON client signed in by
session, `api(key="…")` one with a key or a guest's token, `api()` an anonymous one.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from rest_framework.test import APIClient

from accounts import group_services, key_services, services
from accounts.models import ApiKey, Group, Membership, Organization, Role, User
from accounts.principal import Actor, ActorKind, Principal
from accounts.registry import public_assistant
from accounts.sign_in.authentication import ACTIVE_ORGANIZATION
from accounts.sign_in.guest_tokens import new_guest_token, read_guest_token
from assistants.models import Assistant

OPERATOR = Actor(ActorKind.OPERATOR)
"""Who does what is done on the server itself."""


@dataclass(frozen=True, slots=True)
class Persona:
    """A user who acts in an organization."""

    user: User
    organization: Organization
    role: str

    @property
    def principal(self) -> Principal:
        return Principal(organization_id=self.organization.pk, user=self.user, role=self.role)

    @property
    def actor(self) -> Actor:
        return self.principal.actor

    def new_key(self, **fields: Any) -> tuple[ApiKey, str]:
        """A key of theirs in this organization, and its text."""
        fields.setdefault("name", "test")
        return key_services.create_api_key(
            self.user, organization=self.organization, by=self.actor, **fields
        )


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody who talks to a public assistant, and whom nobody knows."""

    assistant: Assistant
    token: str

    @property
    def principal(self) -> Principal:
        told = read_guest_token(self.token)
        assert told is not None
        return Principal(
            organization_id=told.organization_id,
            user=None,
            role="guest",
            guest_id=told.guest_id,
            assistant_id=told.assistant_id,
            guest_epoch=told.epoch,
        )


def visit(assistant: Assistant) -> Guest:
    """A new guest of this assistant, which must be public."""
    taking = public_assistant(assistant.pk)
    assert taking is not None
    return Guest(assistant, new_guest_token(taking)[1])


def api(persona: Persona | None = None, *, key: str = "", check_csrf: bool = False) -> APIClient:
    """Speaks JSON. A key wins over the session, as in the authenticator."""
    client = APIClient(enforce_csrf_checks=check_csrf)
    client.default_format = "json"
    if key:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    elif persona is not None:
        sign_in(client, persona)
    return client


def sign_in(client: APIClient, persona: Persona) -> None:
    """As `force_login`, in this organization: four statements instead of nineteen."""
    session = SessionStore()
    session[SESSION_KEY] = str(persona.user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = persona.user.get_session_auth_hash()
    session[ACTIVE_ORGANIZATION] = str(persona.organization.pk)
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = str(session.session_key)


def join(name: str, organization: Organization, role: Role = Role.MEMBER) -> Persona:
    """A new user in an organization that exists."""
    user = services.sign_up(f"{name}@example.com", name=name.title())
    services.join_organization(user, organization=organization, role=role, by=OPERATOR)
    return Persona(user, organization, role)


def new_group(name: str, *people: Persona) -> Group:
    """A group of the first one's organization that they all are in."""
    group = group_services.create_group(people[0].organization.pk, name=name, by=OPERATOR)
    for each in people:
        membership = Membership.objects.get(organization=each.organization, user=each.user)
        group_services.add_group_member(group, membership=membership, by=OPERATOR)
    return group


def found(name: str, organization_name: str) -> Persona:
    """A new user who owns a new organization."""
    user = services.sign_up(f"{name}@example.com", name=name.title())
    organization = services.create_organization(user, name=organization_name)
    return Persona(user, organization, Role.OWNER)


@pytest.fixture
def alice(db: None) -> Persona:
    return found("alice", "Acme")


@pytest.fixture
def carol(alice: Persona) -> Persona:
    return join("carol", alice.organization, Role.ADMIN)


@pytest.fixture
def bob(alice: Persona) -> Persona:
    return join("bob", alice.organization)


@pytest.fixture
def mallory(db: None) -> Persona:
    return found("mallory", "Rival")


@pytest.fixture
def operator(db: None) -> Client:
    """A browser that is signed in to the admin."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com"))
    return client


@pytest.fixture
def guest(alice: Persona) -> Guest:
    assistant = Assistant.objects.create(
        organization=alice.organization, user=alice.user, name="Open", slug="open", public=True
    )
    return visit(assistant)
