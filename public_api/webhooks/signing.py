"""Sign what Amber sends, to prove that it is from Amber, and new.

    Amber-Signature: t=<seconds since 1970>,v1=<hex>[,v1=<hex>]

`v1` is the HMAC-SHA256 (RFC 2104) of `<t>.<body>` with the webhook's secret; while a secret is
being changed there is one of each. Receivers refuse what is minutes old. Pure; the form is
Stripe's, https://docs.stripe.com/webhooks#verify-manually.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

HEADER: Final = "Amber-Signature"
MARK: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> str:
    return MARK + secrets.token_urlsafe(SECRET_BYTES)


def signature(keys: Sequence[str], body: bytes, *, at: int) -> str:
    """Return the header's value; `at` in seconds since 1970."""
    signed = b"%d.%s" % (at, body)
    marks = (hmac.new(key.encode(), signed, hashlib.sha256).hexdigest() for key in keys)
    return ",".join([f"t={at}", *(f"v1={mark}" for mark in marks)])
