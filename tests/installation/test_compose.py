"""docker-compose.yml, read: every setting reaches the containers, secrets only those that need them."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from amber.lib.database.tenant import across_tenants
from amber.lib.workers.worker import Worker, this_worker
from amber.worker_health import consumes
from operations.maintenance.heartbeats import beat
from operations.models import WorkerHeartbeat
from tests.house.test_docs import COMPOSED, documented_settings

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OURS = ("bootstrap", "web", "chat", "ingest")
OF_CONTAINERS = {
    "AMBER_HOST",
    "AMBER_PORT",
    "AMBER_VAR_DIR",
    "DATABASE_URL",
    "AMBER_SYSTEM_DATABASE_URL",
    "REDIS_URL",
}
"""Given by the file, whatever .env says: where containers find each other."""
BOOTSTRAP_ALONE = {"AMBER_OWNER_DATABASE_URL", "AMBER_ADMIN_PASSWORD", "AMBER_BOOTSTRAP_API_KEY"}


@pytest.mark.parametrize("name", OURS)
def test_each_setting_of_the_environment_file_reaches_each_container(name):
    service = SERVICES[name]
    assert service["env_file"] == [{"path": ".env", "required": False}]
    given = service["environment"]
    lost = [each for each in documented_settings() if not is_right(name, each, given.get(each))]
    assert lost == []


def is_right(name: str, setting: str, given: str | None) -> bool:
    """Whether this is what a container is to get: an address of its own, nothing, or what .env says."""
    if setting in OF_CONTAINERS:
        return bool(given)
    if setting in BOOTSTRAP_ALONE and name != "bootstrap":
        return given == ""
    is_from_file = (given or "").startswith(f"${{{setting}:")
    return given is None or is_from_file or "${POSTGRES_PASSWORD:" in given


@pytest.mark.parametrize("name", OURS)
def test_passwords_of_postgres_stay_in_addresses(name):
    assert {
        setting: SERVICES[name]["environment"][setting] for setting in COMPOSED
    } == dict.fromkeys(COMPOSED, "")


def test_every_service_that_stays_tells_its_health():
    assert {name for name in SERVICES if "healthcheck" not in SERVICES[name]} == {"bootstrap"}


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_healthy_while_it_shows_that_it_consumes():
    place = connection.settings_dict
    address = make_conninfo(
        host=place["HOST"],
        port=place["PORT"],
        dbname=place["NAME"],
        user=place["USER"],
        password=place["PASSWORD"],
    )
    worker = Worker(this_worker().name, consuming_at=time.monotonic())
    assert not consumes("chat", database_url=address)
    with across_tenants():
        beat(worker, "ingest")
    assert not consumes("chat", database_url=address)
    with across_tenants():
        beat(worker, "chat")
    assert consumes("chat", database_url=address)
    with across_tenants():
        WorkerHeartbeat.objects.update(beat_at=timezone.now() - timedelta(minutes=1))
    assert not consumes("chat", database_url=address)
