"""What an experiment has to be that runs on the hub of a federation, and what only one on it may say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import which
from kumulus.extras.journal import outages
from kumulus.extras.lab.commands import run
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.members import RunningFederation, Worker, require_inside, require_outside
from kumulus.extras.lab.file.model import ExperimentSpec

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
GANG = {"name": "w", "workers": 2, "gang": True}
FEDERATION = {"kind": "multikueue", "workers": ["worker"], "queue": "research"}


def experiment(**fields: Any) -> ExperimentSpec:
    return ExperimentSpec.checked({"name": "x", "workloads": [{"name": "w"}], **fields})


def federation() -> RunningFederation:
    workers = tuple(Worker(name, Path(f"/clusters/{name}/kubeconfig.yaml")) for name in ("worker-0", "worker-1"))
    return RunningFederation(
        "hub", Path("/clusters/hub/kubeconfig.yaml"), "fed-hub", workers, "research", "kueue-system"
    )


@pytest.fixture
def of_kwok(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The clusters that are of the runtime kwok; all unless a test takes one out."""
    found = {"hub", "worker-0", "worker-1"}
    monkeypatch.setattr(outages, "can_be_killed", lambda kubeconfig: kubeconfig.parent.name in found)
    return found


def refused(**fields: Any) -> str:
    with pytest.raises(LabError) as raised:
        require_inside(experiment(**fields), federation())
    return str(raised.value)


@pytest.mark.usefixtures("of_kwok")
def test_a_job_in_the_federations_queue_and_a_timeline_of_outages_are_taken() -> None:
    timeline = [
        {"at": "1s", "kill": "worker-1"},
        {"at": "1s", "partition": "worker-0"},
        {"at": "9s", "restore": "worker-1"},
        {"at": "9s", "delete": "w"},
    ]
    require_inside(experiment(timeline=timeline, workloads=[{"name": "w", "queue": "research"}]), federation())
    require_inside(experiment(), federation())


@pytest.mark.usefixtures("of_kwok")
@pytest.mark.parametrize(
    ("fields", "place", "remedy"),
    [
        ({"timeline": [{"kill": "worker-2"}]}, "timeline[0].kill: worker-2", "worker-0"),
        ({"timeline": [{"kill": "elsewhere"}]}, "timeline[0].kill: elsewhere", "there are worker-0, worker-1"),
        ({"timeline": [{"partition": "hub"}]}, "timeline[0].partition: hub is the hub", "there are worker-0"),
        ({"timeline": [{"scheduler": "restart"}]}, "timeline[0].scheduler", "write kill, partition, restore or delete"),
        ({"workloads": [{"name": "w", "kind": "JobSet"}]}, "workloads[0].kind", "write kind: Job"),
        ({"workloads": [{"name": "w", "queue": "other"}]}, "workloads[0].queue", "research"),
        (
            {"workloads": [{"name": "w", "requests": {"nvidia.com/gpu": "1"}, "resourceClaims": "milli"}]},
            "workloads[0].resourceClaims",
            "--cluster",
        ),
        ({"workloads": [{"name": "w", "preemptionPolicy": "Never"}]}, "workloads[0].preemptionPolicy", "--cluster"),
        ({"workloads": [{"name": "w", "schedulerName": "mine"}]}, "workloads[0].schedulerName", "--cluster"),
        ({"workloads": [GANG | {"topology": {"required": "zone"}}]}, "workloads[0].topology", "--cluster"),
        ({"workloads": [GANG | {"disruption": "all"}]}, "workloads[0].disruption", "--cluster"),
        ({"scheduler": {"name": "volcano"}}, "scheduler:", "leave it out"),
        ({"from": {"snapshot": "full"}}, "from:", "--cluster"),
        ({"policy": "FGD"}, "policy:", "--cluster"),
    ],
)
def test_what_a_federation_cannot_run_is_refused_with_the_place_and_what_to_write(
    fields: dict[str, Any], place: str, remedy: str
) -> None:
    said = refused(**fields)
    assert said.startswith(place)
    assert remedy in said


def test_a_control_plane_that_is_not_of_this_machine_is_not_killed_nor_a_hub_led_through_a_proxy(
    of_kwok: set[str],
) -> None:
    of_kwok -= {"worker-0", "hub"}
    said = refused(timeline=[{"kill": "worker-0"}, {"partition": "worker-1"}])
    assert "timeline[0].kill: the control plane of worker-0 is not of the runtime kwok" in said
    assert "write partition: worker-0" in said
    assert "timeline[1].partition: the hub's Kueue is not on this machine" in said


def test_without_a_federation_there_is_no_worker_to_kill() -> None:
    require_outside(experiment(timeline=[{"at": "1s", "delete": "w"}]), "quickstart")
    with pytest.raises(
        LabError, match=r"timeline\[1\]\.kill: quickstart is no hub of a federation.*kumulus:federation"
    ):
        require_outside(experiment(timeline=[{"delete": "w"}, {"kill": "worker-0"}]), "quickstart")


def test_the_workers_are_found_by_their_names() -> None:
    assert federation().worker("worker-1").kubeconfig.parent.name == "worker-1"


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


def found(stack: str, cluster: str | None = None) -> RunningFederation | None:
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
