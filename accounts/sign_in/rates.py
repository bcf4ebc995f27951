"""Limit how often each caller may ask: the rates of the settings, and who counts as one.

    spend_request           any principal, for each request that may change something
    spend_admin_sign_in     an attempt at the admin's login, by address and by email
    spend_guest_token       a new guest, by address
    spend_mail_to_stranger  a mail to an address that somebody names, by who names it

Without Redis requests of known people go on, uncounted: budgets, kept in Postgres, still hold.
Guesses of passwords and new guests do not: taking Redis away must not make them free.
"""

import time
from typing import Final
from uuid import UUID

import structlog
from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest
from redis.exceptions import RedisError

from accounts.principal import Principal
from amber.lib.rates import Rate, take

logger = structlog.get_logger(__name__)

MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400
GUESSING_SECONDS: Final = 300

AWAY_SECONDS: Final = 5.0
"""After Redis failed it is not asked for so long: each request would wait for its timeout."""

_away_until = 0.0


def spend_request(principal: Principal) -> None:
    """Count a request against its caller, then against the organization. Raises RateLimited."""
    global _away_until
    if time.monotonic() < _away_until:
        return
    organization_id = principal.organization_id
    try:
        take(_own_rate(principal), principal.label, organization_id=organization_id)
        whole = Rate("organization", settings.AMBER_RATE_ORGANIZATION, MINUTE)
        take(whole, "all", organization_id=organization_id)
    except (RedisError, OSError) as exc:
        _away_until = time.monotonic() + AWAY_SECONDS
        logger.warning("rates_not_counted", reason=type(exc).__name__)


def spend_admin_sign_in(request: HttpRequest, email: str) -> None:
    """Count an attempt to sign in to the admin. Raises RateLimited, and what redis-py raises."""
    rate = Rate("admin-sign-in", settings.AMBER_RATE_ADMIN_SIGN_IN, GUESSING_SECONDS)
    take(rate, f"address {_address_of(request)}")
    take(rate, f"email {email.strip().lower()}")


def spend_guest_token(request: HttpRequest) -> None:
    """Count a new guest. Raises RateLimited, and what redis-py raises."""
    rate = Rate("guest-token", settings.AMBER_RATE_GUEST_TOKEN, HOUR)
    take(rate, f"address {_address_of(request)}")


def spend_mail_to_stranger(user_id: UUID) -> None:
    """Count a mail to somebody who may never have heard of this installation: an invitation, or the proof
    of a further address. Raises RateLimited, and what redis-py raises."""
    take(Rate("invitation-mail", settings.AMBER_RATE_INVITATION_MAIL, DAY), str(user_id))


def _own_rate(principal: Principal) -> Rate:
    if principal.guest_id is not None:
        return Rate("guest", settings.AMBER_RATE_GUEST, MINUTE)
    if principal.key is not None:
        return Rate("key", settings.AMBER_RATE_KEY, MINUTE)
    return Rate("user", settings.AMBER_RATE_USER, MINUTE)


def _address_of(request: HttpRequest) -> str:
    """Return the client's address, behind AMBER_TRUSTED_PROXIES proxies."""
    address: str = get_adapter(request).get_client_ip(request)
    return address
