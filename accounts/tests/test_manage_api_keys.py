import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts import registry
from accounts.models import ApiKey
from amber.lib.secrets import is_well_formed, sha256_hex
from tests.fixtures.personas import api

ALL = "/api/v1/api-keys/"
ME = "/api/v1/me/"


def one(key: ApiKey | uuid.UUID) -> str:
    return f"{ALL}{getattr(key, 'pk', key)}/"


def rotate(key: ApiKey | uuid.UUID) -> str:
    return f"{one(key)}rotate/"


def test_shows_the_key_once_and_keeps_its_hash(alice):
    answer = api(alice).post(ALL, {"name": "ci"})
    assert answer.status_code == 201
    secret = answer.json()["key"]
    assert is_well_formed(secret)
    kept = ApiKey.objects.get()
    assert kept.sha256 == sha256_hex(secret)
    assert (kept.user, kept.organization) == (alice.user, alice.organization)
    assert answer.json()["prefix"] == secret[:13]
    for path in (ALL, one(kept)):
        shown = api(alice).get(path).content.decode()
        assert kept.prefix in shown
        assert secret not in shown
        assert kept.sha256 not in shown
    assert api(key=secret).get(ME).status_code == 200


def test_keeps_scopes_origins_and_expiry(alice):
    tomorrow = timezone.now() + timedelta(days=1)
    body = {
        "name": "page",
        "scopes": ["public", "read", "public"],
        "origins": ["HTTPS://Example.com:443/", "http://localhost:5173", "https://example.com"],
        "expires_at": tomorrow.isoformat(),
    }
    answer = api(alice).post(ALL, body).json()
    assert answer["scopes"] == ["public", "read"]
    assert answer["origins"] == ["https://example.com", "http://localhost:5173"]
    assert parse_datetime(answer["expires_at"]) == tomorrow


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("scopes", ["root"]),
        ("scopes", "read"),
        ("origins", ["example.com"]),
        ("origins", ["https://example.com/page"]),
        ("origins", ["https://u@example.com"]),
        ("origins", ["https://example.com:99999"]),
        ("origins", ["javascript:alert(1)"]),
        ("origins", ["https://*.a.example"]),
        ("origins", ["https://a.example"] * 21),
        ("expires_at", "2001-01-01T00:00:00Z"),
        ("expires_at", "soon"),
        ("assistant_id", "x"),
    ],
)
def test_a_bad_body_is_400(alice, field, value):
    answer = api(alice).post(ALL, {"name": "x", field: value})
    assert answer.status_code == 400
    assert any(name.split(".")[0] == field for name in answer.json()["error"]["fields"])
    assert not ApiKey.objects.exists()


def test_is_limited_to_an_assistant_its_creator_sees(alice, mallory, monkeypatch):
    hers = uuid.uuid4()
    monkeypatch.setattr(
        registry.sees_assistant,
        "_function",
        lambda principal, assistant_id: (
            assistant_id == hers and principal.organization_id == alice.organization.pk
        ),
    )
    answer = api(alice).post(ALL, {"name": "x", "assistant_id": str(hers)})
    assert answer.status_code == 201
    assert answer.json()["assistant_id"] == str(hers)
    foreign = api(mallory).post(ALL, {"name": "x", "assistant_id": str(hers)})
    absent = api(mallory).post(ALL, {"name": "x", "assistant_id": str(uuid.uuid4())})
    assert foreign.status_code == absent.status_code == 404
    assert ApiKey.objects.count() == 1


def test_server_chosen_fields_are_not_taken_from_the_body(alice, mallory):
    body = {
        "name": "x",
        "id": str(uuid.uuid4()),
        "user_id": str(mallory.user.pk),
        "organization": str(mallory.organization.pk),
        "sha256": "0" * 64,
        "revoked_at": timezone.now().isoformat(),
    }
    made = ApiKey.objects.get(pk=api(alice).post(ALL, body).json()["id"])
    assert (made.user, made.organization) == (alice.user, alice.organization)
    assert str(made.pk) != body["id"]
    assert made.sha256 != body["sha256"]
    assert made.revoked_at is None


def test_members_see_their_own_keys_and_admins_all(alice, bob, carol):
    for persona in (alice, bob):
        persona.new_key(name=persona.user.name)
    assert [row["name"] for row in api(bob).get(ALL).json()["results"]] == ["Bob"]
    assert [row["name"] for row in api(carol).get(ALL).json()["results"]] == ["Bob", "Alice"]
    alices = ApiKey.objects.get(user=alice.user)
    assert api(bob).get(one(alices)).status_code == 404
    assert api(bob).delete(one(alices)).status_code == 404


