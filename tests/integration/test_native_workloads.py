"""Groups of pods in one place of a topology: Kubernetes' own, with `workloads: native`, and Kueue's Jobs."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from kumulus.extras.capture import mark, putting, writing
from kumulus.extras.capture.day.importing import import_day
from kumulus.extras.capture.fit import fit
from kumulus.extras.capture.live import Reader
from kumulus.extras.capture.probe import Probe
from kumulus.extras.capture.spool import Spool
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.plan.pods import JOB_LABEL
from kumulus.extras.lab.report.model import Details
from kumulus.extras.lab.report.why import waits_of
from kumulus.extras.schedulers import SchedulerError, definitions, registry
from kumulus.extras.schedulers.kueue import workloads as kueue
from kumulus.extras.schedulers.process import start
from kumulus.extras.watch.history.document import load
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.objects import collection
from kumulus.model.pools import GROUP_LABEL
from tests.integration.conftest import JOBS, NODES, PODS, Faults, Plane, Pools, plane_at
from tests.integration.test_resource_slices import CLAIMS, CLASSES, RESOURCE, TEMPLATES, WITHOUT_GPUS, devices
from tests.support import runs
from tests.support.api import Object
from tests.support.recorded_day import audited

pytestmark = pytest.mark.integration
ZONE = "topology.kubernetes.io/zone"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
OWN_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
OWN_WORKLOADS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
QUEUED = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
POLICIES = ("Never", "PreemptLowerPriority")
ONE_PER_NODE = {"cpu": "1", "pods": "110"}
GANG = {"gang": True, "requests": {"cpu": "1"}, "topology": {"required": "zone"}, "disruption": "all"}


def needs(scheduler: str) -> None:
    """Skip where its programs are not built."""
    for tool in registry.get(scheduler).tools:
        try:
            definitions.find(tool, scheduler)
        except SchedulerError as error:
            pytest.skip(str(error))


async def run(
    plane: Plane,
    directory: Path,
    workloads: list[dict[str, Any]],
    scheduler: str = "native",
    more: Mapping[str, Any] = MappingProxyType({}),
    **seen: Any,
) -> tuple[Details, Path]:
    file = directory / "experiment.yaml"
    given = {"name": scheduler, "scheduler": {"name": scheduler}, "workloads": workloads, "settle": "3s"}
    # Where pods are preempted, or a queue keeps them back, this ends it: what is to happen takes 3 s on a busy machine.
    file.write_text(yaml.safe_dump({**given, "timeout": "12s", **more}))
    report, made = await runs.run(plane.observed.kubeconfig, file, **seen)
    return report.results.tests[0].details, made


async def share(plane: Plane, pools: Pools, workloads: Callable[[str, Object], Object], gpus: int = 1) -> str:
    """A gang of three pods that share its claim of one GPU of a node; returns its name, which is the pool's, too."""
    inputs = pools.inputs(1, resourceSlices=devices(gpus), capacity=WITHOUT_GPUS, taints=[])
    await pools.create(inputs)
    name = str(inputs["name"])
    workloads(CLASSES, {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}})
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": name}}]}}
    workloads(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
    claims = [{"name": "shared", "resourceClaimTemplateName": name}]
    group = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": claims}
    workloads(OWN_GROUPS, {"metadata": {"name": name}, "spec": group})
    for number in range(3):
        container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "shared"}]}}
        pod = {"containers": [container], "resourceClaims": claims, "schedulingGroup": {"podGroupName": name}}
        workloads(PODS, {"metadata": {"name": f"{name}-{number}"}, "spec": pod})
    plane.api.until(
        PODS, lambda found: [each["status"]["phase"] for each in found.values()] == ["Running"] * 3, timeout=60
    )
    return name


def named_specs(plane: Plane, path: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each["spec"] for each in plane.api.list(path)}


def zones_of_pods(plane: Plane) -> tuple[dict[str, Counter[str]], Callable[[object], None]]:
    """In which zones the pods of the workloads `fits` and `never` are, those without a node in none; as last looked."""
    zone_of = {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in plane.api.list(NODES)}
    zones: dict[str, Counter[str]] = {}

    def look(_: object) -> None:
        pods = plane.api.list("/api/v1/pods", labelSelector=JOB_LABEL)
        for name in ("fits", "never"):
            placed = [each["spec"].get("nodeName") for each in pods if each["metadata"]["name"].startswith(name)]
            zones[name] = Counter(zone_of.get(node, "") for node in placed)

    return zones, look


