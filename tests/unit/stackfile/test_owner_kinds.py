"""Which pods belong to which kind of workload: the very jq that KWOK is asked with, and what previews count by."""

from __future__ import annotations

from typing import Any

import jq
import pytest

from kumulus.kwok.fault_stages import pod_stages
from kumulus.kwok.lifecycle_stages import condition
from kumulus.model.lifecycles import PodSelection
from kumulus.model.owner_kinds import OWNER_KINDS, is_of
from kumulus.model.pod_effects import PodEffects

BATCH = "batch/v1"
KINDS = (*OWNER_KINDS, "StatefulSet")
# A pod's owner, the labels its operator gives it, and the one kind of KINDS that it belongs to.
PODS = [
    (BATCH, "Job", {}, "Job"),
    (BATCH, "Job", {"jobset.sigs.k8s.io/jobset-name": "a"}, "JobSet"),
    ("kubeflow.org/v2beta1", "MPIJob", {}, "MPIJob"),
    (BATCH, "Job", {"training.kubeflow.org/operator-name": "mpi-operator"}, "MPIJob"),
    ("kubeflow.org/v1", "MPIJob", {"training.kubeflow.org/operator-name": "mpijob-controller"}, "MPIJob"),
    ("kubeflow.org/v1", "PyTorchJob", {"training.kubeflow.org/operator-name": "pytorchjob-controller"}, "PyTorchJob"),
    ("ray.io/v1", "RayCluster", {"ray.io/cluster": "a"}, "RayJob"),
    # The pod that submits a RayJob.
    (BATCH, "Job", {"ray.io/cluster": "a"}, "RayJob"),
    ("batch.volcano.sh/v1alpha1", "Job", {}, "VolcanoJob"),
    ("apps/v1", "StatefulSet", {}, "StatefulSet"),
    ("apps/v1", "ReplicaSet", {}, None),
]


def pod(version: str, kind: str, labels: dict[str, str]) -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": "a", "controller": True}
    metadata = {"name": "p", "namespace": "default", "uid": "0" * 32, "ownerReferences": [owner]}
    return {"metadata": {**metadata, **({"labels": labels} if labels else {})}}


@pytest.mark.parametrize(("version", "kind", "labels", "belongs"), PODS)
def test_a_pod_belongs_to_the_workload_whose_operator_made_it(
    version: str, kind: str, labels: dict[str, str], belongs: str | None
) -> None:
    made = pod(version, kind, labels)
    selecting = [each for each in KINDS if selects(condition(PodSelection(owner_kinds=(each,))), made)]
    assert selecting == ([belongs] if belongs else [])
    hit = [each for each in KINDS if hits(PodEffects("stuck", owner_kinds=(each,)), made)]
    assert hit == selecting
    assert [each for each in KINDS if is_of(made, each)] == selecting, "a preview counts the pods that are hit"


def test_a_bare_pod_belongs_to_none() -> None:
    bare = {"metadata": {"name": "p", "namespace": "default"}}
    assert not any(selects(condition(PodSelection(owner_kinds=(each,))), bare) for each in KINDS)
    assert not hits(PodEffects("stuck", owner_kinds=KINDS), bare)
    assert not any(is_of(bare, each) for each in KINDS)


def selects(expression: str, made: dict[str, Any]) -> bool:
    found: bool = jq.compile(expression).input_value(made).first()
    return found


def hits(effects: PodEffects, made: dict[str, Any]) -> bool:
    """Whether the last expression of a fault's stage, that of the owners, holds for a pod."""
    (stage,) = pod_stages("x", effects, (), "2026-01-01T00:00:00Z")
    match = stage["spec"]["selector"]["matchExpressions"][-1]
    return jq.compile(match["key"]).input_value(made).first() in match["values"]
