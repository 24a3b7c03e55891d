"""A stack of some hundred nodes to inject faults into: what it declares, what has to exist, and how it recovers."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from kumulus.cli.backend import half_written
from tests.support import processes
from tests.support.api import METADATA, Api, Object, Refused
from tests.support.project import NODES, Project, Result, Running

GPU = "nvidia.com/gpu"
# In all pools that trials create, change and remove.
NODES_OF_A_TRIAL = 400
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
RECORDS = "/api/v1/namespaces/kube-system/configmaps"
# KWOK acquires leases, and Kubernetes' garbage collector removes them, some time after the nodes change: both yield to
# the machine's other work. A lease that does not exist after this time never will.
LEASES_WITHIN_S = 300.0
# A kwok-controller that acquires no more leases does not recover: KWOK 0.8.0's queue can be stuck for good, which
# docs/reliability.md describes. A new kwok-controller begins with a new queue.
STUCK_AFTER_S = 60.0
STUCK = "kwok-controller is stuck"
ROUND = "example.com/round"
COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
UP = ("up", "--yes", "--skip-preview")
DESTROY = ("destroy", "--yes", "--skip-preview")
OPERATIONS = ("create", "update", "delete")


@dataclass(frozen=True)
class Fleet:
    """What a stack file declares."""

    pools: Mapping[str, int] = field(default_factory=dict)
    """Nodes by ``<group>-<zone>``, the groups being ``a`` and ``b``; a pool that is left out has none."""
    mark: str = "first"
    """The value of a label, and of a taint, of the nodes of these pools."""
    gpus: int = 8
    """GPUs of each node."""

    def cluster(self) -> dict[str, Any]:
        """The stack file's ``kumulus:cluster``; a group of three nodes is always there and never changed."""
        groups = [_group("keep", {"z": 3}, "kept", 8)]
        for name in ("a", "b"):
            zones = {pool[2:]: count for pool, count in self.pools.items() if pool.startswith(f"{name}-")}
            if zones:
                groups.append(_group(name, zones, self.mark, self.gpus))
        return {"nodeGroups": groups}

    def nodes(self) -> dict[str, tuple[str, str, str, str]]:
        """The nodes that have to exist, computed without the product: mark, taint, GPUs and group by node name."""
        found = {f"keep-z-{ordinal}": ("kept", "kept", "8", "keep") for ordinal in range(3)}
        for pool, count in self.pools.items():
            for ordinal in range(count):
                found[f"{pool}-{ordinal}"] = (self.mark, self.mark, str(self.gpus), pool[:1])
        return found


NOTHING = Fleet()


def many(mark: str = "first", gpus: int = 8, shift: int = 0) -> Fleet:
    """All nodes of a trial in four pools, some of them moved from the pools of one group to those of the other."""
    each = NODES_OF_A_TRIAL // 4
    return Fleet({"a-z1": each + shift, "a-z2": each - shift, "b-z1": each - shift, "b-z2": each + shift}, mark, gpus)


def has_slices(node: str) -> bool:
    """Whether a node's GPUs are available through ResourceClaims as well."""
    return not node.startswith("a-")


def _group(name: str, zones: Mapping[str, int], mark: str, gpus: int) -> dict[str, Any]:
    return {
        "name": name,
        **({"gpuProduct": "NVIDIA-L40S", "resourceSlices": {"deviceClass": ""}} if has_slices(f"{name}-") else {}),
        "placement": [{"availabilityZone": zone, "replicas": count} for zone, count in zones.items()],
        "nodeTemplate": {
            "metadata": {"labels": {ROUND: mark}},
            "taints": [{"key": ROUND, "value": mark, "effect": "NoSchedule"}],
            "capacity": {"cpu": "96", "memory": "1360Gi", "pods": "110", GPU: str(gpus)},
        },
    }


