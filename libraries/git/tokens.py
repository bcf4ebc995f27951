"""Encrypt the access token of a Git repository for its row. It is never shown and never logged."""

from amber.lib.secrets import decrypt, encrypt
from libraries.models import Repository


def encrypt_token(repository: Repository, token: str) -> None:
    """Set the row's encrypted token, without saving. An empty token means a public repository."""
    repository.token_sealed = (
        encrypt(
            token,
            table=_place(),
            pk=repository.pk,
            organization_id=repository.organization_id,
        )
        if token
        else ""
    )


def decrypt_token(repository: Repository) -> str:
    """Return the token; empty if there is none. Raises DecryptError, SecretKeyError."""
    if not repository.token_sealed:
        return ""
    return decrypt(
        repository.token_sealed,
        table=_place(),
        pk=repository.pk,
        organization_id=repository.organization_id,
    )


def _place() -> str:
    return f"{Repository._meta.db_table}.token"
