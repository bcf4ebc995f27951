"""Act for a throw-away organization, in which a measure keeps its rows."""

from collections.abc import Iterator
from contextlib import contextmanager

from accounts.models import Organization, User
from amber.lib.database.tenant import Tenant, across_tenants, as_tenant
from amber.lib.ids import new_id


@contextmanager
def new_organization() -> Iterator[tuple[Organization, User]]:
    """Act for a new organization with one member."""
    with across_tenants():
        slug = f"quality-{new_id().hex}"
        organization = Organization.objects.create(name=slug, slug=slug)
        user = User.objects.create_user(email=f"{slug}@example.org")
        organization.memberships.create(user=user, role="owner")
    with as_tenant(Tenant(organization.pk, user.pk)):
        yield organization, user
