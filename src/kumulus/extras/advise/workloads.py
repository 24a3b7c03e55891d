"""The pods of a workload, from manifests, experiment files, or a running cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.advise.apart import Pods
from kumulus.extras.advise.demand import Unadvisable
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.manifest import objects_of
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.pods import UnknownPlace
from kumulus.extras.schedulers.manifests import COUNTED, counted_templates, pod_templates
from kumulus.model.errors import SpecError
from kumulus.stackfile.location import read_text
from kumulus.stackfile.yamltext import read_yaml

if TYPE_CHECKING:
    from kumulus.kube import Client

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Workloads:
    """Pods, and DaemonSets' pods, which run once on each node."""

    pods: tuple[Pods, ...] = ()
    daemons: tuple[Object, ...] = ()
    """Specs of the pods of DaemonSets."""
    uncounted: tuple[str, ...] = ()
    """Objects with pods of which it is not known how many, by kind and name."""
    later: bool = False
    """Whether some pods come later than others, as those of a trace do."""

    def plus(self, other: Workloads) -> Workloads:
        """The pods of both."""
        return Workloads(
            (*self.pods, *other.pods),
            (*self.daemons, *other.daemons),
            tuple(dict.fromkeys((*self.uncounted, *other.uncounted))),
            self.later or other.later,
        )


def of_files(paths: Iterable[Path]) -> Workloads:
    """The pods of files, manifests or experiments.

    Raises:
        SpecError: a file cannot be read, or an experiment has mistakes.
        LabError: an experiment's trace does not say what its jobs ask for.
        Unadvisable: an experiment's affinity refers to places that only a cluster has, or its trace is inflated.
    """
    found = Workloads()
    for path in paths:
        _, text = read_text(str(path), Path(), "")
        found = found.plus(
            _of_experiment(path) if _is_experiment(text, path) else of_objects(objects_of(text, str(path)))
        )
    return found


def of_objects(objects: Iterable[Object], name: str = "") -> Workloads:
    """The pods that manifests create.

    Args:
        objects: as kubectl takes them; objects without pods are ignored.
        name: what to call the pods; the objects' names unless given.
    """
    pods: list[Pods] = []
    daemons: list[Object] = []
    uncounted: list[str] = []
    for each in objects:
        metadata = each.get("metadata") or {}
        called, namespace = name or str(metadata.get("name") or "workload"), str(metadata.get("namespace") or "default")
        if each.get("kind") in (*COUNTED, "DaemonSet") and not any(pod_templates(each)):
            raise Unadvisable(f"{called}: the {each['kind']} has no pod template with a list of containers")
        if each.get("kind") == "DaemonSet":
            daemons += [template["spec"] for template in pod_templates(each)]
        elif each.get("kind") in COUNTED:
            pods += [
                Pods(called, template["spec"], (template.get("metadata") or {}).get("labels") or {}, count, namespace)
                for template, count in counted_templates(each)
            ]
        elif any(pod_templates(each)):
            uncounted.append(f"{each.get('kind')} {called}")
    return Workloads(tuple(pods), tuple(daemons), tuple(uncounted))


async def of_cluster(client: Client) -> Workloads:
    """The pods in a cluster that have not ended; for each DaemonSet, only one, as a pod of every node."""
    answer: dict[str, Any] = await client.get("/api/v1/pods")
    pods: list[Pods] = []
    daemons: dict[str, Object] = {}
    for pod in answer.get("items") or []:
        metadata, spec = pod["metadata"], pod["spec"]
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        owner: Object = next(iter(metadata.get("ownerReferences") or []), {})
        if owner.get("kind") == "DaemonSet":
            daemons[str(owner.get("uid"))] = spec
            continue
        name = str(owner.get("name") or metadata["name"])
        pods.append(Pods(name, spec, metadata.get("labels") or {}, 1, metadata["namespace"]))
    return Workloads(tuple(pods), tuple(daemons.values()))


def _is_experiment(text: str, path: Path) -> bool:
    try:
        raw = read_yaml(text, str(path))
    except SpecError:
        # Several documents, or invalid YAML: it is read again as manifests, which reports mistakes.
        return False
    return isinstance(raw, Mapping) and "workloads" in raw and "kind" not in raw


def _of_experiment(path: Path) -> Workloads:
    loaded = load(path)
    if any(each.arrival.trace and each.arrival.trace.inflate for each in loaded.experiment.workloads):
        raise Unadvisable(
            f"{path}: arrival.trace.inflate asks for a share of the GPUs of a fleet, and the fleet is what is sought\n"
            "  Leave inflate out of a copy of the file, and each task comes once"
        )
    try:
        plan = make(loaded, {})
    except UnknownPlace as error:
        raise Unadvisable(f"{path}: affinity: {error}") from None
    except LabError as error:
        raise LabError(f"{path}: {error}") from None
    found = Workloads(later=any(job.at > 0 for job in plan.jobs))
    for job in plan.jobs:
        found = found.plus(of_objects(job.objects, job.workload))
    return found
