"""Open the egress policy for a service that the operator names by URL.

Search engines, speech and rerankers may stand in a private network, so the host and port of that
URL are let through, and nothing else: if such a service redirects, the installation's rules hold.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from amber.lib.egress import EgressPolicy, installation_policy


def policy_trusting(url: str) -> EgressPolicy:
    """Return the installation's policy, with the host and port of this URL added."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    opened = EgressPolicy.allowing([f"{host}:{port}"]).allowed
    base = installation_policy()
    return replace(base, allowed=base.allowed | opened)
