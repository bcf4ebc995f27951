import pytest

from accounts import services
from accounts.models import User
from tests.fixtures.personas import api

ME = "/api/v1/me/"
ACTIVE = "/api/v1/me/organization/"


def test_tells_who_i_am_and_where(alice):
    answer = api(alice).get(ME)
    assert answer.status_code == 200
    assert answer.json()["email"] == "alice@example.com"
    assert answer.json()["organization"]["id"] == str(alice.organization.pk)
    assert answer.json()["organization"]["role"] == "owner"
    assert answer.json()["api_key"] is None
    assert answer.json()["is_operator"] is False


def test_tells_a_key_what_it_is_and_never_its_hash(alice):
    key, secret = alice.new_key(name="ci")
    answer = api(key=secret).get(ME)
    assert answer.json()["api_key"]["name"] == "ci"
    assert answer.json()["organization"]["id"] == str(alice.organization.pk)
    assert key.sha256 not in answer.content.decode()
    assert "csrftoken" not in answer.cookies


def test_hands_a_session_the_csrf_cookie(alice):
    assert "csrftoken" in api(alice).get(ME).cookies


@pytest.mark.parametrize(("method", "path"), [("get", ME), ("patch", ME), ("put", ACTIVE)])
def test_anonymous_is_401(db, method, path):
    answer = getattr(api(), method)(path, {})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "not_authenticated"
    assert answer["WWW-Authenticate"] == 'Bearer realm="amber"'


def test_changes_name_and_time_zone_only(alice):
    answer = api(alice).patch(
        ME,
        {"name": " Alice A. ", "time_zone": "Asia/Shanghai", "email": "x@y.z", "is_operator": True},
    )
    assert answer.status_code == 200
    assert answer.json()["time_zone"] == "Asia/Shanghai"
    user = User.objects.get(pk=alice.user.pk)
    assert (user.name, user.time_zone) == ("Alice A.", "Asia/Shanghai")
    assert (user.email, user.is_staff) == ("alice@example.com", False)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "", "UTC ; DROP", 7])
def test_an_unknown_time_zone_is_400(alice, zone):
    answer = api(alice).patch(ME, {"time_zone": zone})
    assert answer.status_code == 400
    assert "time_zone" in answer.json()["error"]["fields"]
    assert User.objects.get(pk=alice.user.pk).time_zone == "UTC"


def test_a_key_may_not_change_its_user(alice):
    _, secret = alice.new_key()
    assert api(key=secret).patch(ME, {"name": "x"}).status_code == 403
    body = {"organization_id": str(alice.organization.pk)}
    assert api(key=secret).put(ACTIVE, body).status_code == 403


def test_a_new_session_acts_in_the_personal_organization(alice):
    client = api()
    client.force_login(alice.user)
    assert client.get(ME).json()["organization"]["personal"] is True


def test_switches_the_organization_of_this_session(alice):
    client = api(alice)
    other = services.create_organization(alice.user, name="Second")
    answer = client.put(ACTIVE, {"organization_id": str(other.pk)})
    assert answer.status_code == 200
    assert answer.json()["organization"]["name"] == "Second"
    assert client.get(ME).json()["organization"]["name"] == "Second"
    assert api(alice).get(ME).json()["organization"]["name"] == "Acme"


def test_switching_to_a_foreign_organization_is_404(alice, mallory):
    client = api(mallory)
    answer = client.put(ACTIVE, {"organization_id": str(alice.organization.pk)})
    assert answer.status_code == 404
    assert client.get(ME).json()["organization"]["id"] == str(mallory.organization.pk)


@pytest.mark.parametrize("body", [{}, {"organization_id": "x"}, {"organization_id": None}])
def test_switching_without_an_id_is_400(alice, body):
    answer = api(alice).put(ACTIVE, body)
    assert answer.status_code == 400
    assert "organization_id" in answer.json()["error"]["fields"]


def test_whoever_left_the_active_organization_is_back_in_the_personal_one(bob, alice):
    client = api(bob)
    membership = bob.organization.memberships.get(user=bob.user)
    services.remove_member(membership, by=alice.principal)
    assert client.get(ME).json()["organization"]["personal"] is True
