"""Health checks and Prometheus ask by addresses that AMBER_ALLOWED_HOSTS does not name."""

import pytest


@pytest.mark.django_db
def test_machines_may_ask_by_any_address_and_people_may_not(client, settings):
    settings.ALLOWED_HOSTS = ["amber.example.com"]
    for address in ("/healthz", "/metrics"):
        assert client.get(address, headers={"Host": "10.1.2.3:8000"}).status_code == 200
    assert client.get("/readyz", headers={"Host": "10.1.2.3:8000"}).status_code in (200, 503)
    for address in ("/api/v1/chats/", "/admin/login/", "/healthz/"):
        assert client.get(address, headers={"Host": "10.1.2.3:8000"}).status_code == 400
