"""What people think of answers is exported with their chats, and erased with them."""

import pytest

from chats.models import ChatMessage, Feedback
from chats.tests.rows import new_chat, say
from operations.privacy.chat_deletion import remove_chat
from operations.privacy.person_export import person_document

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(bob):
    """One whose answer bob has judged."""
    chat = new_chat(bob)
    say(chat, "Hi")
    answer = say(chat, "Hello", role="assistant")
    given = {"organization": bob.organization, "chat": chat, "message": answer, "user": bob.user}
    Feedback.objects.create(**given, value="up", comment="Thanks")
    return chat


def test_feedback_is_in_the_persons_export(bob, chat):
    document = person_document(bob.principal, bob.user, address="")
    (exported,) = document["chats"]
    said = [message["feedback"] for message in exported["messages"]]
    assert [each and each["comment"] for each in said] == [None, "Thanks"]


def test_feedback_goes_when_its_chat_is_erased(chat):
    assert remove_chat(chat.pk)
    assert not Feedback.objects.exists()
    assert not ChatMessage.objects.exists()
