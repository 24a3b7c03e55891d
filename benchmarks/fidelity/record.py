"""Carry out a situation in a cluster, and write down what a watch saw of it."""

import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from benchmarks.fidelity.facts import counted, flat, masked, sequence, state
from benchmarks.fidelity.places import Place
from benchmarks.fidelity.situations import Object, Situation, situations
from kumulus.extras.capture.lived import fitted, written
from tests.support.api import Api, Refused

_ALL_PODS, _NODES, _NAMESPACES = "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ENDED = ("Succeeded", "Failed")
# Pods of one node at once: more, and they would be slow for want of CPU.
_AT_ONCE = 6
_SESSION_S = 3600
# Of pods that are gone too, and for the last event of a kubelet, which sends them some time after.
_SETTLED_S = 2.0
_TIMES = ("bound_s", "ready_s", "ended_s")


@dataclass
class Watched:
    """All pods of a cluster, as one watch sees them from now on."""

    place: Place
    seen: dict[str, list[tuple[float, str, Object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        api = Api(self.place.kubeconfig)
        version = api.version(_ALL_PODS)
        threading.Thread(target=self._follow, args=(api, version), daemon=True).start()

    def _follow(self, api: Api, version: str) -> None:
        # The cluster may be taken down under it.
        with suppress(OSError, ValueError):
            for event in api.events(_ALL_PODS, version, _SESSION_S):
                found, now = event["object"], time.monotonic()
                namespace = found["metadata"].get("namespace", "")
                self.seen.setdefault(namespace, []).append((now, event["type"], found))

    def pods(self, namespace: str) -> dict[str, list[tuple[float, str, Object]]]:
        """What was seen of a namespace's pods, by their UIDs in the order in which they were created."""
        found: dict[str, list[tuple[float, str, Object]]] = {}
        for each in list(self.seen.get(namespace, [])):
            found.setdefault(each[2]["metadata"]["uid"], []).append(each)
        return found


class Attempt:
    """One situation in a namespace of its own."""

    def __init__(self, place: Place, watched: Watched, situation: Situation, number: int) -> None:
        self._place, self._watched, self._situation = place, watched, situation
        self._api = Api(place.kubeconfig)
        self._namespace = f"{situation.slug}-{number}"
        self._node = place.nodes[situation.shape]
        self._names = {self._namespace: "‹namespace›", **dict.fromkeys(place.nodes.values(), "‹node›")}
        self._document: dict[str, str] = {}
        self._kind, self._path = "Pod", ""

    def run(self) -> Object:
        """Carry it out; returns what was seen, by kind of fact."""
        api = self._api
        api.create(_NAMESPACES, {"metadata": {"name": self._namespace}})
        api.until(f"{_NAMESPACES}/{self._namespace}/serviceaccounts", lambda found: "default" in found)
        began, said = time.monotonic(), ""
        step: Mapping[str, Any] = {}
        if self._situation.node:
            self._kind, self._path = "Node", f"{_NODES}/{self._node}"
        for each in [] if self._situation.node else self._situation.wanted(self._node):
            self._create(each)
        try:
            for step in self._situation.steps:
                self._step(step)
        except AssertionError:
            said = f"in {self._situation.within:.0f} s: {json.dumps(step['until'])}"
        except Refused as refusal:
            said = f"{next(iter(step))} is refused, {refusal.status}"
        took = time.monotonic() - began
        time.sleep(_SETTLED_S)
        found = self._facts(took, said)
        for step in self._situation.ends:
            with suppress(AssertionError):
                self._step(step)
        self._clear()
        api.close()
        return found

    def _create(self, wanted: Object) -> None:
        self._kind = wanted["kind"]
        self._path = f"{self._collection(wanted)}/{wanted['metadata']['name']}"
        self._api.create(self._collection(wanted), wanted)

    def _collection(self, wanted: Object) -> str:
        version = wanted["apiVersion"]
        base = "/api/v1" if version == "v1" else f"/apis/{version}"
        return f"{base}/namespaces/{self._namespace}/{wanted['kind'].lower()}s"

    def _step(self, step: Mapping[str, Any]) -> None:
        ((verb, argument),) = step.items()
        api, path = self._api, self._path
        if verb == "until":
            self._until(argument)
        elif verb == "delete":
            options = f"propagationPolicy={argument}" if isinstance(argument, str) else f"gracePeriodSeconds={argument}"
            api.delete(f"{path}?{options}")
        elif verb == "evict":
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "w"}}
            api.create(f"{_NAMESPACES}/{self._namespace}/pods/w/eviction", body)
        elif verb == "create":
            wanted = self._situation.completed(argument, self._node)
            api.create(self._collection(wanted), wanted)
        elif verb in ("patch", "resize"):
            strategic = "application/strategic-merge-patch+json"
            api.request("PATCH", path + ("/resize" if verb == "resize" else ""), argument, strategic)
        elif verb in ("taint", "untaint"):
            taints = [{"key": "example.com/broken", "effect": argument}] if verb == "taint" else None
            api.merge(f"{_NODES}/{self._node}", {"spec": {"taints": taints}})
        else:
            (self._place.lose if verb == "lose" else self._place.back)(self._node)

    def _until(self, wanted: Any) -> None:
        folder, _, name = self._path.rpartition("/")

        def reached(found: Mapping[str, Object]) -> bool:
            if name in found:
                self._document = flat(self._looked_at(found[name]), self._names)
            return name not in found if wanted == "gone" else dict(wanted).items() <= self._document.items()

        self._api.until(folder, reached, self._situation.within, fieldSelector=f"metadata.name={name}")

    def _looked_at(self, found: Object) -> Object:
        if self._kind == "Node":
            metadata = {key: found["metadata"].get(key) for key in ("labels", "annotations")}
            status = {**found["status"], "images": "some" if found["status"].get("images") else None}
            return {"metadata": metadata, "spec": {"taints": found["spec"].get("taints")}, "status": status}
        return {"status": found.get("status", {})}

    def _facts(self, took: float, said: str) -> Object:
        pods = self._watched.pods(self._namespace)
        first = next((each for each in pods.values() if each[0][2]["metadata"]["name"] == "w"), [])
        # What a watch saw last counts: a pod that is gone has no document any more.
        last = self._looked_at(first[-1][2]) if first and self._kind == "Pod" else None
        if self._kind == "Pod" and last is not None:
            self._document = flat(last, self._names)
        elif self._kind == "Node":
            self._document |= flat({"lease": self._api.get(f"{_LEASES}/{self._node}")["spec"]}, self._names)
        found: Object = {"document": self._document, "events": self._events(), "took_s": round(took, 2)}
        if said:
            found["document"]["not reached"] = said
        if self._kind == "Pod":
            states = [state(each) + (" gone" if kind == "DELETED" else "") for _, kind, each in first]
            found["sequence"] = {"sequence": sequence(states)}
        if self._situation.group in ("controllers", "schedulers"):
            found["counts"] = _counts(pods.values())
        if self._situation.group == "schedulers":
            found["placement"] = {"pods by shape of node": self._placed(pods.values())}
            found["starts_s"] = _starts(pods.values())
        return found | _times(pods.values())

    def _events(self) -> dict[str, str]:
        where = "default" if self._kind == "Node" else self._namespace
        selector = {"fieldSelector": f"involvedObject.name={self._node}"} if self._kind == "Node" else {}
        listed = self._api.list(f"{_NAMESPACES}/{where}/events", **selector)
        found = {}
        for each in listed:
            source = each.get("reportingComponent") or each.get("source", {}).get("component", "")
            found[f"{each['type']} {each['reason']} by {masked(source, self._names)}"] = "seen"
        return found

    def _placed(self, pods: Any) -> str:
        shapes = {name: shape for shape, name in self._place.nodes.items()}
        bound = Counter(shapes.get(seen[-1][2]["spec"].get("nodeName", ""), "none") for seen in pods)
        return ", ".join(f"{shape} {count}" for shape, count in sorted(bound.items()))

    def _clear(self) -> None:
        pods = f"{_NAMESPACES}/{self._namespace}/pods"
        with suppress(Refused):
            self._api.delete(f"{_NAMESPACES}/{self._namespace}")
        for name in {each["name"] for each in self._api.metadata(pods)}:
            with suppress(Refused):
                self._api.merge(f"{pods}/{name}", {"metadata": {"finalizers": None}})
        if self._situation.group == "schedulers" or self._situation.shape != "a":
            self._api.until(pods, lambda found: not found)


def record(place: Place, times: int, chosen: Sequence[str] = ()) -> dict[str, Object]:
    """What was seen of each situation in several attempts, by its name: facts are counted, times are lists.

    Args:
        chosen: names of situations or of their groups; all of them when it is empty.
    """
    watched, found = Watched(place), dict[str, list[Object]]()
    wanted = [each for each in situations() if not chosen or {each.name, each.group} & {*chosen}]
    alone = [each for each in wanted if each.group == "schedulers"]
    lanes = {shape: [each for each in wanted if each.shape == shape and each not in alone] for shape in place.nodes}
    # These are carried out side by side, so those that may take longest begin first.
    lanes["a"].sort(key=attrgetter("within"), reverse=True)
    for number in range(times):
        with ThreadPoolExecutor(_AT_ONCE + len(lanes)) as pool:
            waiting = [
                pool.submit(_carried_out, place, watched, several, number)
                for shape, lane in lanes.items()
                for several in ([[each] for each in lane] if shape == "a" else [lane])
            ]
            results = [each for one in waiting for each in one.result()]
        for name in sorted({each.scheduler for each in alone}):
            with place.scheduler(name):
                of = [each for each in alone if each.scheduler == name]
                results += _carried_out(place, watched, of, number)
        for name, seen in results:
            found.setdefault(name, []).append(seen)
        print(f"{place.name}: attempt {number + 1} of {times}", flush=True)
    return {name: _together(runs) for name, runs in found.items()}


def starts(recorded: Mapping[str, Object]) -> dict[str, Any]:
    """By name, how long the pods of schedulers' situations took to start: a distribution, as a stack file has it."""
    return {
        name: written(fitted([each for run in of["starts_s"] for each in run]))
        for name, of in recorded.items()
        if "starts_s" in of
    }


def _together(runs: Sequence[Object]) -> Object:
    keys = sorted({key for run in runs for key in run})
    return {
        key: [run[key] for run in runs if key in run]
        if key.endswith("_s")
        else counted([run.get(key, {}) for run in runs])
        for key in keys
    }


def _carried_out(place: Place, watched: Watched, several: Sequence[Situation], number: int) -> list[tuple[str, Object]]:
    done = []
    for each in several:
        try:
            done.append((each.name, Attempt(place, watched, each, number).run()))
        except (Refused, AssertionError, OSError) as error:
            # The others go on; the page says of how many attempts it is.
            print(f"{place.name}: {each.name}: {error}", flush=True)
    return done


def _counts(pods: Any) -> dict[str, str]:
    last = [seen[-1][2] for seen in pods]
    ended = Counter(each["status"].get("phase", "") for each in last)
    counted = {f"pods {phase.lower()}": str(ended[phase]) for phase in _ENDED if ended[phase]}
    return {"pods ever made": str(len(last)), **counted}


def _times(pods: Any) -> dict[str, float]:
    """Seconds from the creation of a pod, as the watch saw it; the median of a situation's pods."""
    found: dict[str, list[float]] = {name: [] for name in _TIMES}
    for seen in pods:
        began = seen[0][0]
        for name, holds in (("bound_s", _bound), ("ready_s", _ready), ("ended_s", _over)):
            at = next((moment - began for moment, _, each in seen if holds(each)), None)
            if at is not None:
                found[name].append(at)
    return {name: round(statistics.median(values), 3) for name, values in found.items() if values}


def _starts(pods: Any) -> list[float]:
    """Seconds from a pod's binding until it was ready, of each that was."""
    at = [[next((now for now, _, each in seen if holds(each)), None) for holds in (_bound, _ready)] for seen in pods]
    return [round(ready - bound, 2) for bound, ready in at if bound is not None and ready is not None]


def _bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _ready(pod: Object) -> bool:
    return state(pod).endswith("Ready") or " Ready " in state(pod)


def _over(pod: Object) -> bool:
    return pod["status"].get("phase") in _ENDED