async def sliced(
    plane: Plane, pools: Pools, directory: Path, scheduler: str
) -> tuple[Details, Path, dict[str, Counter[str]]]:
    """Two gangs of three slices, each of one node: one fits into a zone; the other zone has room for its pods only."""
    for zone, nodes, cpu in (("odd", 2, "3"), ("even", 3, "2")):
        capacity = {"cpu": cpu, "memory": "1Gi", "pods": "110"}
        await pools.create(pools.inputs(nodes, labels={ZONE: zone}, capacity=capacity))
    zones, look = zones_of_pods(plane)
    gang = {"workers": 6, "gang": True, "requests": {"cpu": "1"}}
    topology = {"required": "zone", "slices": {"required": "host", "size": 2}}
    workloads = [
        {"name": "fits", **gang, "topology": topology},
        {"name": "never", **gang, "topology": topology, "arrival": {"after": "4s"}},
    ]
    return *await run(plane, directory, workloads, scheduler, on_sample=look), zones


async def preempted(
    plane: Plane, pools: Pools, directory: Path, scheduler: str, kinds: Mapping[str, dict[str, Any]]
) -> tuple[dict[str, dict[str, int]], dict[str, Object]]:
    """Workloads of a higher priority come to nodes that are full, in one run: those of each kind by each policy.

    Args:
        kinds: by a name without a dash, what is else of the workloads.

    Returns:
        How many pods are preempted by each kind and policy; the specs of the groups that there were, by their names.
    """
    workloads, there, groups = [], Counter[str](), dict[str, Object]()
    for (kind, more), policy in product(kinds.items(), POLICIES):
        # Each on nodes of its own: what the one has made room for is nothing to the other.
        name = f"{kind}-{policy.lower()}"
        await pools.create(pools.inputs(4, capacity=ONE_PER_NODE, labels={"example.com/full": name}))
        pods = {"requests": {"cpu": "1"}, "nodeSelector": {"example.com/full": name}}
        high = {"priority": 9, "arrival": {"after": "3s"}, "preemptionPolicy": policy, **pods, **more}
        workloads += [
            {"name": f"low-{name}", "workers": 4, "priority": 1, **pods},
            {"name": f"high-{name}", "workers": 2, **high},
        ]

    def look(_: object) -> None:
        found = plane.api.list("/api/v1/pods", labelSelector=JOB_LABEL)
        placed = [each["metadata"]["name"] for each in found if each["spec"].get("nodeName")]
        there.clear()
        there.update("-".join(name.split("-")[:3]) for name in placed)
        if scheduler == "native":
            groups.update(named_specs(plane, GROUPS))

    details, _ = await run(plane, directory, workloads, scheduler, {"settle": "6s"}, on_sample=look)
    assert details.measures["pods.created"] >= 12 * len(kinds), details.ended
    found = {kind: {policy: 4 - there[f"low-{kind}-{policy.lower()}"] for policy in POLICIES} for kind in kinds}
    for kind, policies in found.items():
        assert {policy: there[f"high-{kind}-{policy.lower()}"] for policy in policies} == policies
    assert details.measures["pods.preempted"] == sum(sum(policies.values()) for policies in found.values())
    return found, groups


