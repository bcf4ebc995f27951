"""Addresses of watched servers say the same to redis-py and to Celery."""

import pytest

from amber.lib.redis_address import (
    broker_options,
    broker_tls,
    broker_url,
    check_address,
    sentinel_options,
    watched_redis,
)

WHOLE = "redis+sentinel://me:p%40ss@one,two:7000,[::1]:7001/main/3?sentinel_username=s&sentinel_password=q"


def test_reads_all_parts():
    found = watched_redis(WHOLE)
    assert found is not None
    assert found.sentinels == (("one", 26_379), ("two", 7_000), ("::1", 7_001))
    assert (found.service, found.db, found.tls) == ("main", 3, {})
    assert found.login == {"username": "me", "password": "p@ss"}
    assert found.sentinel_login == {"username": "s", "password": "q"}


def test_celery_gets_the_login_with_each_sentinel():
    ends = ("one:26379/3", "two:7000/3", "[::1]:7001/3")
    assert broker_url(WHOLE).split(";") == [f"sentinel://me:p%40ss@{end}" for end in ends]
    options = broker_options(WHOLE)
    assert options["master_name"] == "main"
    assert options["sentinel_kwargs"]["password"] == "q"
    assert broker_tls(WHOLE) == {}


def test_tls_is_for_redis_and_sentinels_alike():
    found = watched_redis("rediss+sentinel://a/main?ssl_ca_certs=/ca.pem&ssl_check_hostname=false")
    assert found is not None
    assert found.tls["ssl_ca_certs"] == "/ca.pem"
    assert found.tls["ssl_check_hostname"] is False
    assert sentinel_options(found)["ssl"] is True


def test_one_server_stays_what_it_is():
    url = "redis://:secret@host:6379/1"
    assert check_address(url) == url == broker_url(url)
    assert (watched_redis(url), broker_options(url), broker_tls(url)) == (None, {}, {})


@pytest.mark.parametrize(
    "wrong",
    [
        "http://host",
        "redis://host:0",
        "redis+sentinel://a:26379",  # no service
        "redis+sentinel:///main",
        "redis+sentinel://a,,b/main",
        "redis+sentinel://a:no/main",
        "redis+sentinel://a/main/first",
        "redis+sentinel://a/main?ssl_ca_certs=/ca.pem",  # TLS is rediss+sentinel
        "rediss+sentinel://a/main?ssl_check_hostname=maybe",
        "redis+sentinel://a/main?master=b",
    ],
)
def test_refuses_what_it_cannot_read(wrong):
    with pytest.raises(ValueError):
        check_address(wrong)
