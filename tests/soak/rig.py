"""A stack of a thousand nodes to do harm to: what it declares, what may be there, and how it is brought up again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from tests.support.api import METADATA, Api, Object
from tests.support.project import NODES, Project, Result, Running

GPU = "nvidia.com/gpu"
ROUND = "example.com/round"
COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
UP = ("up", "--yes", "--skip-preview")
DESTROY = ("destroy", "--yes", "--skip-preview")
OPERATIONS = ("create", "update", "delete")


@dataclass(frozen=True)
class Fleet:
    """What a stack file declares.

    Attributes:
        pools: nodes by ``<group>-<zone>``, the groups being ``a`` and ``b``; a pool that is left out has none.
        mark: the value of a label, and of a taint, of the nodes of these pools.
        gpus: GPUs of each node.
    """

    pools: Mapping[str, int] = field(default_factory=dict)
    mark: str = "first"
    gpus: int = 8

    def cluster(self) -> dict[str, Any]:
        """The stack file's ``kumulus:cluster``; a group of three nodes is always there and never changed."""
        groups = [_group("keep", {"z": 3}, "kept", 8)]
        for name in ("a", "b"):
            zones = {pool[2:]: count for pool, count in self.pools.items() if pool.startswith(f"{name}-")}
            if zones:
                groups.append(_group(name, zones, self.mark, self.gpus))
        return {"nodeGroups": groups}

    def nodes(self) -> dict[str, tuple[str, str, str, str]]:
        """What has to be there, computed without the product: by node name its mark, taint, GPUs and group."""
        found = {f"keep-z-{ordinal}": ("kept", "kept", "8", "keep") for ordinal in range(3)}
        for pool, count in self.pools.items():
            for ordinal in range(count):
                found[f"{pool}-{ordinal}"] = (self.mark, self.mark, str(self.gpus), pool[:1])
        return found


NOTHING = Fleet()


def thousand(mark: str = "first", gpus: int = 8, shift: int = 0) -> Fleet:
    """A thousand nodes in four pools, some of them moved from the pools of one group to those of the other."""
    return Fleet({"a-z1": 250 + shift, "a-z2": 250 - shift, "b-z1": 250 - shift, "b-z2": 250 + shift}, mark, gpus)


def _group(name: str, zones: Mapping[str, int], mark: str, gpus: int) -> dict[str, Any]:
    return {
        "name": name,
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
        create_through: how the stack has its nodes made, as ``kwok.createThrough``.
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
        """Look at the cluster with this client from now on, wherever its kubeconfig may lead."""
        self._own = api

    def want(self, fleet: Fleet) -> None:
        """Write the stack file."""
        self.wanted = fleet
        self.project.write_stack({**fleet.cluster(), "kwok": {"createThrough": self.create_through}})

    def become(self, fleet: Fleet) -> None:
        """Bring the stack up without harm."""
        self.want(fleet)
        self.project.up()
        found = self.faults()
        assert not found, found

    def recover(self) -> Result:
        """The next up: after ``pulumi cancel`` where the killed command left its lock."""
        locks = self.project.directory.parent / "state" / ".pulumi" / "locks"
        if any(path.is_file() for path in locks.rglob("*")):
            cancelled = self.project.pulumi("cancel", "--yes")
            assert cancelled.code == 0, cancelled.text
        return self.project.pulumi(*UP)

    def faults(self) -> list[str]:
        """What is not exactly as wanted: nodes, their fields, processes; empty when all is."""
        there = {node["metadata"]["name"]: _seen(node) for node in self.api.list(NODES)}
        wanted = self.wanted.nodes()
        found = [f"{name} is missing" for name in wanted.keys() - there.keys()]
        found += [f"{name} is too many" for name in there.keys() - wanted.keys()]
        found += [
            f"{name} has {there[name]} instead of {wanted[name]}"
            for name in wanted.keys() & there.keys()
            if there[name] != wanted[name]
        ]
        running = {name.partition("/")[2]: len(pids) for name, pids in self.project.processes().items()}
        if running != dict.fromkeys(COMPONENTS, 1):
            found.append(f"running are {running}")
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
    """Counts what happens to nodes while a command runs, by a watch from before its start.

    Args:
        api: a client of the cluster.
        kind: of the events that count: ADDED, also for nodes that come to match the selector, or DELETED.
        selector: of the nodes that count.
    """

    def __init__(self, api: Api, kind: str, selector: str) -> None:
        self.count = 0
        self._api, self._kind, self._selector = api, kind, selector
        self._version = api.version(NODES)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        # The server may go meanwhile: that is what some trials are about.
        with suppress(OSError, ValueError, HTTPException):
            for event in self._api.events(NODES, self._version, 90, METADATA, labelSelector=self._selector):
                self.count += event["type"] == self._kind


def await_moment(command: Running, reached: Callable[[], bool]) -> bool:
    """Wait for a moment while a command runs; False when it ended before."""
    while command.process.poll() is None:
        if reached():
            return True
        time.sleep(0.005)
    return False


def recorded_pools(project: Project) -> dict[str, Object]:
    """The outputs that the state has of each pool, by its name."""
    resources = project.state().get("resources") or []
    return {r["outputs"]["name"]: r["outputs"] for r in resources if r["type"].endswith(":NodePool")}
