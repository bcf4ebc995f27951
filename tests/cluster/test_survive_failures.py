"""Two of everything, struck piece by piece under load: every accepted question is answered exactly once.

CLUSTER=short strikes each piece once, CLUSTER=whole twice; CLUSTER_PEOPLE says how many ask at the same
time. The times are printed, and kept in var/cluster.json.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from shutil import copytree
from typing import Final
from uuid import uuid4

import pytest

from tests.cluster.checks import check_all, count_calls, database_bytes, stream_bytes
from tests.cluster.cluster import Cluster, started_cluster
from tests.cluster.failures import FAILURES, Trial, write_table
from tests.cluster.load import READER, Load
from tests.cluster.programs import ROOT

TIMES: Final = {"short": 1, "whole": 2}[os.environ.get("CLUSTER", "short")]
ONLY: Final = os.environ.get("CLUSTER_ONLY", "")
"""Words of the failures that are tried; empty: all."""
PEOPLE: Final = int(os.environ.get("CLUSTER_PEOPLE", "50"))
ORGANIZATIONS: Final = ("Acme", "Rival")
BUDGET_TOKENS: Final = 1_000_000_000
LAST_ANSWERS_SECONDS: Final = 90
BUDGET_SQL: Final = """
INSERT INTO providers_budget
    (id, created_at, updated_at, organization_id, scope, subject, period, unit, "limit")
VALUES (%s, now(), now(), %s, 'organization', '', 'month', 'tokens', %s) RETURNING id
"""

pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started_cluster(with_docs=False) as started:
        yield started


def new_load(cluster: Cluster) -> Load:
    """People of two organizations, each with a budget that counts, and somebody who only reads."""
    keys = {}
    for name in ORGANIZATIONS:
        made = cluster.new_person(name.lower(), name)
        keys[name] = made["api_key"]
        cluster.query(BUDGET_SQL, uuid4(), made["organization_id"], BUDGET_TOKENS)
    reader = cluster.new_person("reader", READER)
    return Load(cluster.url, keys, PEOPLE, reader["api_key"])


def test_every_accepted_question_is_answered_exactly_once(cluster):
    load = new_load(cluster)
    trial = Trial(cluster, load)
    began, bytes_before = time.monotonic(), database_bytes(cluster)
    load.start()
    try:
        for lap in range(TIMES):
            for failure in FAILURES[min(lap, 1) :]:
                if any(word in failure.name for word in ONLY.split(",")):
                    trial.strike(failure, lap)
                    _say(write_table(trial.record()[-1:]))
        cluster.wait_for(cluster.is_standby_read, "reads from the standby")
        load.finish(LAST_ANSWERS_SECONDS)
    except BaseException:
        copytree(
            cluster.folder, ROOT / "var" / "cluster-logs", ignore=_all_but_logs, dirs_exist_ok=True
        )
        raise
    finally:
        load.close()
    found = {
        "people": PEOPLE,
        "questions": len(load.questions),
        "seconds": round(time.monotonic() - began),
        "calls": count_calls(cluster),
        "reads": load.reads,
        "redis_bytes_a_turn": stream_bytes(cluster),
        "postgres_bytes_a_turn": (database_bytes(cluster) - bytes_before) // len(load.questions),
        "outcomes": trial.record(),
    }
    (ROOT / "var").mkdir(exist_ok=True)
    (ROOT / "var" / "cluster.json").write_text(json.dumps(found, indent=1))
    _say(write_table(trial.record()))
    _say(json.dumps({name: value for name, value in found.items() if name != "outcomes"}))
    check_all(cluster, load.questions)


def _all_but_logs(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".log")]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
