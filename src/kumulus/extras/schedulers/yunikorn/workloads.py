"""Workloads for YuniKorn: applications by label, gangs by task groups in annotations, hierarchical queues.

YuniKorn reserves nodes for a gang with its own placeholder pods, and replaces them by the real ones once all have a
node.
Source: yunikorn.apache.org/docs/user_guide/gang_scheduling and …/labels_and_annotations_in_yunikorn.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.templates import Manifest
from kumulus.kube import safe_yaml

SCHEDULER_NAME = "yunikorn"
DEFAULT_QUEUE = "root.default"
_PREFIX = "yunikorn.apache.org"
_LOOK_FOR_PODS = ("affinity", "topologySpreadConstraints")
"""The fields of a pod's spec that look for other pods, by their labels."""
_PLACEHOLDER_TIMEOUT_S = 86400
"""Until a gang that does not fit fails: longer than any experiment, since gangs of other schedulers wait forever."""


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`: each pod template is a task group."""
    found = [pair for member in members for pair in templates.templates(member)]
    groups, left = [], minimum
    for number, (template, count) in enumerate(found):
        taken, left = min(count, left), left - min(count, left)
        groups.append(_task_group(f"{name}-{number}", taken, template))
        templates.annotate(template, annotations={f"{_PREFIX}/task-group-name": f"{name}-{number}"})
    parameters = f"placeholderTimeoutInSeconds={_PLACEHOLDER_TIMEOUT_S} gangSchedulingStyle=Hard"
    wanted = [group for group in groups if group["minMember"]]
    for template, _ in found:
        annotations = {
            f"{_PREFIX}/task-groups": json.dumps(wanted),
            f"{_PREFIX}/schedulingPolicyParameters": parameters,
        }
        templates.annotate(template, annotations=annotations)
        _belong(template, name, queue)
    templates.assign(members, SCHEDULER_NAME)
    return members


def single(made: Manifest, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.single`: the workload is an application of its own."""
    for template, _ in templates.templates(made):
        _belong(template, str(made["metadata"]["name"]), queue)
    templates.assign([made], SCHEDULER_NAME)
    return [made]


def queues(quotas: Mapping[str, Mapping[str, str]]) -> str:
    """The configuration `queues.yaml` with the given queues, for `process.start(…, config=…)`.

    Workloads may name other queues too: these are created when first used, without a quota.

    Args:
        quotas: for each queue below `root`, such as `research`, the most it may use; {} for no limit.
    """
    children = [
        {"name": name, **({"resources": {"max": dict(quota)}} if quota else {})} for name, quota in quotas.items()
    ]
    root = {"name": "root", "submitacl": "*", **({"queues": children} if children else {})}
    rules = [{"name": "provided", "create": True}, {"name": "tag", "value": "namespace", "create": True}]
    partition = {"name": "default", "placementrules": rules, "queues": [root]}
    return safe_yaml.written({"partitions": [partition]})


def _task_group(name: str, members: int, template: Manifest) -> dict[str, Any]:
    spec = template.get("spec", {})
    group: dict[str, Any] = {
        "name": name,
        "minMember": members,
        "minResource": templates.written(templates.requests(template)),
    }
    # A placeholder must fit on the same nodes as the real pod, and be found by those that look for its gang.
    for field in ("nodeSelector", "tolerations", *_LOOK_FOR_PODS):
        if spec.get(field):
            group[field] = spec[field]
    sought = set(_selected([spec.get(field) for field in _LOOK_FOR_PODS]))
    own = (template.get("metadata") or {}).get("labels") or {}
    if found := {key: own[key] for key in own if key in sought}:
        group["labels"] = found
    return group


def _selected(part: object) -> Iterator[str]:
    """The keys of labels in the selectors within a part of a pod's spec."""
    if isinstance(part, list):
        for each in part:
            yield from _selected(each)
    elif isinstance(part, dict):
        yield from part.get("matchLabels") or ()
        for key, each in part.items():
            yield from [str(each)] if key == "key" else _selected(each)


def _belong(template: Manifest, application: str, queue: str) -> None:
    labels = {"applicationId": application}
    if queue:
        labels["queue"] = queue if queue.startswith("root.") else f"root.{queue}"
    templates.annotate(template, labels=labels)
