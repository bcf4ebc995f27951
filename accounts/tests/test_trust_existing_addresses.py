"""The migration that spares accounts from before the proof that new ones need."""

from importlib import import_module

from allauth.account.models import EmailAddress
from django.apps import apps
from django.utils import timezone

from accounts import services
from accounts.models import User

migration = import_module("accounts.migrations.0006_trust_existing_addresses")


def unproved(name: str, *, signed_in: bool = True) -> User:
    user = services.sign_up(f"{name}@example.com")
    User.objects.filter(pk=user.pk).update(last_login=timezone.now() if signed_in else None)
    EmailAddress.objects.filter(user=user).update(
        verified=False, email=f"{name.title()}@example.com"
    )
    return user


def proved() -> set[str]:
    return set(EmailAddress.objects.filter(verified=True).values_list("email", flat=True))


def test_who_signed_in_before_is_not_locked_out(db):
    eve = unproved("eve")
    unproved("squatter", signed_in=False)
    unproved("taken")
    EmailAddress.objects.create(user=eve, email="taken@example.com", verified=True)
    EmailAddress.objects.create(user=eve, email="second@example.com", verified=False)
    migration.trust_existing_addresses(apps, None)
    assert proved() == {"Eve@example.com", "taken@example.com"}
    migration.trust_existing_addresses(apps, None)
    assert proved() == {"Eve@example.com", "taken@example.com"}
