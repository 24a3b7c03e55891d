"""The manifests of docs/rbac grant what a stack is asked for, and nothing that nobody needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.scaling.karpenter import objects
from kumulus.runtimes import existing
from kumulus.runtimes.existing.permissions import Access, described, needed

RBAC = Path(__file__).resolve().parents[4] / "docs" / "rbac"
ON_NODES = [existing.NODES, existing.FAULTS, existing.STAGES, existing.USAGE, existing.DEVICES, existing.HYPERNODES]


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((RBAC / name).read_text()))


def granted(name: str) -> Iterator[Access]:
    for role in documents(name):
        for rule in role.get("rules", []):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for only in rule.get("resourceNames", [""]):
                            yield Access(role["metadata"].get("namespace", ""), group, resource, verb, only)


def covers(rules: set[Access], wanted: Access) -> bool:
    everywhere = Access("", wanted.group, wanted.resource, wanted.verb, wanted.name)
    return wanted in rules or everywhere in rules


@pytest.mark.parametrize(
    ("manifests", "wanted"),
    [
        (["nodes.yaml"], ON_NODES),
        (["nodes.yaml", "kwok.yaml"], [*ON_NODES, existing.KWOK]),
        (["nodes.yaml", "tenants.yaml"], [*ON_NODES, existing.TENANTS]),
        (["nodes.yaml", "karpenter.yaml"], [*ON_NODES, existing.AUTOSCALER]),
    ],
)
def test_the_manifests_grant_what_is_needed(manifests: list[str], wanted: list[str]) -> None:
    rules = {access for name in manifests for access in granted(name)}
    assert [access for access in needed(wanted) if not covers(rules, access)] == []


@pytest.mark.parametrize(("manifest", "wanted"), [("nodes.yaml", ON_NODES), ("tenants.yaml", [existing.TENANTS])])
def test_what_is_needed_is_all_that_a_manifest_grants(manifest: str, wanted: list[str]) -> None:
    assert set(granted(manifest)) <= set(needed(wanted))


def test_karpenters_manifest_grants_what_is_needed_and_what_karpenter_is_granted_by_it() -> None:
    its_own = {
        Access("", group, resource, verb)
        for group, resources, verbs in objects.RULES
        for resource in resources
        for verb in verbs
    }
    assert its_own <= set(granted("karpenter.yaml"))
    assert set(granted("karpenter.yaml")) <= its_own | set(needed([existing.AUTOSCALER]))


def test_a_permission_for_one_object_is_described_with_its_name() -> None:
    bound = [each for each in needed([existing.TENANTS]) if each.verb == "bind"]
    assert described(bound) == "clusterroles.rbac.authorization.k8s.io: bind view, bind edit, bind admin"
    assert described(needed([])) == "namespaces: get kube-system"


def test_all_manifests_bind_the_same_account() -> None:
    names = ("nodes.yaml", "kwok.yaml", "tenants.yaml", "karpenter.yaml")
    subjects = [doc["subjects"] for name in names for doc in documents(name) if "subjects" in doc]
    assert {str(each) for each in subjects} == {
        str([{"kind": "ServiceAccount", "name": "stack", "namespace": "kumulus"}])
    }
