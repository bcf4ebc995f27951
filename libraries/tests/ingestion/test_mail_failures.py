"""Test that whoever added documents or a Git repository is mailed what of it failed for good."""

import pytest

from accounts.mail.outbox import open_details
from accounts.models import Membership, OutgoingMail
from amber.lib.database.lease import RUNNING
from libraries.git import importing
from libraries.ingestion import endings
from libraries.models import Document, Repository
from libraries.tests.ledger import new_document

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailing(settings):
    settings.AMBER_SENDS_MAIL = True


def running_document(library, user, name):
    document = new_document(library)
    Document.objects.filter(pk=document.pk).update(status=RUNNING, user=user, name=name)
    document.refresh_from_db()
    return document


def test_documents_that_fail_are_told_to_who_added_them_in_one_mail(bob, library):
    first, second = (running_document(library, bob.user, name) for name in ("a.pdf", "b.pdf"))
    endings.fail(first, "Damaged.")
    endings.fail(first, "Damaged.")
    endings.fail(second, "Empty.")
    items = [item for mail in OutgoingMail.objects.all() for item in open_details(mail)["items"]]
    assert items == [
        {"name": "a.pdf", "error": "Damaged."},
        {"name": "b.pdf", "error": "Empty."},
    ], "the second end of the first document was none"
    mail = OutgoingMail.objects.latest("created_at")
    assert (mail.user, mail.address) == (bob.user, bob.user.email)
    assert open_details(mail)["library_id"] == str(library.pk)


def test_nobody_is_told_who_left_or_wants_no_notices(alice, bob, library):
    left = running_document(library, bob.user, "a.pdf")
    Membership.objects.filter(user=bob.user).delete()
    endings.fail(left, "Damaged.")
    alice.user.mail_notices = False
    alice.user.save()
    endings.fail(running_document(library, alice.user, "b.pdf"), "Damaged.")
    endings.fail(running_document(library, None, "c.pdf"), "Damaged.")
    assert not OutgoingMail.objects.exists()


def test_a_repository_that_fails_is_told_once(bob, library, settings):
    repository = Repository.objects.create(
        organization=library.organization,
        library=library,
        user=bob.user,
        git_url="https://git.example/x",
        status=RUNNING,
        fence=1,
        attempt=settings.AMBER_MAX_ATTEMPTS,
    )
    for _ in range(2):
        importing.end_lost(repository)
    mail = OutgoingMail.objects.get()
    details = open_details(mail)
    assert (mail.kind, details["git_url"]) == ("failed_repository", "https://git.example/x")
    assert details["error"] == importing.WORKER_LOST
