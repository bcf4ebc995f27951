"""Judge what operators have written about an identity provider. Asks nobody whether it is there."""

from typing import Any


def has_address(settings: Any) -> bool:
    """Return whether settings of OpenID Connect, which may be any JSON, name the provider's address."""
    address = settings.get("server_url") if isinstance(settings, dict) else None
    return isinstance(address, str) and address.startswith(("https://", "http://"))
