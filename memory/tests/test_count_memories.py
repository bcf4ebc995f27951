"""Operators' pages of memories: counts by person and organization, and not a word of them."""

import pytest
from django.test import Client

from memory.facts.facts import Fact, remember
from memory.models import OrganizationMemories, PersonMemories
from memory.owner import Owner
from tests.fixtures.personas import Persona

pytestmark = pytest.mark.django_db

PEOPLE = "/admin/memory/personmemories/"
ORGANIZATIONS = "/admin/memory/organizationmemories/"


def furnish(persona: Persona) -> None:
    owner = Owner.of(persona.principal)
    old, _ = remember(owner, Fact("secret of the owner"))
    remember(owner, Fact("newer secret"), replaces=old.pk)
    remember(owner, Fact("another secret"))
    remember(Owner(persona.organization.pk, guest_id="g1"), Fact("secret of a guest"))


@pytest.mark.parametrize("page", [PEOPLE, ORGANIZATIONS])
def test_they_show_counts_and_no_text(operator, alice, page):
    furnish(alice)
    shown = operator.get(page).content.decode()
    assert "secret" not in shown
    assert "Acme" in shown


def test_people_and_organizations_are_counted(operator, alice, bob):
    furnish(alice)
    rows = operator.get(PEOPLE).context["cl"].queryset
    mine = rows.get(user=alice.user, organization=alice.organization)
    assert (mine.valid_count, mine.superseded_count) == (2, 1)
    assert mine.last_change_at is not None
    nothing = rows.get(user=bob.user, organization=alice.organization)
    assert (nothing.valid_count, nothing.last_change_at) == (0, None)
    acme = operator.get(ORGANIZATIONS).context["cl"].queryset.get(pk=alice.organization.pk)
    assert (acme.valid_count, acme.superseded_count, acme.guest_count) == (3, 1, 1)


@pytest.mark.parametrize("page", [PEOPLE, ORGANIZATIONS])
def test_nothing_is_changed_there(operator, alice, page):
    model = PersonMemories if page == PEOPLE else OrganizationMemories
    row = model.objects.filter(**({"user": alice.user} if page == PEOPLE else {})).first()
    assert row is not None
    assert operator.get(f"{page}add/").status_code == 403
    assert operator.post(f"{page}{row.pk}/delete/").status_code == 403
    assert (
        operator.post(f"{page}{row.pk}/change/", {"name": "x", "role": "owner"}).status_code == 403
    )


def test_only_operators_see_them(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.get(PEOPLE).status_code in (302, 403)
