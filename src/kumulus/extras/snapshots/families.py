"""Owners and what they own, by families: an unchanged family stays, a changed one is restored as a whole.

Pure functions. Through the API no object gets its UID back, and controllers keep running: an owner that is created
before its pods creates others. So pods come first, then the kinds that adopt pods by their labels, then the Deployments
that adopt those. Sources: controller_ref_manager.go of k8s.io/kubernetes pkg/controller (adoption), and
pkg/controller/job/job_controller.go (a Job adopts pods that have ended, too, and counts them).
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

Objects = Mapping[str, dict[str, Any]]

ADOPTING = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
"""The kinds that adopt pods by their labels."""
ABOVE = ("Deployment", "CronJob")
"""The owners of those; a Deployment adopts its ReplicaSets, a CronJob's Jobs get it as their owner."""
WORKLOADS = ("Pod", *ADOPTING, *ABOVE)
_JOB_IS = ("succeeded", "failed")
# What a cluster assigns to a Service that is not headless.
_OF_A_SERVICE = ("clusterIP", "clusterIPs")
_OF_A_BATCH = ("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas")


def families(wanted: Objects, present: Objects) -> list[set[str]]:
    """The paths of objects that owner references connect, in the snapshot or now."""
    parents: dict[str, str] = {}

    def root(path: str) -> str:
        while parents.setdefault(path, path) != path:
            path = parents[path]
        return path

    for objects in (wanted, present):
        by_uid = {each["metadata"]["uid"]: path for path, each in objects.items()}
        for path, each in objects.items():
            root(path)
            for owner in each["metadata"].get("ownerReferences") or ():
                if (of := by_uid.get(owner["uid"])) is not None:
                    parents[root(path)] = root(of)
    found: dict[str, set[str]] = {}
    for path in parents:
        found.setdefault(root(path), set()).add(path)
    return list(found.values())


def is_as_it_was(family: Iterable[str], wanted: Objects, present: Objects) -> bool:
    """Whether each object of a family exists and is what it was, except for UIDs and times."""
    return all(path in wanted and path in present and _state(wanted[path]) == _state(present[path]) for path in family)


def is_remade(family: Iterable[str], objects: Objects) -> bool:
    """Whether a controller other than Kubernetes' own makes the pods of a family again by itself."""
    members = (objects[path]["metadata"] for path in family if path in objects)
    return any(owner["kind"] not in WORKLOADS for each in members for owner in each.get("ownerReferences") or ())


def roots(family: Iterable[str], objects: Objects) -> list[str]:
    """The members of a family that have no owner in the snapshot."""
    uids = {each["metadata"]["uid"] for each in objects.values()}
    return [
        path
        for path in family
        if path in objects
        and not any(owner["uid"] in uids for owner in objects[path]["metadata"].get("ownerReferences") or ())
    ]


def rank(kind: str) -> int:
    """Where in the order of creation, and in reverse of removal, a kind is; 0 for all that are not workloads."""
    if kind not in WORKLOADS:
        return 0
    return 1 if kind == "Pod" else 2 if kind in ADOPTING else 3


def made(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object as it is posted again: without a UID, and without owners, which adopt it."""
    metadata = {
        key: found["metadata"][key]
        for key in ("name", "namespace", "labels", "annotations")
        if key in found["metadata"]
    }
    body = {key: value for key, value in found.items() if key not in ("metadata", "status")}
    if found["kind"] == "Job":
        # Its selector and its pods' labels name its former UID, so it is posted with a manual selector.
        body["spec"] = {**found["spec"], "manualSelector": True}
    if found["kind"] == "Service":
        body["spec"] = _of_a_service(found)
    return {**body, "metadata": metadata}


def is_replaced(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether an object is deleted and created again, as it cannot be changed back in its place.

    That is a workload, and a Service that has become headless or ceased to be: the API server 1.35.4 panics at some of
    these changes (k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go, allocIPs).
    """
    if found["kind"] == "Service":
        return _is_headless(wanted) != _is_headless(found)
    return bool(rank(found["kind"]))


def changed_back(wanted: Mapping[str, Any], found: Mapping[str, Any], gone: Container[str]) -> dict[str, Any]:
    """An object as it is put in the place of the present one; finalizers, owners and the status stay the present one's.

    An owner of ``gone``, UIDs of removed objects, is left out: the object would be removed as well.
    """
    body, metadata = made(wanted), found["metadata"]
    body["metadata"] |= {key: metadata[key] for key in ("resourceVersion", "finalizers") if key in metadata}
    if owners := [each for each in metadata.get("ownerReferences") or () if each["uid"] not in gone]:
        body["metadata"]["ownerReferences"] = owners
    return {**body, "status": found["status"]} if "status" in found else body


def _of_a_service(found: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a Service without its addresses."""
    spec = found.get("spec") or {}
    return {key: value for key, value in spec.items() if key not in _OF_A_SERVICE or _is_headless(found)}


def _is_headless(service: Mapping[str, Any]) -> bool:
    return (service.get("spec") or {}).get("clusterIP") == "None"


def _state(found: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an object whose change matters to its users."""
    metadata, status, spec = found["metadata"], found.get("status") or {}, found.get("spec")
    notes = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _OF_A_BATCH}
    state = {key: value for key, value in found.items() if key not in ("metadata", "status")}
    state |= {"labels": metadata.get("labels") or {}, "annotations": notes, "deleted": "deletionTimestamp" in metadata}
    if found["kind"] == "Pod":
        state["phase"] = status.get("phase")
    if found["kind"] == "Service":
        state["spec"] = _of_a_service(found)
    if found["kind"] == "Job":
        state["counts"] = [status.get(key) or 0 for key in _JOB_IS]
        state["spec"] = {key: value for key, value in (spec or {}).items() if key != "manualSelector"}
    return state