class Rig:
    """A project with one stack, and the API of its cluster.

    Args:
        project: a project without a stack.

    Attributes:
        create_through: how the stack creates its nodes, as ``kwok.createThrough``.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.wanted = NOTHING
        self.create_through = "storage"
        self._own: Api | None = None
        project.stack = "soak"

    @property
    def api(self) -> Api:
        return self._own or self.project.api()

    def look_through(self, api: Api) -> None:
        """Use this client to inspect the cluster from now on, instead of its kubeconfig."""
        self._own = api

    def want(self, fleet: Fleet, **sections: Any) -> None:
        """Write the stack file, with further sections of the cluster, which nothing here looks at."""
        self.wanted = fleet
        self.project.write_stack({**fleet.cluster(), **sections, "kwok": {"createThrough": self.create_through}})

    def become(self, fleet: Fleet) -> None:
        """Bring the stack up without faults."""
        self.want(fleet)
        self.project.up()
        found = self.faults()
        assert not found, found

    def again(self, operation: str, mark: str) -> None:
        """Restore an operation's starting point, after a fault that came too late in the attempt before."""
        if operation == "create":
            self.become(NOTHING)
        else:
            self.become(many(f"before-{mark}"))

    def recover(self) -> Result:
        """Run the next up, after ``pulumi cancel`` where the killed command left its lock."""
        self.unlock()
        return self.project.pulumi(*UP)

    def unlock(self) -> None:
        """Remove half-written state and the lock of a killed command, as `kumulus up` advises."""
        state = self.project.directory.parent / "state"
        for cut in half_written(state):
            cut.unlink()
        locks = state / ".pulumi" / "locks"
        if any(path.is_file() for path in locks.rglob("*")):
            cancelled = self.project.pulumi("cancel", "--yes")
            assert cancelled.code == 0, cancelled.text

    def faults(self) -> list[str]:
        """What is not exactly as declared: nodes, their fields, records, slices, leases, processes; empty if all is."""
        return [*self._nodes(), *self._records(), *self._slices(), *self._leases(), *self._processes()]

    def _records(self) -> list[str]:
        """The records: each pool with as many nodes as declared, and no fault."""
        there = {}
        for each in self.api.list(RECORDS, labelSelector="kumulus.io/record"):
            name, record = each["metadata"]["name"], json.loads(each["data"]["record"])
            there[name] = record.get("replicas", "a fault")
        wanted = {f"kumulus-pool-{pool}": count for pool, count in self.wanted.pools.items()} | {
            "kumulus-pool-keep-z": 3
        }
        return [] if there == wanted else [f"on record are {there} instead of {wanted}"]

    def _slices(self) -> list[str]:
        """ResourceSlices: one for each node that has to have one, with its devices."""
        there = {each["spec"]["nodeName"]: len(each["spec"]["devices"]) for each in self.api.list(SLICES)}
        wanted = {name: int(gpus) for name, (_, _, gpus, _) in self.wanted.nodes().items() if has_slices(name)}
        return [
            f"the slice of {name} has {there.get(name, 'no')} devices instead of {wanted.get(name, 'none')}"
            for name in sorted(there.keys() | wanted.keys())
            if there.get(name) != wanted.get(name)
        ]

    def _leases(self) -> list[str]:
        """Leases: one for each node, held by the kwok-controller, once it and the garbage collector are done."""
        wanted, began = set(self.wanted.nodes()), time.monotonic()
        before, changed = set[tuple[str, str]](), began
        while True:
            held = {
                each["metadata"]["name"]: each["spec"].get("holderIdentity") or "" for each in self.api.list(LEASES)
            }
            kept = {name for name, holder in held.items() if holder and holder != "kumulus-fault"}
            if kept == wanted == held.keys():
                return []
            now = time.monotonic()
            if before != set(held.items()):
                before, changed = set(held.items()), now
            stuck = now - changed > STUCK_AFTER_S
            if stuck or now - began > LEASES_WITHIN_S:
                found = f"{len(wanted - kept)} nodes have no kubelet, {len(held.keys() - wanted)} leases have no node"
                return [f"{found}: {STUCK}" if stuck else found]
            time.sleep(0.5)

    def mend(self, wrong: str) -> None:
        """Repair the stack after a trial that did not converge."""
        if STUCK in wrong:
            processes.kill(self.project.processes()[f"{self.project.stack}/kwok-controller"])
        self.project.up("--refresh")

    def _processes(self) -> list[str]:
        running = {name.partition("/")[2]: len(pids) for name, pids in self.project.processes().items()}
        return [] if running == dict.fromkeys(COMPONENTS, 1) else [f"running are {running}"]

    def _nodes(self) -> list[str]:
        there = {node["metadata"]["name"]: _seen(node) for node in self.api.list(NODES)}
        wanted = self.wanted.nodes()
        found = [f"{name} is missing" for name in wanted.keys() - there.keys()]
        found += [f"{name} is too many" for name in there.keys() - wanted.keys()]
        found += [
            f"{name} has {there[name]} instead of {wanted[name]}"
            for name in wanted.keys() & there.keys()
            if there[name] != wanted[name]
        ]
        return found


