"""Pods of an experiment that ask for their GPUs by ResourceClaim: what is created, measured and refused."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kumulus.extras.lab.cluster.claims import check_claims
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment, loaded_from
from kumulus.extras.lab.file.model import ExperimentSpec, SchedulerSpec
from kumulus.extras.lab.measure.views import ClaimView, PodView, claim_view, pod_view
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.plan.asked import claims_planned, pods_planned
from kumulus.extras.lab.plan.plan import RepetitionPlan, make
from kumulus.extras.lab.plan.stream import pods_recorded
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.run import arriving
from kumulus.extras.lab.run.arriving import ByClaim, by_node
from kumulus.extras.schedulers.manifests import pod_templates
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.kube import ApiError, Client
from kumulus.kube.messages import message_classes
from kumulus.model.errors import SpecError
from tests.support.messages import pod_message, quantities

TRACE = "arrival,cpu,gpus,milli,models\n0,0.1,1,600,T4\n1,0.1,1,600,\n2,0.1,2,1000,\n3,0.1,0,0,\n4,0.1,1,1000,\n"
COLUMNS = {"arrival": "arrival", "cpu": "cpu", "gpus": "gpus", "gpuMilli": "milli", "gpuModels": "models"}


def played(directory: Path, claims: str = "milli", **trace: Any) -> LoadedExperiment:
    (directory / "t.csv").write_text(TRACE)
    given = {"file": "t.csv", "columns": COLUMNS, "stay": True, **trace}
    workload = {"name": "t", "kind": "Pod", "resourceClaims": claims, "arrival": {"trace": given}}
    return loaded_from({"name": "x", "workloads": [workload]}, directory, "x", "")


def specs(plan: RepetitionPlan) -> list[dict[str, Any]]:
    return [template["spec"] for job in plan.jobs for template in pod_templates(list(job.objects))]


def test_pods_claim_their_gpus_by_a_template_for_each_amount(tmp_path: Path) -> None:
    plan = make(played(tmp_path), {})
    assert [each["metadata"]["name"] for each in plan.setup] == ["t-600-milli", "t-2-gpu", "t-1-gpu"]
    named = [[each["resourceClaimTemplateName"] for each in spec.get("resourceClaims", ())] for spec in specs(plan)]
    assert named == [["t-600-milli"], ["t-600-milli"], ["t-2-gpu"], [], ["t-1-gpu"]]
    resources = [spec["containers"][0]["resources"] for spec in specs(plan)]
    assert resources[0] == {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}
    assert "claims" not in resources[3]
    # Which GPU models it may have is said as without claims.
    assert "nodeAffinity" in specs(plan)[0]["affinity"]
    [request] = plan.setup[0]["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.nvidia.com", "capacity": {"requests": {"milli": "600"}}}


def test_a_part_can_be_a_mig_device(tmp_path: Path) -> None:
    loaded = played(tmp_path, "mig")
    plan = make(loaded, {})
    assert [each["metadata"]["name"] for each in plan.setup] == ["t-mig-7g", "t-2-gpu", "t-1-gpu"]
    [request] = plan.setup[0]["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "mig.nvidia.com"
    assert 'profile.startsWith("7g.")' in request["exactly"]["selectors"][0]["cel"]["expression"]
    assert [pod.gpu_milli for pod in pods_recorded(loaded)] == [1000, 1000, 1000, 0, 1000]


def test_a_workload_without_a_trace_claims_too() -> None:
    workload = {"name": "w", "jobs": 2, "workers": 3, "requests": {"cpu": 1, "nvidia.com/gpu": "4"}}
    loaded = loaded_from({"name": "x", "workloads": [workload | {"resourceClaims": "milli"}]}, Path(), "x", "")
    plan = make(loaded, {})
    assert [each["metadata"]["name"] for each in plan.setup] == ["w-4-gpu"]
    assert pods_planned(plan, "p") == [Pod("w-1", 1000, 0, 4, 1000)] * 3 + [Pod("w-2", 1000, 0, 4, 1000)] * 3
    plain = make(loaded_from({"name": "x", "workloads": [workload]}, Path(), "x", ""), {})
    assert plain.setup == ()


def test_what_pods_ask_for_by_claim_is_measured(tmp_path: Path) -> None:
    plan = make(played(tmp_path), {})
    assert [(pod.gpus, pod.gpu_milli) for pod in pods_planned(plan, "p")] == [
        (1, 600), (1, 600), (2, 1000), (0, 0), (1, 1000)
    ]  # fmt: skip
    assert pods_planned(plan, "nvidia.com/gpu.product")[0].models == {"T4"}
    known = claims_planned(plan)
    container = {"resources": {"requests": quantities(cpu="1")}}
    asks: dict[str, Any] = {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t-2-gpu"}],
    }
    assert (pod_view(pod_message(**asks), known).wants.gpus, pod_view(pod_message(**asks)).wants.gpus) == (2, 0)
    asks["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t-600-milli"}]
    assert (pod_view(pod_message(**asks), known).share, pod_view(pod_message(**asks), known).wants.gpus) == (600, 0)


def test_a_claim_says_what_of_which_gpu_it_has() -> None:
    results = [
        {"driver": "gpu.nvidia.com", "pool": "n-0", "device": "gpu-1", "consumedCapacity": quantities(milli="600")},
        {"driver": "gpu.nvidia.com", "pool": "n-0", "device": "gpu-2", "consumedCapacity": quantities(milli="1k")},
        {"driver": "gpu.nvidia.com", "pool": "n-0", "device": "gpu-3-mig-3g40gb-9-4"},
        {"driver": "gpu.nvidia.com", "pool": "n-0", "device": "gpu-3", "adminAccess": True},
        {"driver": "nic.example.com", "pool": "n-0", "device": "eth-1"},
    ]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": "u"}]}
    message = message_classes()["ResourceClaim"](status=status)
    assert claim_view(message) == ClaimView(("u",), (("n-0", 1, 600), ("n-0", 2, 1000), ("n-0", 3, 500)))
    assert claim_view(message_classes()["ResourceClaim"]()) == ClaimView((), ())


async def test_gpus_are_accounted_for_as_claims_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def machines(client: Client, product_label: str) -> list[EmptyNode]:
        return [EmptyNode(f"m-{number}", 8000, 8192, 2, "T4") for number in range(2)]

    monkeypatch.setattr(arriving, "machines_of", machines)
    loaded = played(tmp_path)
    account = by_node(loaded, cast(Client, None))
    assert isinstance(account, ByClaim)
    take = account.claims
    assert take is not None
    plan = make(loaded, {})

    async def fragmented(*places: tuple[int, int]) -> float:
        """Of two shares of 600 that are on these GPUs of m-0, in the order of their arrival."""
        await account.begin(plan)
        for number, (gpu, milli) in enumerate(places):
            take(f"c{number}", ClaimView((str(number),), (("m-0", gpu, milli),)))
            job = plan.jobs[number].name
            account.seen(PodView(str(number), "t", job, "m-0", "Running", "", "", Amounts()), over=False)
        used = await account.used(complete=False)
        assert used.split == 0
        return used.fragmented_percent_of_all_gpus["30"]

    # Which of the GPUs is free is the claims' word: a pod of two whole GPUs has no node but m-1 either way.
    apart, together = await fragmented((0, 600), (1, 600)), await fragmented((0, 600), (0, 400))
    assert apart > together
    take("c1", None)
    assert "c1" not in account._claims


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": "FGD"}, "cannot be combined with policy: FGD"),
        (
            {"scheduler": SchedulerSpec(name="volcano")},
            "cannot be combined with scheduler: volcano.*\n.*milliGpus: true",
        ),
        ({"scheduler": SchedulerSpec(name="kueue")}, "cannot be combined with scheduler: kueue"),
    ],
)
def test_claims_that_nobody_would_allocate_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    loaded = played(tmp_path)
    with pytest.raises(LabError, match=f"workload t: resourceClaims: milli {said}"):
        make(replace(loaded, experiment=loaded.experiment.model_copy(update=change)), {})


def test_nodes_may_count_the_same_thousandths_besides(tmp_path: Path) -> None:
    plan = make(played(tmp_path, milliGpus=True), {})
    asked = [spec["containers"][0]["resources"]["requests"] for spec in specs(plan)]
    assert [each.get("kumulus.io/gpu-milli") for each in asked] == ["600", "600", "2000", None, "1000"]
    assert not any("nvidia.com/gpu" in each for each in asked)
    # They count once.
    assert pods_planned(plan, "p") == pods_planned(make(played(tmp_path), {}), "p")
    container = {"resources": {"requests": {"kumulus.io/gpu-milli": {"string": "600"}}}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t-600-milli"}]
    seen = pod_view(pod_message(containers=[container], resourceClaims=claims), claims_planned(plan))
    assert (seen.share, seen.wants.gpus) == (600, 0)


def test_what_has_no_effect_beside_claims_is_refused_by_its_place() -> None:
    workload = {"name": "w", "manifest": "m.yaml", "resourceClaims": "milli"}
    with pytest.raises(SpecError, match=r"workloads\[0\]\.resourceClaims: has no effect with manifest"):
        ExperimentSpec.checked({"name": "x", "workloads": [workload]})
    many = {"name": "w", "requests": {"nvidia.com/gpu": "33"}, "resourceClaims": "milli"}
    with pytest.raises(LabError, match="asks for 33 GPUs, and a ResourceClaim has at most 32 devices"):
        make(loaded_from({"name": "x", "workloads": [many]}, Path(), "x", ""), {})


class Api:
    """A cluster that serves ResourceSlices with these devices, two of them a page, and these DeviceClasses."""

    def __init__(self, devices: list[dict[str, Any]] | None, classes: tuple[str, ...] = ("gpu.nvidia.com",)) -> None:
        self.devices, self.classes, self.asked = devices, classes, Counter[str]()

    async def get(self, path: str, params: dict[str, str] | None = None, **_: object) -> Any:
        self.asked[path] += 1
        if path == "/version":
            return {"gitVersion": "v1.33.4"}
        if path.endswith("/resourceslices") and self.devices is not None:
            at = int((params or {}).get("continue", 0))
            more = {"continue": str(at + 1)} if at + 1 < len(self.devices) else {}
            return {"items": [{"spec": {"devices": self.devices[at : at + 1]}}], "metadata": more}
        if path.rpartition("/")[2] in self.classes:
            return {}
        raise ApiError(404, "NotFound", "not there", "GET", path)


@pytest.mark.parametrize(
    ("claims", "api", "said"),
    [
        ("milli", Api(None), "Kubernetes v1.33.4, does not serve resource.k8s.io/v1\n.*kubernetesVersion"),
        ("milli", Api([]), "no node publishes devices by ResourceSlice\n.*allowMultipleAllocations: true"),
        ("milli", Api([{"name": "gpu-0"}]), "no node publishes a GPU that claims can share.*\n.*DRAConsumableCapacity"),
        ("mig", Api([{"name": "gpu-0"}]), "can be divided into MIG devices.*\n.*partitionable: true.*DRAPartitionable"),
        ("milli", Api([{"allowMultipleAllocations": True}], ()), "the cluster has no DeviceClass gpu.nvidia.com\n"),
        ("mig", Api([{"consumesCounters": [1]}]), "the cluster has no DeviceClass mig.nvidia.com\n"),
    ],
)
async def test_a_cluster_that_cannot_allocate_them_is_told_of(tmp_path: Path, claims: str, api: Api, said: str) -> None:
    loaded = played(tmp_path, claims)
    plan = make(loaded, {})
    with pytest.raises(LabError, match=f"(?s)workload t: resourceClaims: {claims}: .*{said}"):
        await check_claims(cast(Client, api), loaded.experiment, plan)


async def test_one_slice_that_can_be_shared_suffices(tmp_path: Path) -> None:
    loaded = played(tmp_path)
    api = Api([{"name": "gpu-0"}, {"name": "gpu-0", "allowMultipleAllocations": True}, {"name": "gpu-0"}])
    await check_claims(cast(Client, api), loaded.experiment, make(loaded, {}))
    assert api.asked["/apis/resource.k8s.io/v1/resourceslices"] == 2
    # Whole GPUs need no slice that is shared; nothing is asked where nothing is claimed.
    workload = {"name": "w", "requests": {"nvidia.com/gpu": "4"}, "resourceClaims": "milli"}
    whole = loaded_from({"name": "x", "workloads": [workload]}, tmp_path, "x", "")
    await check_claims(cast(Client, Api([{"name": "gpu-0"}])), whole.experiment, make(whole, {}))
    none = loaded_from({"name": "x", "workloads": [{"name": "w"}]}, tmp_path, "x", "")
    await check_claims(cast(Client, Api(None)), none.experiment, make(none, {}))
