"""deploy/cluster, read: every name is filled in, and the engines accept what comes of it."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster.failures import HEADINGS, Outcome, write_table
from tests.cluster.load import Question
from tests.cluster.programs import CONFIGURATIONS, fill, find, free_ports
from tests.cluster.proxies import HAProxy, PgBouncer

VALUES = {
    "haproxy.cfg": {"folder": "/run/amber", "port": 80, "web1_port": 8001, "web2_port": 8002},
    "pgbouncer.ini": {"folder": "/x", "port": 6432, "primary_port": 1, "replica_port": 2},
    "postgresql.conf": {"port": 5432, "name": "a"},
    "pg_hba.conf": {},
    "redis.conf": {"port": 6379, "folder": "/x", "password": "p"},
    "sentinel.conf": {"port": 26379, "folder": "/x", "password": "p", "redis_port": 6379},
}


def test_all_names_are_filled_in():
    assert {path.name for path in CONFIGURATIONS.iterdir()} == set(VALUES)
    for name, values in VALUES.items():
        assert not re.search(r"\$\w", fill(name, **values)), name
    with pytest.raises(KeyError):
        fill("haproxy.cfg")


@pytest.mark.skipif(find("haproxy") is None, reason="haproxy is not installed")
def test_haproxy_accepts_its_file(tmp_path):
    haproxy = HAProxy(tmp_path, 8000, [8001, 8002])
    settings = haproxy.member.argv[-1]
    command = [str(find("haproxy")), "-c", "-f", settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "WARNING" in done.stdout + done.stderr) == (0, False), done.stderr


def test_pgbouncer_is_pointed_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.cluster.proxies.program", lambda name: name)
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda *told: signals.append(told))
    pgbouncer = PgBouncer(tmp_path, 6432, {"amber_app": "secret"})
    pgbouncer.prepare(None, primary_port=5001, replica_port=5002)
    monkeypatch.setattr(type(pgbouncer.member), "is_alive", True)
    pgbouncer.point_to(5002, 5002)
    settings = Path(pgbouncer.member.argv[-1])
    assert "amber = host=127.0.0.1 port=5002 dbname=amber" in settings.read_text()
    assert settings.stat().st_mode & 0o077 == 0
    assert signals == [(0, signal.SIGHUP)]


def test_ports_are_none_of_outgoing_connections():
    ports = free_ports(4)
    assert len(set(ports)) == 4
    assert max(ports) < 32_768


def test_silences_are_between_events_and_before_the_first():
    question = Question("Acme", "c", 3, accepted_at=10.0, heard_at=[10.5, 14.0])
    (first, second, unfinished) = question.silences()
    assert (first, second) == ((10.0, 10.5), (10.5, 14.0))
    assert unfinished[0] == 14.0


def test_the_table_has_a_line_for_each_outcome():
    outcome = dict.fromkeys(Outcome.__dataclass_fields__, 1)
    table = write_table([outcome, outcome])
    assert len(table.splitlines()) == 3
    assert set(HEADINGS) <= set(outcome)
    assert json.dumps(outcome)
