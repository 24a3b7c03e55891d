"""The events that a kubelet writes about a pod, written by the stages that do what they tell.

As a kubelet writes them (k8s.io/kubernetes pkg/kubelet/events), but for the container's name, since a stage cannot
write one for each container. KWOK's own way of writing events would name KWOK as their source.
"""

from collections.abc import Mapping
from typing import Any

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
# The template has the pod as it was before its stage: started once more often than restarted.
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
    """One of the cluster's own stages that writes its events, if it has any."""
    return {**made, "spec": writing(made["spec"], _EVENTS.get(made["metadata"]["name"], {}))}


def writing(spec: dict[str, Any], events: Mapping[str, str], again: bool = False) -> dict[str, Any]:
    """The spec of a stage that writes events once its patch is accepted, which comes first.

    Args:
        events: messages by reason; the spec is as it was without any.
        again: whether the stage restarts containers, of which the same events count on.
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
