"""Which nodes a pod may go to, whatever is free on them."""

from typing import Any

import pytest

from kumulus.extras.watch.live.node import NOWHERE, node_from
from kumulus.extras.watch.live.pod import pod_from
from kumulus.model.gfd import SHARE_RESOURCE
from tests.support.messages import node_message, pod_message, quantities

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def admits(pod: dict[str, Any], **node: Any) -> bool:
    name = node.setdefault("name", "n")
    labels = {"kubernetes.io/hostname": name, **node.pop("labels", {})}
    found = node_from(node_message(labels=labels, **node), NOWHERE)
    return pod_from(pod_message(**pod)).rule.admits(found.name, found.nature)


def terms(*found: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(found)}}}}


def labelled(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def named(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    ("pod", "holds"),
    [
        ({}, True),
        ({"nodeSelector": {"rack": "r1", "kubernetes.io/hostname": "n"}}, True),
        ({"nodeSelector": {"rack": "r2"}}, False),
        ({"nodeSelector": {"rack": "r1", "kubernetes.io/hostname": "m"}}, False),
        (terms(labelled("rack", "In", "r0", "r1")), True),
        (terms(labelled("rack", "In", "r0")), False),
        (terms(labelled("rack", "In", "r0"), labelled("rack", "In", "r1")), True),
        (terms(labelled("rack", "NotIn", "r1")), False),
        (terms(labelled("row", "NotIn", "r1")), True),
        (terms(labelled("rack", "Exists")), True),
        (terms(labelled("row", "Exists")), False),
        (terms(labelled("row", "DoesNotExist")), True),
        (terms(labelled("cores", "Gt", "95")), True),
        (terms(labelled("cores", "Gt", "96")), False),
        (terms(labelled("cores", "Lt", "97")), True),
        (terms(labelled("rack", "Gt", "1")), False),
        (terms(labelled("rack", "Unheard", "r1")), False),
        (terms(named("In", "n")), True),
        (terms(named("In", "m")), False),
        (terms(named("NotIn", "n")), False),
        (terms({**named("In", "m"), **labelled("rack", "In", "r1")}, labelled("rack", "In", "r1")), True),
        (terms({}), False),
        ({"nodeSelector": {"rack": "r1"}, **terms(labelled("rack", "In", "r2"))}, False),
    ],
)
def test_selectors_and_affinity_choose_by_labels_and_names(pod: dict[str, Any], holds: bool) -> None:
    assert admits(pod, labels={"rack": "r1", "cores": "96"}) is holds


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        (None, False),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_taints_keep_off_pods_that_do_not_tolerate_them(toleration: dict[str, Any] | None, holds: bool) -> None:
    pod = {"tolerations": [toleration]} if toleration else {}
    assert admits(pod, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]) is holds


def test_a_taint_that_only_prefers_keeps_nobody_off() -> None:
    assert admits({}, taints=[{"key": "gpu", "value": "yes", "effect": "PreferNoSchedule"}])


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    assert not admits({}, unschedulable=True)
    assert admits({"tolerations": [{"operator": "Exists"}]}, unschedulable=True)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"gpu": "8"}, True),
        ({"gpu": "9"}, False),
        ({"amd.com/gpu": "1"}, False),
        ({"ephemeral-storage": "1Gi"}, False),
        # However much is free of these is counted apart, or by somebody else.
        ({"cpu": "1000"}, True),
        ({SHARE_RESOURCE: "500"}, True),
    ],
)
def test_a_node_has_to_have_the_very_devices(asked: dict[str, str], holds: bool) -> None:
    assert admits({"containers": [{"resources": {"requests": quantities(**asked)}}]}) is holds


def test_what_depends_on_other_pods_is_named() -> None:
    pod: dict[str, Any] = {
        "affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "rack"}]}, "podAntiAffinity": {}},
        "topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
        "resourceClaims": [{"name": "gpus"}],
    }
    assert pod_from(pod_message(**pod)).rule.apart == ("pod affinity", "topology spread", "devices by claims")
    assert pod_from(pod_message()).rule.apart == ()


def test_what_thousands_have_in_common_is_kept_once() -> None:
    pods = [pod_from(pod_message(f"p-{n}", nodeSelector={"rack": "r1"})) for n in range(2)]
    nodes = [node_from(node_message(f"n-{n}", labels={"kubernetes.io/hostname": f"n-{n}"}), NOWHERE) for n in range(2)]
    assert pods[0].rule is pods[1].rule
    assert nodes[0].nature is nodes[1].nature
