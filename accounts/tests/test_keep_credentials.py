from datetime import timedelta

import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.utils import timezone

from accounts.key_services import revoke_api_key
from accounts.models import ApiKey, Membership, User
from accounts.principal import BrowserSession, Principal
from accounts.sign_in.authentication import authenticate
from accounts.sign_in.credentials import Credential, credential_of, still_good
from tests.fixtures.personas import OPERATOR, api


@pytest.fixture
def key(alice):
    return alice.new_key()[0]


@pytest.fixture
def by_key(alice, key):
    return Credential(alice.organization.pk, alice.user.pk, key.pk)


@pytest.fixture
def by_session(alice):
    return Credential(alice.organization.pk, alice.user.pk)


def test_is_the_principals(alice, key, by_key, by_session):
    keyed = Principal(alice.organization.pk, alice.user, key=key)
    assert credential_of(keyed) == by_key
    assert credential_of(alice.principal) == by_session


def test_good_ones_stay_good(by_key, by_session, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert still_good({by_key, by_session}) == {by_key, by_session}
    with django_assert_num_queries(0):
        assert still_good(set()) == set()


def test_a_revoked_key_is_none_and_a_session_stays(key, by_key, by_session):
    revoke_api_key(key, by=OPERATOR)
    assert still_good({by_key, by_session}) == {by_session}


def test_an_expired_key_is_none(by_key):
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert still_good({by_key}) == set()


def test_a_deactivated_user_is_nobody(by_key, by_session):
    User.objects.update(is_active=False, is_staff=True)
    assert still_good({by_key, by_session}) == set()


def test_who_left_the_organization_is_nobody_there(alice, by_key, by_session):
    personal = Membership.objects.exclude(organization=alice.organization).get(user=alice.user)
    elsewhere = Credential(personal.organization_id, alice.user.pk)
    Membership.objects.filter(organization=alice.organization).delete()
    assert still_good({by_key, by_session, elsewhere}) == {elsewhere}


def test_operators_are_let_in_everywhere_but_not_their_keys(mallory, by_key, alice):
    User.objects.filter(pk=mallory.user.pk).update(is_staff=True)
    key, _ = mallory.new_key()
    signed_in = Credential(alice.organization.pk, mallory.user.pk)
    with_key = Credential(alice.organization.pk, mallory.user.pk, key.pk)
    assert still_good({signed_in, with_key}) == {signed_in}


def signed_in(persona, client):
    session = BrowserSession(client.session.session_key, client.session[HASH_SESSION_KEY])
    return Credential(persona.organization.pk, persona.user.pk, session=session)


def test_a_session_is_looked_at_by_its_row(alice, by_session, django_assert_num_queries):
    here, elsewhere = api(alice), api(alice)
    both = {signed_in(alice, here), signed_in(alice, elsewhere)}
    with django_assert_num_queries(3):
        assert still_good(both) == both
    gone = signed_in(alice, here)
    here.logout()
    assert still_good(both) == both - {gone}
    alice.user.set_password("another long sentence")
    alice.user.save()
    assert still_good({*both, by_session}) == {by_session}


def test_a_request_by_session_is_named_by_it(alice, rf):
    client = api(alice)
    request = rf.get("/")
    request.user, request.session = alice.user, client.session
    principal = authenticate(request)
    assert principal is not None
    assert credential_of(principal) == signed_in(alice, client)
    assert str(client.session.session_key) not in repr(principal)
    assert str(client.session.session_key) not in repr(credential_of(principal))
