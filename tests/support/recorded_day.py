"""A scripted day on a real control plane with an audit log: rollouts, jobs, a drain, a preemption."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kumulus.extras.capture.commands.replay import policy as audit_policy
from kumulus.extras.journal import programs
from kumulus.host import processes
from tests.support.api import PATIENCE_S, Api, Object, Refused

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
Step = tuple[float, Callable[[], Any]]


def audited(directory: Path, log: Path, api: Api) -> None:
    """Restart a cluster's API server at the same address, with an audit log by Kumulus' own policy."""
    policy = log.with_suffix(".policy.yaml")
    policy.write_text(audit_policy())
    (pid,) = processes.running(directory)["kube-apiserver"]
    how = programs.described(directory, "kube-apiserver", pid)
    # In one file: by default the API server begins another after 100 MB.
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=100000")
    processes.end([pid])
    programs.start(type(how)(how.directory, how.name, (*how.command, *flags), how.environment, how.working_directory))
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            api.get("/api/v1/namespaces/default")
            return
        except (OSError, Refused):
            assert time.monotonic() < ends, "the API server with an audit log does not come up"
            time.sleep(0.1)


@dataclass
class RecordedDay:
    """What users do in a day of this many jobs and seconds."""

    api: Api
    """Of the cluster."""
    nodes: list[str]
    """Its nodes; the first is drained."""
    selector: dict[str, str]
    """Labels of those nodes."""
    seconds: float = 12.0
    """How long it takes."""
    jobs: int = 8
    """How many Jobs come."""
    web: int = 6
    cpus: int = 8
    """CPUs of a node."""

    def play(self) -> None:
        """Run the steps, each at its time."""
        began = time.monotonic()
        for at, do in sorted(self._steps(), key=lambda step: step[0]):
            time.sleep(max(0.0, began + at * self.seconds - time.monotonic()))
            do()

    def _steps(self) -> list[Step]:
        web, workers = "/apis/apps/v1/namespaces/shop/deployments", "/apis/batch/v1/namespaces/train/jobs"
        api = self.api
        steps: list[Step] = [
            (0.00, self._begin),
            (0.01, lambda: api.create(web, self._of("Deployment", "web", replicas=self.web))),
            (0.02, lambda: api.create("/apis/apps/v1/namespaces/shop/statefulsets", self._of("StatefulSet", "db"))),
            (0.15, lambda: api.request("PATCH", f"{web}/web/scale", {"spec": {"replicas": self.web + 4}}, MERGE)),
            (0.30, lambda: api.request("PATCH", f"{web}/web", self._image("v2"), STRATEGIC)),
            (0.50, self._drain),
            (0.65, self._urgent),
            (0.75, lambda: api.delete("/apis/apps/v1/namespaces/shop/statefulsets/db")),
            (0.80, lambda: self._cordon(False)),
            (0.85, self._kill_one),
            (0.95, lambda: api.delete("/api/v1/namespaces/train/pods/urgent-0")),
        ]
        for number in range(self.jobs):
            made = self._job(f"job-{number}")
            steps.append((0.05 + 0.4 * number / self.jobs, lambda made=made: api.create(workers, made)))  # type: ignore[misc]
        for number in range(3):
            pod = self._pod(f"alone-{number}", "1")
            steps.append((0.35, lambda pod=pod: api.create("/api/v1/namespaces/train/pods", pod)))  # type: ignore[misc]
        return steps

    def _begin(self) -> None:
        for name in ("shop", "train"):
            self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            self.api.until(f"/api/v1/namespaces/{name}/serviceaccounts", lambda found: "default" in found)
        urgent = {"metadata": {"name": "recorded-urgent"}, "value": 1000}
        self.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", urgent)

    def _spec(self, cpu: str) -> Object:
        container = {"name": "main", "image": "v1", "resources": {"requests": {"cpu": cpu}}, "env": [_SECRET]}
        taint = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
        return {"containers": [container], "nodeSelector": self.selector, "tolerations": [taint]}

    def _of(self, kind: str, name: str, replicas: int = 3) -> Object:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": self._spec("1")}
        spec: Object = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        return {"metadata": {"name": name}, "spec": spec}

    def _job(self, name: str) -> Object:
        annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": "2s"}
        spec = {**self._spec("1"), "restartPolicy": "Never"}
        return {
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "research"}},
            "spec": {
                "parallelism": 2,
                "completions": 2,
                "template": {"metadata": {"annotations": annotations}, "spec": spec},
            },
        }

    def _pod(self, name: str, cpu: str, **spec: Any) -> Object:
        return {"metadata": {"name": name}, "spec": {**self._spec(cpu), **spec}}

    @staticmethod
    def _image(image: str) -> Object:
        return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}

    def _cordon(self, closed: bool) -> None:
        self.api.request(
            "PATCH", f"/api/v1/nodes/{self.nodes[0]}", {"spec": {"unschedulable": closed or None}}, STRATEGIC
        )

    def _drain(self) -> None:
        where = f"spec.nodeName={self.nodes[0]}"
        self.api.until("/api/v1/pods", lambda found: any(map(_runs, found.values())), fieldSelector=where)
        self._cordon(True)
        evicted = [self._evict(pod) for pod in self.api.list("/api/v1/pods", fieldSelector=where) if _runs(pod)]
        assert any(evicted), "then nobody can see that it was drained"

    def _evict(self, pod: Object) -> bool:
        """Evict a pod, unless it is already gone."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        return _unless_gone(lambda: self.api.create(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body))

    def _urgent(self) -> None:
        """Create an urgent pod for each node but one; each takes nearly a whole node."""
        for number in range(len(self.nodes) - 1):
            pod = self._pod(f"urgent-{number}", str(self.cpus - 1), priorityClassName="recorded-urgent")
            self.api.create("/api/v1/namespaces/train/pods", pod)

    def _kill_one(self) -> None:
        self.api.until(
            "/api/v1/namespaces/shop/pods",
            lambda pods: any(self._deleted(name) for name, pod in pods.items() if _runs(pod)),
            labelSelector="app=web",
        )

    def _deleted(self, name: str) -> bool:
        """Delete a pod, unless it is already gone."""
        return _unless_gone(lambda: self.api.delete(f"/api/v1/namespaces/shop/pods/{name}"))


