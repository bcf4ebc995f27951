from accounts.sign_in.credentials import credential_of, still_good
from assistants.models import Assistant
from assistants.services import dismiss_guests
from tests.fixtures.personas import visit


def test_a_guest_is_as_welcome_as_the_assistant_says(guest, django_assert_num_queries):
    here = credential_of(guest.principal)
    assert here is not None
    with django_assert_num_queries(1):
        assert still_good({here}) == {here}
    dismiss_guests(guest.assistant)
    newer = credential_of(visit(guest.assistant).principal)
    assert newer is not None
    assert still_good({here, newer}) == {newer}
    Assistant.objects.update(public=False)
    assert still_good({here, newer}) == set()
