"""The status of a pod that is processes, as a kubelet would give it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.processes.containers import Manifest
from kumulus.model.durations import timestamp


class RunningContainer:
    """What is known of one container while its pod is there."""

    def __init__(self, spec: Manifest, log: Path) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.log = log
        self.state: dict[str, Any] = {"waiting": {"reason": "PodInitializing"}}
        self.last: dict[str, Any] = {}
        self.restarts = 0
        self.ready = self.started = False
        self.pid = 0

    def status(self) -> dict[str, Any]:
        """Its entry in the pod's status."""
        return {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": "",
            "state": self.state,
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "lastState": self.last,
            "containerID": f"kumulus://{self.pid}" if self.pid else "",
        }


class PodStatus:
    """A pod's status by its containers."""

    def __init__(self, address: str, first: Sequence[RunningContainer], containers: Sequence[RunningContainer]) -> None:
        self._address = address
        self._first = first
        self._containers = containers
        self._began = timestamp()
        self._conditions: dict[str, tuple[str, str]] = {}

    def written(self, pod: Manifest, *, has_sandbox: bool) -> dict[str, Any]:
        """The status as of now."""
        begun = all("terminated" in each.state and not each.state["terminated"]["exitCode"] for each in self._first)
        ready = begun and all(each.ready for each in self._containers)
        seen = {"PodReadyToStartContainers": has_sandbox, "Initialized": begun}
        seen |= {"ContainersReady": ready, "Ready": ready, "PodScheduled": True}
        ours = [self._condition(kind, holds) for kind, holds in seen.items()]
        others = [each for each in (pod.get("status") or {}).get("conditions") or [] if each["type"] not in seen]
        return {
            "phase": self._phase(begun, pod["spec"].get("restartPolicy", "Always")),
            "conditions": [*others, *ours],
            "startTime": self._began,
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "containerStatuses": [each.status() for each in self._containers],
            "initContainerStatuses": [each.status() for each in self._first],
        }

    def _phase(self, begun: bool, policy: str) -> str:
        failed = [each for each in self._first if each.state.get("terminated", {}).get("exitCode")]
        ended = [each.state["terminated"]["exitCode"] for each in self._containers if "terminated" in each.state]
        if policy == "Never" and failed:
            return "Failed"
        if len(ended) == len(self._containers) and (policy == "Never" or (policy == "OnFailure" and not any(ended))):
            return "Failed" if any(ended) else "Succeeded"
        return "Running" if begun and any(each.pid for each in self._containers) else "Pending"

    def _condition(self, kind: str, holds: bool) -> dict[str, str]:
        value = str(holds)
        if self._conditions.get(kind, ("", ""))[0] != value:
            self._conditions[kind] = (value, timestamp())
        return {"type": kind, "status": value, "lastTransitionTime": self._conditions[kind][1]}
