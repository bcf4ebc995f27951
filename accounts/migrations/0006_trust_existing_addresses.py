"""Addresses of accounts from before count as proved: whoever has signed in already is not locked out by
the proof that is wanted of new ones. An account that nobody ever signed in to must still be proved."""

from typing import Any

from django.db import migrations
from django.db.models import Exists, F, OuterRef


def trust_existing_addresses(apps: Any, schema_editor: Any) -> None:
    addresses = apps.get_model("account", "EmailAddress").objects
    taken = addresses.filter(verified=True, email__iexact=OuterRef("email"))
    addresses.filter(
        ~Exists(taken),
        verified=False,
        email__iexact=F("user__email"),
        user__last_login__isnull=False,
    ).update(verified=True)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_organization_deleted_at"),
        ("account", "0009_emailaddress_unique_primary_email"),
    ]
    operations = [
        migrations.RunPython(trust_existing_addresses, migrations.RunPython.noop, elidable=True)
    ]
