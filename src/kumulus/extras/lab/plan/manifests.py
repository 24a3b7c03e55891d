"""The objects of a job from the user's manifest: unchanged except for labels and repeated names."""

from __future__ import annotations

from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, Object
from kumulus.model.manifests import expected_pods, pod_templates


def adopt(objects: list[Object], workload: str, job: str, index: int) -> int:
    """Name the objects, label their pods, and return how many pods they make.

    A `generateName` becomes a name, so that two runs create the same objects. If there are several jobs, the job's
    number is appended to plain names.

    Args:
        objects: of one job; changed in place.
        workload: the workload's name.
        job: the job's name.
        index: the job's number, from 1; 0 when the workload has only this one.
    """
    pods = 0
    for each in objects:
        metadata = _within(each, "metadata")
        prefix = metadata.pop("generateName", None)
        if prefix is not None:
            metadata["name"] = f"{prefix}{index or 1}"
        elif index and "name" in metadata:
            metadata["name"] = f"{metadata['name']}-{index}"
        elif "name" not in metadata:
            metadata["name"] = job
        metadata.pop("namespace", None)
        for template in pod_templates(each):
            _within(_within(template, "metadata"), "labels").update({WORKLOAD_LABEL: workload, JOB_LABEL: job})
        pods += expected_pods(each)
    return pods


def _within(node: Object, key: str) -> Object:
    """The mapping at a key, made where there is none or the key has no value."""
    if node.get(key) is None:
        node[key] = {}
    found: Object = node[key]
    return found
