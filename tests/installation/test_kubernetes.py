"""deploy/kubernetes, read: valid in Kubernetes' own schemas, confined, and about Amber as it is."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from amber.up import ROLES
from amber.web.request_log import MACHINE_ADDRESSES
from tests.house.test_docs import documented_settings

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
OBJECTS: list[dict[str, Any]] = [
    each
    for name in KUSTOMIZATION["resources"]
    for each in yaml.safe_load_all((FOLDER / name).read_text())
]
FOREIGN = {"ServiceMonitor"}
"""Kinds of operators' own, whose schemas Kubernetes does not have."""


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [each for each in OBJECTS if each["kind"] in kinds]


def name_of(each: dict[str, Any]) -> str:
    return f"{each['kind']} {each['metadata']['name']}"


PODS = of_kind("Deployment", "Job")
"""What makes pods: their form is in `spec.template`."""


def test_all_files_are_listed():
    listed = {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    assert listed == {path.name for path in FOLDER.glob("*.yaml")}


@pytest.mark.parametrize("each", [e for e in OBJECTS if e["kind"] not in FOREIGN], ids=name_of)
def test_each_is_valid(each):
    kubernetes_validate.validate(each, "1.37", strict=True)


@pytest.mark.parametrize("each", PODS, ids=name_of)
def test_pods_can_do_little(each):
    pod = each["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == _uid_of_image()
    assert pod["automountServiceAccountToken"] is False
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


def test_there_is_a_deployment_of_each_role():
    named = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in PODS}
    assert named == set(ROLES)
    for each in of_kind("Deployment"):
        role = each["metadata"]["labels"]["app.kubernetes.io/component"]
        (container,) = each["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["python", "manage.py", "up", role]


def test_pods_wait_for_the_schema_of_their_release():
    for each in of_kind("Deployment"):
        (first,) = each["spec"]["template"]["spec"]["initContainers"]
        assert "until python manage.py migrate --check;" in first["command"][-1]
        assert {mount["name"] for mount in first["volumeMounts"]} == {"var", "tmp"}


def test_what_selects_pods_finds_some():
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in PODS]
    for each in of_kind("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"):
        asked = each["spec"].get("podSelector") or each["spec"]["selector"]
        asked = asked.get("matchLabels", asked)
        assert any(asked.items() <= labels.items() for labels in pods), name_of(each)


def test_settings_are_those_of_the_docs():
    given = dict(OBJECTS[1]["data"])
    for name in ("secrets.env.example", "owner.env.example"):
        lines = (FOLDER / name).read_text().splitlines()
        given |= dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert given.keys() <= set(documented_settings()), given.keys() - set(documented_settings())


def test_only_the_bootstrap_knows_the_owner_of_the_tables():
    for each in PODS:
        (container,) = each["spec"]["template"]["spec"]["containers"]
        secrets = {source.get("secretRef", {}).get("name") for source in container["envFrom"]}
        assert ("amber-owner" in secrets) == (each["kind"] == "Job")


def test_probes_ask_what_amber_answers():
    paths = set()
    for each in of_kind("Deployment"):
        (container,) = each["spec"]["template"]["spec"]["containers"]
        for probe in ("startupProbe", "livenessProbe"):
            asked = container[probe]
            if "httpGet" in asked:
                paths.add(asked["httpGet"]["path"])
            else:
                role = container["name"]
                assert asked["exec"]["command"] == ["python", "-m", "amber.worker_health", role]
    assert paths
    assert paths <= MACHINE_ADDRESSES


def test_pods_multiply_by_a_figure_that_amber_tells():
    (scaler,) = of_kind("HorizontalPodAutoscaler")
    metric = scaler["spec"]["metrics"][0]["external"]["metric"]["name"]
    assert metric in (FOLDER.parent.parent / "amber" / "web" / "metrics.py").read_text()
    (monitor,) = of_kind("ServiceMonitor")
    assert {point["path"] for point in monitor["spec"]["endpoints"]} <= MACHINE_ADDRESSES


def test_workers_reach_out_but_not_inwards_and_web_does_not():
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind("NetworkPolicy")}
    reaching = policies["amber-workers"]["podSelector"]["matchExpressions"][0]["values"]
    assert set(reaching) == {"chat", "ingest"}
    blocks = [to["ipBlock"] for to in policies["amber-workers"]["egress"][0]["to"]]
    assert all(block["except"] for block in blocks)
    assert policies["amber-web"]["policyTypes"] == ["Ingress"]


def _uid_of_image() -> int:
    """Return the account that the Dockerfile ends with: by its number, as Kubernetes asks for."""
    dockerfile = (FOLDER.parent.parent / "Dockerfile").read_text()
    users = [line.split()[1] for line in dockerfile.splitlines() if line.startswith("USER ")]
    return int(users[-1])


def test_with_files_in_a_bucket_no_pod_shares_a_volume():
    component = FOLDER / "files-in-s3"
    said = yaml.safe_load((component / "kustomization.yaml").read_text())
    [claim, pods] = said["patches"]
    gone = yaml.safe_load(claim["patch"])
    [volume] = of_kind("PersistentVolumeClaim")
    assert gone == {**gone, "$patch": "delete", "kind": volume["kind"]}
    assert gone["metadata"]["name"] == volume["metadata"]["name"]
    deployments = of_kind("Deployment")
    for each in deployments:
        assert re.fullmatch(pods["target"]["name"], each["metadata"]["name"])
        patched = _patched(each, yaml.safe_load(pods["patch"]))
        kubernetes_validate.validate(patched, "1.37", strict=True)
        assert "amber-files" not in json.dumps(patched)
        [container] = patched["spec"]["template"]["spec"]["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {"var", "tmp"}
    for name in said["resources"]:
        for each in yaml.safe_load_all((component / name).read_text()):
            kubernetes_validate.validate(each, "1.37", strict=True)


def _patched(each: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply a JSON patch of `test` and `remove`, as kustomize does."""
    made: dict[str, Any] = copy.deepcopy(each)
    for operation in operations:
        *way, last = operation["path"].strip("/").split("/")
        place: Any = made
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        last = int(last) if isinstance(place, list) else last
        if operation["op"] == "test":
            assert place[last] == operation["value"]
        else:
            del place[last]
    return made
