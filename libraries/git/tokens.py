"""The access token of a Git repository, sealed for its row. Never shown, never logged."""

from amber.lib.secrets import seal, unseal
from libraries.models import Repository


def seal_token(repository: Repository, token: str) -> None:
    """Set the row's sealed token, without saving. Empty: the repository is public."""
    repository.token_sealed = (
        seal(
            token,
            table=_place(),
            pk=repository.pk,
            organization_id=repository.organization_id,
        )
        if token
        else ""
    )


def unseal_token(repository: Repository) -> str:
    """Empty where there is none. Raises UnsealError, SecretKeyError."""
    if not repository.token_sealed:
        return ""
    return unseal(
        repository.token_sealed,
        table=_place(),
        pk=repository.pk,
        organization_id=repository.organization_id,
    )


def _place() -> str:
    return f"{Repository._meta.db_table}.token"