def _unless_gone(do: Callable[[], object]) -> bool:
    try:
        do()
    except Refused as error:
        if error.status != 404:
            raise
        return False
    return True


def _runs(pod: Mapping[str, Any]) -> bool:
    return pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


_SECRET = {"name": "PASSWORD", "value": "correct horse battery staple"}


def created(lines: Iterable[str], namespaces: Callable[[str], bool]) -> dict[tuple[str, str], float]:
    """Creation times of workloads in an audit log, by kind and name, without those that controllers created."""
    found = {}
    for line in lines:
        event = json.loads(line)
        about = event.get("objectRef", {})
        if event["verb"] != "create" or about.get("subresource") or event["responseStatus"]["code"] >= 300:
            continue
        body = event.get("responseObject") or {}
        owned = (body.get("metadata") or {}).get("ownerReferences")
        kinds = ("deployments", "statefulsets", "jobs", "pods")
        if about.get("resource") in kinds and not owned and namespaces(about.get("namespace", "")):
            at = datetime.fromisoformat(event["requestReceivedTimestamp"].replace("Z", "+00:00")).timestamp()
            found[about["resource"], body["metadata"]["name"]] = at
    return found


def sent(lines: Iterable[str], run: str, deleted: Collection[str] = ()) -> list[tuple[str, str, str]]:
    """The requests of a replay in its namespaces, without evictions, sorted: verb, where, body.

    Args:
        run: the part that its namespaces' names contain.
        deleted: names of objects that users deleted; all others are deleted at the end, with the namespaces.
    """
    found = []
    for line in lines:
        event = json.loads(line)
        about = event.get("objectRef", {})
        ours = event["userAgent"] == "kumulus" and run in about.get("namespace", "")
        if ours and about.get("subresource") != "eviction" and event["verb"] in ("create", "patch", "delete"):
            if event["verb"] == "patch" and about["resource"] == "pods":
                continue  # so are its pods' finalizers
            if event["verb"] == "delete" and about.get("name") not in deleted:
                continue
            body = json.dumps(event.get("requestObject"), sort_keys=True).replace(run, "RUN")
            found.append((event["verb"], f"{about['resource']}/{about.get('name')}", body))
    return sorted(found)