def test_its_user_changes_it(alice):
    key, _ = alice.new_key()
    answer = api(alice).patch(one(key), {"name": "new", "scopes": ["read"], "user_id": "x"})
    assert answer.status_code == 200
    key.refresh_from_db()
    assert (key.name, key.scopes) == ("new", ["read"])
    assert api(alice).patch(one(key), {"expires_at": "2001-01-01T00:00:00Z"}).status_code == 400


def test_admins_revoke_keys_of_others_but_do_not_get_them(carol, bob):
    key, secret = bob.new_key()
    assert api(carol).patch(one(key), {"origins": []}).status_code == 403
    assert api(carol).post(rotate(key), {}).status_code == 403
    assert api(carol).delete(one(key)).status_code == 204
    assert api(key=secret).get(ME).status_code == 401


def test_revoked_is_for_good(alice):
    key, secret = alice.new_key()
    assert api(alice).delete(one(key)).status_code == 204
    assert api(key=secret).get(ME).status_code == 401
    key.refresh_from_db()
    first = key.revoked_at
    assert api(alice).delete(one(key)).status_code == 204
    key.refresh_from_db()
    assert key.revoked_at == first
    assert api(alice).patch(one(key), {"name": "x"}).status_code == 409
    assert api(alice).post(rotate(key), {}).status_code == 409


def test_rotates_with_an_overlap(alice):
    key, old = alice.new_key(name="ci", scopes=["read"], origins=["https://a.example"])
    answer = api(alice).post(rotate(key), {"overlap_hours": 2})
    assert answer.status_code == 201
    made = answer.json()
    assert made["rotated_from_id"] == str(key.pk)
    assert (made["name"], made["scopes"]) == ("ci", ["read"])
    assert made["origins"] == ["https://a.example"]
    assert made["expires_at"] is None
    key.refresh_from_db()
    assert key.expires_at is not None
    left = key.expires_at - timezone.now()
    assert timedelta(hours=1.9) < left <= timedelta(hours=2)
    for secret in (old, made["key"]):
        assert api(key=secret).get(ME).status_code == 200


def test_rotates_at_once(alice):
    key, old = alice.new_key()
    new = api(alice).post(rotate(key), {"overlap_hours": 0}).json()["key"]
    assert api(key=old).get(ME).status_code == 401
    assert api(key=new).get(ME).status_code == 200


def test_rotation_never_prolongs_the_old_key_and_keeps_the_lifetime(alice):
    end = timezone.now() + timedelta(hours=1)
    key, _ = alice.new_key(expires_at=end)
    made = api(alice).post(rotate(key), {"overlap_hours": 48}).json()
    key.refresh_from_db()
    assert key.expires_at == end
    expires_at = parse_datetime(made["expires_at"])
    assert expires_at is not None
    lifetime = expires_at - timezone.now()
    assert timedelta(minutes=59) < lifetime <= timedelta(hours=1)


def test_a_key_until_the_end_of_the_calendar_is_rotated(alice):
    end = datetime.max.replace(tzinfo=UTC)
    key, _ = alice.new_key(expires_at=end)
    answer = api(alice).post(rotate(key), {})
    assert answer.status_code == 201
    assert parse_datetime(answer.json()["expires_at"]) == end


@pytest.mark.parametrize("hours", [-1, 100_000, "many", None])
def test_a_bad_overlap_is_400(alice, hours):
    key, _ = alice.new_key()
    answer = api(alice).post(rotate(key), {"overlap_hours": hours})
    assert answer.status_code == 400
    assert "overlap_hours" in answer.json()["error"]["fields"]


def test_another_tenant_finds_nothing(alice, mallory):
    key, _ = alice.new_key()
    client = api(mallory)
    assert client.get(ALL).json()["results"] == []
    assert client.get(one(key)).status_code == 404
    assert client.patch(one(key), {"name": "x"}).status_code == 404
    assert client.post(rotate(key), {}).status_code == 404
    assert client.delete(one(key)).status_code == 404
    key.refresh_from_db()
    assert (key.name, key.revoked_at) == ("test", None)


def test_keys_may_not_manage_keys(alice):
    key, secret = alice.new_key()
    client = api(key=secret)
    assert client.get(ALL).status_code == 403
    assert client.post(ALL, {"name": "x"}).status_code == 403
    assert client.get(one(key)).status_code == 403
    assert client.patch(one(key), {"name": "x"}).status_code == 403
    assert client.post(rotate(key), {}).status_code == 403
    assert client.delete(one(key)).status_code == 403
    assert ApiKey.objects.count() == 1


def test_anonymous_is_401(db):
    absent = uuid.uuid4()
    assert api().get(ALL).status_code == 401
    assert api().post(ALL, {}).status_code == 401
    assert api().get(one(absent)).status_code == 401
    assert api().patch(one(absent), {}).status_code == 401
    assert api().delete(one(absent)).status_code == 401
    assert api().post(rotate(absent), {}).status_code == 401
