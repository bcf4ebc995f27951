"""No list shows what another tenant has. See tests/tenancy/test_tenancy.py: here the rows are committed."""

import pytest

from chats.tests.event_streams import read_parts
from tests.fixtures.personas import api
from tests.tenancy.test_tenancy import WITHOUT_IDS, named, rows_of


@pytest.mark.parametrize(
    "route",
    [route for route in WITHOUT_IDS if "get" in route.methods and not route.is_endless],
    ids=named,
)
@pytest.mark.django_db(transaction=True)
def test_no_list_shows_another_tenants_rows(alice, mallory, route):
    """What streams reads with connections of its own, so the rows must be there for all."""
    ids = rows_of(alice)
    answer = api(mallory).get(route.address({}), {"q": "secret"})
    assert answer.status_code == 200
    shown = (read_parts(answer) if answer.streaming else answer.content).decode()
    assert not [name for name, pk in ids.items() if str(pk) in shown]