class TestWithNativeWorkloads:
    """On a control plane of its own, as gates are of a whole cluster."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(tmp_path_factory.mktemp("native"), workloads="native") as made:
            yield made

    @pytest.mark.parametrize("kind", ["Job", "Deployment", "Pod"])
    async def test_a_gang_goes_whole_into_one_zone_and_one_that_fits_into_none_waits_whole(
        self, plane: Plane, pools: Pools, tmp_path: Path, kind: str
    ) -> None:
        for zone, nodes in (("a", 2), ("b", 4), ("c", 3)):
            await pools.create(pools.inputs(nodes, labels={ZONE: zone}, capacity=ONE_PER_NODE))
        zone_of = {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in plane.api.list(NODES)}
        zones: dict[str, Counter[str]] = {}
        groups: dict[str, dict[str, Any]] = {}

        def look(_: object) -> None:
            pods = plane.api.list("/api/v1/pods", labelSelector=JOB_LABEL)
            for name in ("fits", "never"):
                placed = [each["spec"].get("nodeName") for each in pods if each["metadata"]["name"].startswith(name)]
                zones[name] = Counter(zone_of.get(node, "") for node in placed)
            groups.update({each["metadata"]["name"].partition("-")[0]: each for each in plane.api.list(GROUPS)})

        workloads = [{"name": "fits", "workers": 4}, {"name": "never", "workers": 5}]
        workloads = [{"kind": kind, **each, **GANG} for each in workloads]
        details, made = await run(plane, tmp_path, workloads, on_sample=look)
        assert zones == {"fits": {"b": 4}, "never": {"": 5}}
        assert groups["fits"]["spec"]["schedulingConstraints"] == {"topology": [{"key": ZONE}]}
        assert groups["fits"]["spec"]["disruptionMode"] == {"all": {}}
        told = {name: each["status"]["conditions"][0] for name, each in groups.items()}
        assert (told["fits"]["type"], told["fits"]["status"]) == ("PodGroupInitiallyScheduled", "True")
        assert (told["never"]["status"], told["never"]["reason"]) == ("False", "Unschedulable")
        measures = details.measures
        assert [measures[f"groups.{each}"] for each in ("total", "admitted", "partlyPlaced", "preempted")] == [
            2,
            1,
            0,
            0,
        ]
        # On a busy machine, the client may have stood still.
        assert "groupTimeToPlacement.max" in {**measures, **details.not_measured}
        assert measures["placements.evaluated"] >= 2 * 3, "each of two groups was tried in three zones"
        history = load(made / "history-1.json.gz")
        jobs = {str(job[0]).partition("-")[0]: str(job[0]) for job in history.jobs}
        for name, said in (
            ("fits", "Scheduled"),
            ("never", "Unschedulable: pod group is unschedulable, 0/3 placements are available"),
        ):
            found = waits_of(history, jobs[name])
            assert found is not None
            assert found[0]["steps"][-1]["said"].startswith(said)

    async def test_the_slices_of_a_gang_are_each_on_a_node_and_all_in_one_zone(
        self, plane: Plane, pools: Pools, tmp_path: Path
    ) -> None:
        details, made, zones = await sliced(plane, pools, tmp_path, "native")
        assert zones == {"fits": {"even": 6}, "never": {"": 6}}
        measures = details.measures
        assert [measures[f"groups.{each}"] for each in ("total", "admitted", "partlyPlaced")] == [6, 3, 0]
        assert [measures[f"jobs.{each}"] for each in ("total", "admitted", "partlyAdmitted")] == [2, 1, 0]
        found = waits_of(load(made / "history-1.json.gz"), "never-1")
        assert found is not None
        assert found[0]["steps"][-1]["said"].startswith("Unschedulable: pod group is unschedulable, 0/2 placements are")

    async def test_the_victims_of_a_gang_are_counted_by_their_own_gang(
        self, plane: Plane, pools: Pools, tmp_path: Path
    ) -> None:
        await pools.create(pools.inputs(4, labels={ZONE: "a"}, capacity=ONE_PER_NODE))
        low = {"name": "low", "workers": 4, "priority": 1, **GANG}
        high = {"name": "high", "workers": 2, "priority": 9, "arrival": {"after": "3s"}, **GANG}
        details, _ = await run(plane, tmp_path, [low, high])
        assert (details.measures["groups.preempted"], details.measures["pods.preempted"]) == (1, 4)
        ((group, pods),) = details.victims.items()
        assert "low" in group
        assert pods == 4

    async def test_what_never_preempts_waits_while_there_are_pods_of_a_lower_priority(
        self, plane: Plane, pools: Pools, tmp_path: Path
    ) -> None:
        kinds = {
            "gang": {"kind": "Job", "gang": True},
            "pods": {"kind": "Job", "gang": False},
            "deployment": {"kind": "Deployment", "gang": True},
        }
        found, groups = await preempted(plane, pools, tmp_path, "native", kinds)
        assert found == {kind: {"Never": 0, "PreemptLowerPriority": 2} for kind in kinds}
        for kind, policy in product(kinds, POLICIES):
            start = f"high-{kind}-{policy.lower()}"
            high = {spec["preemptionPolicy"] for name, spec in groups.items() if name.startswith(start)}
            assert high == {policy}

    async def test_a_gang_fits_whole_or_not_at_all(self, plane: Plane, pools: Pools) -> None:
        plane.api.create(mark.MARK.rpartition("/")[0], {"metadata": {"name": mark.MARK.rpartition("/")[2]}, "data": {}})
        for zone, nodes in (("a", 2), ("b", 4)):
            labels = {ZONE: zone, GROUP_LABEL: "train"}
            await pools.create(pools.inputs(nodes, labels=labels, capacity=ONE_PER_NODE, taints=[]))
        group = {
            "schedulingPolicy": {"gang": {"minCount": 5}},
            "schedulingConstraints": {"topology": [{"key": ZONE}]},
        }
        spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
        wanted = Probe("train", "default", {}, spec, 5, group=group)
        try:
            async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
                alone = await fit(client, replace(wanted, group={}))
                assert alone.verdict.fitted == 5
                answer = await fit(client, wanted)
        finally:
            plane.api.delete(mark.MARK)
        assert answer.verdict.fitted == 0
        assert answer.verdict.reason
        assert "dropping schedulingConstraints" in [change.what for change in answer.changes]
        assert any(change.cost == 1 and change.what.startswith("1 more node like") for change in answer.changes)
        assert {change.what.partition(" of ")[2]: change.cost for change in answer.changes if change.cost} == {
            "train in a": 3,
            "train in b": 1,
        }
        assert [each for each in plane.api.list(GROUPS) if not each["metadata"].get("deletionTimestamp")] == []

    async def test_the_pods_of_a_group_share_the_groups_claim_and_are_told_of_its_devices_health(
        self, plane: Plane, pools: Pools, faults: Faults, workloads: Callable[[str, Object], Object]
    ) -> None:
        name = await share(plane, pools, workloads)
        (claim,) = plane.api.list(CLAIMS)
        assert len(claim["status"]["allocation"]["devices"]["results"]) == 1
        assert [each["resource"] for each in claim["status"]["reservedFor"]] == ["podgroups"]

        def told() -> list[list[Object]]:
            statuses = [each["status"]["containerStatuses"][0] for each in plane.api.list(PODS)]
            return [each["allocatedResourcesStatus"] for each in statuses]

        def of_the_claim(health: str) -> list[Object]:
            resources = [{"resourceID": f"gpu.nvidia.com/{name}-0/gpu-0", "health": health}]
            return [{"name": "claim:shared", "resources": resources}]

        await faults.begin(faults.inputs("ill", {name: "0"}, capacity={"nvidia.com/gpu": "-1"}, devices="taint"))
        assert told() == [of_the_claim("Unhealthy")] * 3
        await faults.end("ill")
        assert told() == [of_the_claim("Healthy")] * 3

    async def test_a_captured_group_has_the_same_device_in_a_clone(
        self, plane: Plane, pools: Pools, workloads: Callable[[str, Object], Object], tmp_path: Path
    ) -> None:
        name = await share(plane, pools, workloads, gpus=4)
        (before,) = plane.api.list(CLAIMS)
        spool = Spool(tmp_path, "source")
        async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
            await Reader(client, spool, 1000, lambda kind, count: None).read()
            writing.write(spool, tmp_path, None)
            plane.api.delete(f"{PODS}?gracePeriodSeconds=0")
            plane.api.until(PODS, lambda found: not found)
            for path in (f"{OWN_GROUPS}/{name}", f"{TEMPLATES}/{name}"):
                plane.api.delete(path)
            plane.api.until(CLAIMS, lambda found: not found, timeout=60)
            done = await putting.put(client, tmp_path / "workload.yaml", lambda kind, count: None)
        assert (done.made["PodGroup"], done.made["Pod"], done.claims) == (1, 3, [])
        (after,) = plane.api.list(CLAIMS)
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        results = [each["status"]["allocation"]["devices"]["results"] for each in (before, after)]
        assert results[0] == results[1]
        (group,) = plane.api.list(OWN_GROUPS)
        reserved = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": name}
        assert after["status"]["reservedFor"] == [{**reserved, "uid": group["metadata"]["uid"]}]
        plane.api.delete(f"{PODS}?gracePeriodSeconds=0")

    async def test_a_recorded_group_has_a_claim_of_its_own_in_a_replay(
        self, plane: Plane, pools: Pools, workloads: Callable[[str, Object], Object], tmp_path: Path
    ) -> None:
        log, file = tmp_path / "audit.log", tmp_path / "day.yaml"
        audited(plane.directory, log, plane.api)
        await share(plane, pools, workloads, gpus=2)
        found = import_day([log], file, "test")
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"settle": "2s", "timeout": "60s"}))
        seen: list[tuple[Object, list[str]]] = []

        def look(_: object) -> None:
            claims = [each for each in plane.api.list(f"{RESOURCE}/resourceclaims") if "allocation" in each["status"]]
            names = [each for each in claims if each["metadata"]["namespace"] != "default"]
            pods = plane.api.list("/api/v1/pods", labelSelector=JOB_LABEL)
            seen.extend((each["status"], [pod["status"]["phase"] for pod in pods]) for each in names)

        report, _ = await runs.run(plane.observed.kubeconfig, file, on_sample=look)
        assert Counter(step.job.partition("/")[0] for step in found.day.steps) == {
            "ResourceClaimTemplate": 1,
            "PodGroup": 1,
            "Pod": 3,
        }
        beside = report.results.tests[0].details.replays["recorded"]
        assert (beside.refused, beside.all.now.scheduled) == (0, 3), beside.refusals
        status, phases = seen[-1]
        assert phases == ["Running"] * 3
        assert [each["resource"] for each in status["reservedFor"]] == ["podgroups"]
        plane.api.delete(f"{PODS}?gracePeriodSeconds=0")

    async def test_a_captured_gang_is_the_same_in_a_clone(self, plane: Plane, pools: Pools, tmp_path: Path) -> None:
        await pools.create(pools.inputs(2, labels={ZONE: "a"}, capacity=ONE_PER_NODE, taints=[]))
        groups, pods = OWN_GROUPS, PODS

        def gang(name: str, least: int) -> None:
            spec = {
                "schedulingPolicy": {"gang": {"minCount": least}}, "disruptionMode": {"all": {}},
                "schedulingConstraints": {"topology": [{"key": ZONE}]},
            }  # fmt: skip
            templates = {"podGroupTemplates": [{"name": "all", **spec}]}
            plane.api.create(OWN_WORKLOADS, {"metadata": {"name": name}, "spec": templates})
            reference = {"workloadRef": {"workloadName": name, "templateName": "all"}}
            plane.api.create(groups, {"metadata": {"name": name}, "spec": {**spec, **reference}})
            for number in range(least):
                container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
                spec = {"containers": [container], "schedulingGroup": {"podGroupName": name}}
                plane.api.create(pods, {"metadata": {"name": f"{name}-{number}"}, "spec": spec})

        def nodes() -> dict[str, str]:
            return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in plane.api.list(pods)}

        gang("runs", 2)
        plane.api.until(pods, lambda found: all(each["spec"].get("nodeName") for each in found.values()))
        gang("waits", 3)
        spool = Spool(tmp_path, "source")
        async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
            await Reader(client, spool, 1000, lambda kind, count: None).read()
            writing.write(spool, tmp_path, None)
            before, (specs, templates) = nodes(), (named_specs(plane, each) for each in (groups, OWN_WORKLOADS))
            for path, names in ((pods, before), (groups, specs), (OWN_WORKLOADS, templates)):
                for name in names:
                    plane.api.delete(f"{path}/{name}")
                plane.api.until(path, lambda found: not found)
            done = await putting.put(client, tmp_path / "workload.yaml", lambda kind, count: None)
        try:
            assert (done.made["Workload"], done.made["PodGroup"], done.made["Pod"], done.refused) == (2, 2, 5, {})
            assert named_specs(plane, groups) == specs
            assert named_specs(plane, OWN_WORKLOADS) == templates
            assert nodes() == before
            named = {each["spec"]["schedulingGroup"]["podGroupName"] for each in plane.api.list(pods)}
            assert named == {"runs", "waits"}
        finally:
            for path in (pods, groups, OWN_WORKLOADS):
                for each in plane.api.list(path):
                    plane.api.delete(f"{path}/{each['metadata']['name']}")

    async def test_kueue_admits_a_native_gang_and_its_group_counts_the_pods_that_kueue_counts(
        self, plane: Plane, pools: Pools, tmp_path: Path
    ) -> None:
        """What Kueue's test/e2e/singlecluster/was/job_test.go (0.19.2) is to show, and skips."""
        needs("kueue")
        await pools.create(pools.inputs(6, labels={ZONE: "a"}, capacity={**ONE_PER_NODE, "memory": "1Gi"}, taints=[]))
        running = await start("kueue", Path(plane.observed.kubeconfig), tmp_path / "kueue")
        try:
            for each in kueue.queue("default", "default", {"cpu": "4"}):
                plane.api.create(collection(each), each)
            for name, pods in (("fits", 3), ("never", 5)):
                container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
                template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
                count = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
                spec = {**count, "scheduling": {"schedulingPolicy": {"gang": {"minCount": pods}}}, "template": template}
                job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
                (made,) = kueue.single(job, "default")
                await asyncio.to_thread(plane.api.create, JOBS, made)
            await asyncio.to_thread(
                plane.api.until, PODS, lambda found: sum("nodeName" in pod["spec"] for pod in found.values()) == 3, 60
            )
            await asyncio.sleep(3)
            queued = {each["metadata"]["ownerReferences"][0]["name"]: each for each in plane.api.list(QUEUED)}
            groups = {each["metadata"]["ownerReferences"][0]["name"]: each for each in plane.api.list(OWN_GROUPS)}
            jobs = {each["metadata"]["name"]: each["spec"] for each in plane.api.list(JOBS)}
        finally:
            for name in ("fits", "never"):
                plane.api.delete(f"{JOBS}/{name}?propagationPolicy=Background")
            plane.api.until(PODS, lambda found: not found)
            await running.stop()
        kept = {name: each["scheduling"]["schedulingPolicy"]["gang"]["minCount"] for name, each in jobs.items()}
        group = {name: each["spec"]["schedulingPolicy"]["gang"]["minCount"] for name, each in groups.items()}
        counted = {name: each["spec"]["podSets"][0]["count"] for name, each in queued.items()}
        assert kept == group == counted == {"fits": 3, "never": 5}
        assert {name: each["suspend"] for name, each in jobs.items()} == {"fits": False, "never": True}
        assert "conditions" in groups["fits"]["status"]
        assert "conditions" not in groups["never"]["status"], "its pods do not exist before Kueue admits it"


