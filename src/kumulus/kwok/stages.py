"""KWOK's ``Stage`` objects, their selectors and the events that they write, as plain mappings.

API reference: kwok.x-k8s.io/v1alpha1. The provider plugin imports this file, so it has only light imports.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

API_VERSION = "kwok.x-k8s.io/v1alpha1"
STAGES = f"/apis/{API_VERSION}/stages"
FOR_EVER = 10 * 365 * 86_400_000
"""A delay in milliseconds that outlasts any cluster."""

Match = Mapping[str, Any]
"""One expression of a selector."""


def stage(
    name: str,
    kind: str,
    match: Sequence[Match],
    rest: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    group: str = "v1",
) -> dict[str, Any]:
    """A ``Stage`` object for a kind such as ``Pod``.

    Args:
        match: the expressions that an object has to fulfil, all of them.
        rest: the rest of the stage's spec: ``delay``, ``weight``, ``next`` …
        group: the kind's ``apiVersion``, which KWOK calls its group.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "Stage",
        "metadata": {"name": name, **({"labels": dict(labels)} if labels else {})},
        "spec": spec(kind, {"matchExpressions": list(match)}, rest, group),
    }


def spec(kind: str, selector: Mapping[str, Any], rest: Mapping[str, Any], group: str = "v1") -> dict[str, Any]:
    """The spec of a stage; arguments as for :func:`stage`, with the whole ``selector``."""
    return {"resourceRef": {"apiGroup": group, "kind": kind}, "selector": selector, **rest}


def pod_status(template: str) -> dict[str, Any]:
    """The key ``next`` of a stage that patches a pod's status, but not if the pod has changed meanwhile.

    KWOK patches by name: a pod that was made under the name of a deleted one would get its status. And a patch of a pod
    that was deleted with a grace period of 0 a moment ago removes whatever has its name (k8s.io/apiserver,
    ShouldDeleteDuringUpdate): 1 of 640 pods that were made again at once, on a busy machine. A pod that has changed is
    shown to KWOK, so that what was refused is done to the changed one.
    """
    return {"next": {"patches": [_of_this_pod(f"status:\n{textwrap.indent(template, '  ')}", "status")]}}


def pod_annotated(annotations: Mapping[str, str]) -> dict[str, Any]:
    """The key ``next`` of a stage that annotates a pod, with Go templates, but not if the pod has changed meanwhile."""
    lines = "".join(f'    {key}: "{value}"\n' for key, value in annotations.items())
    return {"next": {"patches": [_of_this_pod(f"  annotations:\n{lines}")]}}


def pod_removed(template: str, subresource: str = "") -> dict[str, Any]:
    """The key ``steps`` of a stage that patches a pod, or a subresource, and deletes it, unless it has changed.

    KWOK deletes by name, too, and may play a stage twice: only the refused patch, which ends the stage, tells it that
    the pod is another one, or that this was done. The patch has to change something, or KWOK leaves it out.
    """
    content = f"{subresource}:\n{textwrap.indent(template, '  ')}" if subresource else template
    return {"steps": [{"patch": _of_this_pod(content, subresource)}, {"delete": True}]}


def _of_this_pod(content: str, subresource: str = "") -> dict[str, str]:
    where = {"subresource": subresource} if subresource else {}
    version = "  resourceVersion: {{ .metadata.resourceVersion | Quote }}\n"
    return {**where, "template": f"metadata:\n  uid: {{{{ .metadata.uid | Quote }}}}\n{version}{content}"}


def is_in(key: str, *values: str) -> Match:
    """The condition that a jq expression yields one of the values."""
    return {"key": key, "operator": "In", "values": list(values)}


def not_in(key: str, *values: str) -> Match:
    """The condition that a jq expression yields none of the values."""
    return {"key": key, "operator": "NotIn", "values": list(values)}


def exists(key: str) -> Match:
    """The condition that a jq expression yields something."""
    return {"key": key, "operator": "Exists"}


def absent(key: str) -> Match:
    """The condition that a jq expression yields nothing."""
    return {"key": key, "operator": "DoesNotExist"}


def jq(match: Match) -> Match:
    """An expression in the newer form, in which KWOK distinguishes jq from CEL."""
    return {"jq": match}


# Events are written by the stages that do what they tell, as a kubelet writes them (k8s.io/kubernetes
# pkg/kubelet/events), but for the container's name, since a stage cannot write one for each container. KWOK's own way
# of writing events would name KWOK as their source.
_EVENT = """
{{ $now := Now }}
apiVersion: v1
kind: Event
metadata:
  name: {{ print (trunc 236 .metadata.name) "." (print .metadata.uid "REASON" | sha256sum | trunc 16) | Quote }}
  namespace: {{ .metadata.namespace | Quote }}
involvedObject: {apiVersion: v1, kind: Pod, namespace: {{ .metadata.namespace | Quote }},
  name: {{ .metadata.name | Quote }}, uid: {{ .metadata.uid | Quote }}}
type: Normal
reason: REASON
message: MESSAGE
source: {component: kubelet, host: {{ .spec.nodeName | Quote }}}
reportingComponent: kubelet
reportingInstance: {{ .spec.nodeName | Quote }}
firstTimestamp: {{ $now | Quote }}
lastTimestamp: {{ $now | Quote }}
count: 1
"""
# The template has the pod as it was before its stage: it has started once more often than restarted, and now starts
# once more.
_AGAIN = _EVENT.replace("count: 1", "count: {{ add 2 (index .status.containerStatuses 0).restartCount }}").replace(
    "firstTimestamp: {{ $now | Quote }}", "firstTimestamp: {{ .status.startTime | Quote }}"
)
STARTS = {
    "Pulled": "Container image already present on machine",
    "Created": "Container created",
    "Started": "Container started",
}
"""What is written when a container starts, by reason."""
STARTS_PULLED = {**STARTS, "Pulled": "Successfully pulled image"}
"""Likewise, of an image that was not there."""
ENDS = {"Killing": "Stopping container"}
"""What is written when a deleted pod's containers are to end."""
_EVENTS = {"pod-ready": STARTS, "pod-terminate": ENDS}


def with_events(made: dict[str, Any]) -> dict[str, Any]:
    """One of the cluster's own stages, with the events that it is to write, if there are any for it."""
    return {**made, "spec": writing(made["spec"], _EVENTS.get(made["metadata"]["name"], {}))}


def writing(spec: dict[str, Any], events: Mapping[str, str], again: bool = False) -> dict[str, Any]:
    """The spec of a stage with events, messages by reason, which it writes after its patch; unchanged without any.

    With ``again``, they were written before, and are counted on.
    """
    if not events:
        return spec
    spec = dict(spec)
    first, *rest = spec.get("steps") or [{"patch": each} for each in spec.pop("next")["patches"]]
    template = _AGAIN if again else _EVENT
    written = [
        {"apply": {"template": template.replace("REASON", reason).replace("MESSAGE", text)}}
        for reason, text in events.items()
    ]
    return {**spec, "steps": [first, *written, *rest]}