def _seen(node: Object) -> tuple[str, str, str, str]:
    labels = node["metadata"]["labels"]
    taints = {taint["key"]: taint.get("value", "") for taint in node["spec"].get("taints", [])}
    gpus = {node["status"][section].get(GPU, "") for section in ("capacity", "allocatable")}
    return (
        labels.get(ROUND, ""),
        taints.get(ROUND, ""),
        gpus.pop() if len(gpus) == 1 else f"different ones: {gpus}",
        labels.get("kumulus.io/group", ""),
    )


# --- moments ---------------------------------------------------------------------------------------------------------


class Progress:
    """Counts events of nodes while a command runs, by a watch that begins before the command.

    Args:
        kind: of the events that count: ADDED, also for nodes that come to match the selector, or DELETED.
        selector: of the nodes that count.
        survives: whether the trial kills or stops the API server or etcd, so that the watch has to be resumed.
    """

    def __init__(self, api: Api, kind: str, selector: str, survives: bool = False) -> None:
        self.count = 0
        self.problem = ""
        self._api, self._kind, self._selector, self._survives = api, kind, selector, survives
        self._version = api.version(NODES)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                # A server may end a watch early; it is resumed from the last event.
                self._follow()
                if self.problem:
                    return
            except (OSError, ValueError, HTTPException, Refused) as error:
                if not self._survives:
                    self.problem = f"the watch broke: {type(error).__name__}: {error}"
                    return
                # This trial kills or stops the API server or etcd on purpose.
                time.sleep(0.2)

    def _follow(self) -> None:
        for event in self._api.events(NODES, self._version, 600, METADATA, labelSelector=self._selector):
            if self._ended.is_set():
                return
            if event["type"] == "ERROR" and event["object"].get("code") == 410 and self._survives:
                # A restarted server has no earlier events; the moment that the trial waited for is past.
                self._version = self._api.version(NODES)
                return
            if event["type"] == "ERROR":
                self.problem = f"the watch broke: {event['object'].get('message')}"
                return
            self._version = event["object"]["metadata"]["resourceVersion"]
            self.count += event["type"] == self._kind

    def check(self) -> list[str]:
        """End the watch; returns what went wrong with it, since it determines a trial's moment."""
        problem = self.problem
        self._ended.set()
        return [problem] if problem else []


def await_moment(command: Running, reached: Callable[[], bool]) -> bool:
    """Wait for a moment while a command runs; False when it ended before."""
    while command.process.poll() is None:
        if reached():
            return True
        time.sleep(0.005)
    return False


def recorded_pools(project: Project) -> dict[str, Object]:
    """Each pool's outputs in the state, by the pool's name."""
    resources = project.state().get("resources") or []
    return {r["outputs"]["name"]: r["outputs"] for r in resources if r["type"].endswith(":NodePool")}
