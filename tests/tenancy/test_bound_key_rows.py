"""What a key that is limited to one assistant does with what is its own, and sees in lists.

Some of these answers are read outside of the request's transaction, or close its connection, so that each test
has rows of its own: those of tests/tenancy/test_bound_keys.py stand for all its tests.
"""

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from chats.tests.event_streams import read_parts
from chats.tests.rows import new_assistant
from libraries.models import File, Library
from providers.models import UsageRecord
from tests.fixtures.personas import api
from tests.tenancy.test_bound_keys import ALLOWED, OF_THE_ASSISTANT, bind, make_its_own
from tests.tenancy.test_tenancy import call, named, rows_of


@pytest.mark.parametrize(("route", "method"), ALLOWED, ids=named)
def test_what_it_may_it_does_with_its_own(alice, route, method):
    """An empty body is not enough for all of them, but they look at it."""
    ids = bind(rows_of(alice))
    key, secret = alice.new_key(assistant_id=ids["assistant_id"])
    make_its_own(key, ids)
    default_storage.save(File.objects.get(pk=ids["file_id"]).path, ContentFile(b"notes"))
    answer = call(api(key=secret), method, route.address(ids))
    answer.close()
    assert answer.status_code in (200, 201, 202, 204, 400, 409)


LISTS = [(r, m) for r, m in ALLOWED if not r.parameters and m == "get"]


@pytest.mark.parametrize(("route", "method"), LISTS, ids=named)
@pytest.mark.django_db(transaction=True)
def test_no_list_shows_what_is_its_users_alone(alice, route, method):
    """Of what is its assistant's, the library and the assistant itself."""
    ids = bind(rows_of(alice))
    client = api(key=alice.new_key(assistant_id=ids["assistant_id"])[1])
    other = new_assistant(alice, name="Other", library_id=ids["library_id"])
    for assistant_id in (ids["assistant_id"], other.pk):
        UsageRecord.objects.create(
            organization=alice.organization, user=alice.user, assistant_id=assistant_id, model="m"
        )
    private = Library.objects.create(
        organization=alice.organization,
        user=alice.user,
        name="Private",
        embedding_model=Library.objects.get().embedding_model,
    )
    queries: tuple[dict[str, str], ...] = (
        {"q": "secret"},
        {"q": "", "owner": "user"},
        {"owner": "api"},
        {},
    )
    answers = [client.get(route.address({}), query) for query in queries]
    shown = [(read_parts(a) if a.streaming else a.content).decode() for a in answers]
    hidden = {name: pk for name, pk in ids.items() if name not in OF_THE_ASSISTANT}
    hidden |= {"other": other.pk, "private": private.pk, "slug": other.slug}
    hidden.pop("organization_id")
    hidden.pop("model_name")
    hidden.pop("user_id")
    for name, value in hidden.items():
        assert not any(str(value) in text for text in shown), name
    if route.template == "api/v1/usage/":
        assert '"results":[]' in shown[-1]