async def test_pods_of_the_default_scheduler_preempt_by_their_policy(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    found, _ = await preempted(plane, pools, tmp_path, "default", {"pods": {}})
    assert found == {"pods": {"Never": 0, "PreemptLowerPriority": 2}}


async def test_kueue_admits_a_job_that_has_to_be_in_one_zone_when_a_zone_has_room_for_all_of_it(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    needs("kueue")
    for zone, nodes in (("a", 2), ("b", 4), ("c", 3)):
        await pools.create(pools.inputs(nodes, labels={ZONE: zone}, capacity={**ONE_PER_NODE, "memory": "1Gi"}))
    zones, look = zones_of_pods(plane)
    gang = {"gang": True, "requests": {"cpu": "1"}, "topology": {"required": "zone"}}
    workloads = [{"name": "fits", "workers": 4, **gang}, {"name": "never", "workers": 5, **gang}]
    await run(plane, tmp_path, workloads, "kueue", on_sample=look)
    assert zones == {"fits": {"b": 4}, "never": {}}


async def test_kueue_admits_a_job_whose_slices_are_each_on_a_node_and_all_in_one_zone(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    needs("kueue")
    *_, zones = await sliced(plane, pools, tmp_path, "kueue")
    assert zones == {"fits": {"even": 6}, "never": {}}


@pytest.mark.every_version
async def test_a_cluster_without_them_is_told_of_before_anything_is_created(plane: Plane, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"does not serve scheduling.k8s.io/v1beta1\n  Write kwok: {workloads: native}"):
        await run(plane, tmp_path, [{"name": "fits", "workers": 4, **GANG}])
