"""From requests to steps: what users asked for, without objects that controllers create again. Pure: no I/O.

Ownership decides what is replayed. An object is not replayed if its owner is replayed and has a kind for which a
running controller creates objects. A pod is replayed if its owner existed before the log, or belongs to an operator
that no clone has: nothing else would create it. The decisions of schedulers (bindings, preemptions), the reports of
nodes and their consequences are left to the clone.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.extras.capture.day import kept
from kumulus.extras.capture.day.nodes import Cordons, NotUnderstood, patched
from kumulus.extras.capture.day.pods import PodsThen
from kumulus.extras.capture.day.requests import ApiRequest, by_control, by_scheduler, followed

_SYSTEM = frozenset(("kube-system", "kube-public", "kube-node-lease"))


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """A step that was requested."""

    at: float
    """When, in seconds since 1970."""
    do: str
    """Create, change, delete, evict, drain, cordon or uncordon."""
    job: str
    """The key of the workload that it is about, or the name of a node."""
    what: dict[str, Any] = field(default_factory=dict)
    """The object, or the fields of its spec that change."""


@dataclass
class _There:
    """A live object: its replayed workload, whether it is that workload itself, and what is known of it."""

    job: str
    replayed: bool
    queue: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)


class Day:
    """Collects the requested steps, from requests in the order of their times."""

    def __init__(self) -> None:
        self.steps: list[RequestedStep] = []
        self.pods = PodsThen()
        self.left_out: Counter[str] = Counter()
        self.classes: dict[str, int] = {}
        self._there: dict[tuple[str, str, str], _There] = {}
        self._deleted_owners: set[tuple[str, str, str]] = set()
        self._numbers: Counter[str] = Counter()
        self._made: set[tuple[str, str, str]] = set()
        self._cordons = Cordons()

    def take(self, request: ApiRequest) -> None:
        """Take one more request; one whose object no API server would have stored is only counted."""
        try:
            self._take(request)
        except (AttributeError, TypeError):
            self.left_out["requests with fields of a form that no object has"] += 1

    def _take(self, request: ApiRequest) -> None:
        if request.resource == "nodes":
            self._node(request)
        elif request.namespace in _SYSTEM:
            return
        elif request.resource == "namespaces":
            if request.verb == "delete" and not request.subresource:
                for key in [key for key in self._there if key[1] == request.name]:
                    self._delete(key, request, certain=True)
        elif request.resource == "pods" and request.subresource:
            self._of_pod(request)
        elif request.resource == "priorityclasses":
            self._class(request)
        elif (request.group, request.resource) in kept.GROUPS:
            self._workload(request)
        elif request.verb == "create" and not request.subresource and request.resource in _REPORTED:
            self.left_out[_REPORTED[request.resource]] += 1

    def end(self) -> None:
        """Leave out claims and groups of which the log has no creation, which is known once all requests are taken."""
        for step in self.steps:
            namespace = step.job.split("/")[1] if step.do in ("create", "change") else ""
            made = step.what.get("object") or step.what
            for what in kept.without_unknown(made, namespace, self._made):
                self.left_out[f"{what} that were there before the log: what names them is replayed without"] += 1

    def _workload(self, request: ApiRequest) -> None:
        key = (kept.GROUPS[request.group, request.resource], request.namespace, request.name)
        if request.verb == "deletecollection":
            self._delete_collection(key[0], request)
        elif request.verb == "delete":
            self._delete(key, request)
        elif request.verb == "create" or (request.verb == "patch" and request.created):
            if not request.subresource:
                self._create(key, request)
        elif request.subresource in ("", "scale"):
            self._change(key, request)

    def _create(self, key: tuple[str, str, str], request: ApiRequest) -> None:
        kind, namespace, name = key
        self._deleted_owners.discard(key)
        raw = request.body
        if raw is None:
            self.left_out[f"{kind} created without its object in the log: its level has to be Request or above"] += 1
            return
        metadata = dict(raw.get("metadata") or {})
        if not name:
            prefix = str(metadata.get("generateName") or f"{kind.lower()}-")
            self._numbers[prefix] += 1
            name = f"{prefix}{self._numbers[prefix]}"
        key = (kind, namespace, name)
        owner = _owner(metadata, namespace)
        there = self._there.get(owner) if owner else None
        if there is not None and there.job and owner and owner[0] in kept.CONTROLLED:
            self._there[key] = _There(there.job, False, there.queue)
            if kind == "Pod":
                self._came(key, request, there.job, there.queue, raw)
            return
        if owner in self._deleted_owners:
            # Its controller had not seen the deletion yet. The garbage collector removes this object.
            return
        if kind == "Pod" and any(each.get("kind") == "Node" for each in metadata.get("ownerReferences") or ()):
            return
        if kind == "ResourceClaim" and owner is not None:
            # Made of a template, or by a scheduler for extended resources: it is made again.
            return
        whole = {**raw, "metadata": {**metadata, "name": name, "namespace": namespace}}
        found = kept.workload(kind, whole, request.api_version)
        if found is None:
            self.left_out[f"{kind} without what it needs to be replayed"] += 1
            return
        for what in kept.lost(raw):
            self.left_out[what] += 1
        self._made.add((kind, namespace, name))
        job, queue = f"{kind}/{namespace}/{name}", kept.queue_of(found)
        self._numbers[job] += 1
        job = job if self._numbers[job] == 1 else f"{job}#{self._numbers[job]}"
        self._there[key] = _There(job, True, queue, dict(whole) if kind != "Pod" else {}, found)
        self.steps.append(RequestedStep(request.at, "create", job, {"queue": queue, "object": found}))
        if kind == "Pod":
            self._came(key, request, job, queue, raw)

    def _came(
        self, key: tuple[str, str, str], request: ApiRequest, job: str, queue: str, raw: Mapping[str, Any]
    ) -> None:
        spec = raw.get("spec")
        node = str(spec.get("nodeName") or "") if isinstance(spec, Mapping) else ""
        self.pods.create(key[1:], request.at, job, queue, spec, node)
        if isinstance(raw.get("status"), Mapping):
            self.pods.status(key[1:], request.at, raw["status"])
        if isinstance(spec, Mapping) and spec.get("priorityClassName") and isinstance(spec.get("priority"), int):
            self.classes.setdefault(str(spec["priorityClassName"]), spec["priority"])

    def _change(self, key: tuple[str, str, str], request: ApiRequest) -> None:
        kind = key[0]
        if kind == "Pod":
            self._pod_changed(key[1:], request)
            return
        there = self._there.get(key)
        if there is None or not there.replayed or kind not in kept.CONTROLLED:
            if there is None and kind in kept.CONTROLLED and not by_control(request):
                self.left_out[f"changes of {kind}s that were there before the log; their new pods are replayed"] += 1
            return
        try:
            there.raw = self._after(there.raw, request)
        except NotUnderstood as error:
            self.left_out[f"a patch of a {kind} that {error}"] += 1
            return
        found = kept.workload(kind, there.raw, str(there.kept["apiVersion"]))
        if found is None:
            return
        before, after = there.kept["spec"], found["spec"]
        changed = {
            name: after.get(name)
            for name in ("replicas", "parallelism", "suspend", "paused", "template")
            if after.get(name) != before.get(name) and after.get(name) is not None
        }
        there.kept = found
        if kind == "Job":
            # A Job's template is immutable, except for what its queue adds.
            changed.pop("template", None)
        if changed:
            self.steps.append(RequestedStep(request.at, "change", there.job, {"spec": changed}))

    @staticmethod
    def _after(raw: dict[str, Any], request: ApiRequest) -> dict[str, Any]:
        """An object after a change of the object or of its scale."""
        body = request.body
        if request.subresource == "scale":
            spec = body.get("spec") if body is not None else None
            replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
            if isinstance(request.sent, list):
                replicas = patched({"spec": {"replicas": 0}}, request.sent)["spec"]["replicas"]
            if not isinstance(replicas, int):
                return raw
            return {**raw, "spec": {**raw.get("spec", {}), "replicas": replicas}}
        if request.answered is not None or request.verb == "update":
            return {**raw, "spec": (body or {}).get("spec") or raw.get("spec")}
        found: dict[str, Any] = patched(raw, request.sent if request.sent is not None else {})
        return found

    def _pod_changed(self, key: tuple[str, str], request: ApiRequest) -> None:
        """Take a change of a pod: KWOK's recording and captures show bindings and ends in the pod itself."""
        body = request.body or {}
        spec, status = body.get("spec"), body.get("status")
        if isinstance(spec, Mapping) and spec.get("nodeName"):
            self.pods.bind(key, request.at, str(spec["nodeName"]))
        if status is not None:
            self.pods.status(key, request.at, status)

    def _delete(self, key: tuple[str, str, str], request: ApiRequest, certain: bool = False) -> None:
        if key[0] in kept.CONTROLLED:
            self._deleted_owners.add(key)
        there = self._there.get(key)
        if there is None:
            return
        pod = self.pods.there.get(key[1:]) if key[0] == "Pod" else None
        # It completes an earlier deletion, or follows from the end of the pod or from its node.
        if pod is not None and (pod.leaving or pod.ended is not None or followed(request)):
            if there.replayed and pod.ended is not None and not followed(request):
                # The pod had ended; its name is free from then on.
                self.steps.append(RequestedStep(request.at, "delete", there.job))
            self._forget(key, request.at)
            return
        if pod is not None and by_scheduler(request):
            pod.leaving = pod.preempted = True
            return
        if there.replayed:
            self.steps.append(RequestedStep(request.at, "delete", there.job))
            there.job, there.replayed = "", False
        elif pod is not None and not by_control(request) and not certain:
            self.steps.append(RequestedStep(request.at, "evict", there.job, {"node": pod.node, "pod": key[2]}))
        if pod is None or pod.bound is None:
            self._forget(key, request.at)
        else:
            pod.leaving = True

    def _forget(self, key: tuple[str, str, str], at: float) -> None:
        self._there.pop(key, None)
        if key[0] == "Pod":
            self.pods.remove(key[1:], at)

    def _delete_collection(self, kind: str, request: ApiRequest) -> None:
        wanted = [pair.split("=") for pair in request.selector.split(",") if pair]
        if any(len(pair) != 2 or pair[0].endswith("!") for pair in wanted):
            self.left_out["deletions of collections by a selector other than equality"] += 1
            return
        for key in [key for key in self._there if key[:2] == (kind, request.namespace)]:
            labels = self._there[key].kept.get("metadata", {}).get("labels", {})
            if all(labels.get(name) == value for name, value in wanted):
                self._delete(key, request)

    def _of_pod(self, request: ApiRequest) -> None:
        key, sent = (request.namespace, request.name), request.sent
        if request.subresource == "binding":
            target = sent.get("target") if isinstance(sent, Mapping) else None
            self.pods.bind(key, request.at, str(target.get("name") or "") if isinstance(target, Mapping) else "")
        elif request.subresource == "status":
            body = request.body
            self.pods.status(key, request.at, body.get("status") if body else None)
        elif request.subresource == "eviction" and request.verb == "create":
            self._evict(("Pod", *key), request)

    def _evict(self, key: tuple[str, str, str], request: ApiRequest) -> None:
        there, pod = self._there.get(key), self.pods.there.get(key[1:])
        if there is None or pod is None:
            self.left_out["evictions of pods that were there before the log"] += 1
            return
        if pod.leaving:
            return
        pod.leaving = True
        if self._cordons.has(pod.node):
            if self._cordons.drain(pod.node):
                self.steps.append(RequestedStep(request.at, "drain", pod.node))
        else:
            self.steps.append(RequestedStep(request.at, "evict", there.job, {"node": pod.node, "pod": key[2]}))

    def _node(self, request: ApiRequest) -> None:
        if request.subresource or request.verb not in ("patch", "update"):
            if not request.subresource and request.verb in ("create", "delete"):
                self.left_out["nodes that came or went: say so in the timeline, by resize or a fault"] += 1
            return
        do = self._cordons.take(request)
        if do:
            self.steps.append(RequestedStep(request.at, do, request.name))

    def _class(self, request: ApiRequest) -> None:
        body = request.body
        if request.verb == "create" and body is not None and isinstance(body.get("value"), int):
            metadata = body.get("metadata")
            name = str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
            if name and not name.startswith("system-"):
                self.classes[name] = body["value"]


_ALWAYS = frozenset(("nodes", "namespaces", "priorityclasses"))


def _owner(metadata: Mapping[str, Any], namespace: str) -> tuple[str, str, str] | None:
    for each in metadata.get("ownerReferences") or ():
        if isinstance(each, Mapping) and each.get("controller"):
            return str(each.get("kind")), namespace, str(each.get("name"))
    return None


def counts(request: ApiRequest) -> bool:
    """Whether a request is relevant for a day: in a busy cluster's log, few are."""
    if request.subresource == "status":
        return request.resource == "pods"
    return (
        (request.group, request.resource) in kept.GROUPS or request.resource in _ALWAYS or request.resource in _REPORTED
    )


_REPORTED = {
    "cronjobs": "CronJobs: the Jobs that they made are replayed instead",
    "horizontalpodautoscalers": "autoscalers: what they scaled is replayed instead",
    "persistentvolumeclaims": "claims: nobody provisions volumes in a replay",
}
