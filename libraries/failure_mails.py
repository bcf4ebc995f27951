"""Mail whoever added a document, or a Git repository, that it failed for good.

Part of the transaction in which it fails. Documents of one library that fail within a quarter of an
hour are told in one mail. Nobody is told who has left the organization.
"""

from uuid import UUID

from accounts.mail.outbox import gather_mail, member_of, post_mail
from accounts.models import MailKind
from libraries.models import Document, Library, Repository


def tell_of_document(document: Document, why: str) -> None:
    """Without a mail server no query, else five."""
    to = member_of(document.organization_id, document.user_id)
    if to is None:
        return
    gather_mail(
        MailKind.FAILED_DOCUMENTS,
        to,
        cause=f"documents:{document.library_id}",
        details=_about(document.library_id),
        item={"name": document.name, "error": why},
        organization_id=document.organization_id,
    )


def tell_of_repository(repository: Repository, why: str) -> None:
    to = member_of(repository.organization_id, repository.user_id)
    if to is None:
        return
    post_mail(
        MailKind.FAILED_REPOSITORY,
        to,
        cause=f"repository:{repository.pk}:{repository.fence}",
        details={**_about(repository.library_id), "git_url": repository.git_url, "error": why},
        organization_id=repository.organization_id,
    )


def _about(library_id: UUID) -> dict[str, str]:
    name = Library.objects.filter(pk=library_id).values_list("name", flat=True).first() or ""
    return {"library": name, "library_id": str(library_id)}
