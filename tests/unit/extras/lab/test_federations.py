"""The federation of a stack, as a command on its hub sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import which
from kumulus.extras.lab.commands import run
from kumulus.extras.lab.federation.members import Federation

GROUP = {
    "name": "cpu",
    "placement": [{"availabilityZone": "z", "replicas": 1}],
    "nodeTemplate": {"capacity": {"cpu": 8, "pods": 110}},
}
MANY: dict[str, Any] = {
    "kumulus:hub": "hub",
    "kumulus:defaults": {"nodeGroups": [GROUP]},
    "kumulus:clusters": [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 2}, {"name": "alone"}],
}
FEDERATION = {"kind": "multikueue", "workers": ["worker"], "queue": "research"}


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    for name, config in (
        ("fed", {**MANY, "kumulus:federation": FEDERATION}),
        ("many", MANY),
        ("one", {"kumulus:cluster": {"nodeGroups": [GROUP]}}),
    ):
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": config}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    monkeypatch.setenv("KUMULUS_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "clusters"


def found(stack: str, cluster: str | None = None) -> Federation | None:
    chosen = which.chosen(stack, cluster)
    return run.of_hub(chosen, chosen.kubeconfig)


def test_the_hub_of_a_federation_has_the_workers_that_its_file_names(clusters: Path) -> None:
    federation = found("fed")
    assert federation is not None
    assert (federation.hub, federation.hub_name) == ("hub", "fed-hub")
    assert (federation.queue, federation.namespace) == ("research", "kueue-system")
    assert {each.name: each.kubeconfig for each in federation.workers} == {
        name: clusters / f"fed-{name}" / "kubeconfig.yaml" for name in ("worker-0", "worker-1")
    }


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize(("stack", "cluster"), [("fed", "worker-0"), ("fed", "alone"), ("many", "hub"), ("one", None)])
def test_any_other_cluster_is_measured_by_itself(stack: str, cluster: str | None) -> None:
    assert found(stack, cluster) is None
