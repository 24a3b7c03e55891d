"""The events that a kubelet writes about a pod, written by the stages that do what they tell.

As a kubelet writes them (k8s.io/kubernetes pkg/kubelet/events), but for the container's name, since a stage cannot
write one for each container. KWOK's own way of writing events would name KWOK as their source.
"""

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
_EVENTS = {
    "pod-ready": {
        "Pulled": "Container image already present on machine",
        "Created": "Container created",
        "Started": "Container started",
    },
    "pod-terminate": {"Killing": "Stopping container"},
}


def with_events(made: dict[str, Any]) -> dict[str, Any]:
    """A stage that writes its events, if it has any, once its patch is accepted, which comes first."""
    events = _EVENTS.get(made["metadata"]["name"])
    if events is None:
        return made
    spec = dict(made["spec"])
    first, *rest = spec.get("steps") or [{"patch": each} for each in spec.pop("next")["patches"]]
    written = [
        {"apply": {"template": _EVENT.replace("REASON", reason).replace("MESSAGE", text)}}
        for reason, text in events.items()
    ]
    return {**made, "spec": {**spec, "steps": [first, *written, *rest]}}
