"""Devices that have to be made ready before a pod is bound to their node, as stages of KWOK for ResourceClaims.

What a driver's controller does for devices with `bindingConditions`: kube-scheduler allocates them, and binds the pod
once the claim's `status.devices` has all of these conditions; by one of the `bindingFailureConditions`, it gives the
devices back and tries again (KEP-5007; PreBind of k8s.io/kubernetes,
pkg/scheduler/framework/plugins/dynamicresources).
"""

import json
from collections.abc import Mapping
from typing import Any

from kumulus.kwok.lifecycle_states import delay
from kumulus.kwok.stages import absent, exists, stage
from kumulus.model.durations import seconds

_CLAIM = "resource.k8s.io/v1"
# As KWOK applies it on the server, what other drivers say of their devices in the claim stays.
_TEMPLATE = """
apiVersion: {api}
kind: ResourceClaim
metadata:
  name: {{{{ .metadata.name | Quote }}}}
  namespace: {{{{ .metadata.namespace | Quote }}}}
  uid: {{{{ .metadata.uid | Quote }}}}
  resourceVersion: {{{{ .metadata.resourceVersion | Quote }}}}
status:
  devices:
{{{{ range .status.allocation.devices.results }}}}{{{{ if and (eq .driver {driver}) .bindingConditions }}}}
  - driver: {{{{ .driver | Quote }}}}
    pool: {{{{ .pool | Quote }}}}
    device: {{{{ .device | Quote }}}}
{{{{ with .shareID }}}}
    shareID: {{{{ . | Quote }}}}
{{{{ end }}}}
    conditions:
{{{{ range .{conditions} }}}}
    - type: {{{{ . | Quote }}}}
      status: "True"
      reason: Emulated
      message: {message}
      lastTransitionTime: {{{{ Now | Quote }}}}
{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}
"""
_SINCE = "(.status.allocation.allocationTimestamp // .metadata.creationTimestamp)"


def claim_stages(bindings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages as KWOK ``Stage`` documents.

    Args:
        bindings: by driver, `after`, a duration, and `failures`, the share of allocations that fail.
    """
    return [each for driver, how in sorted(bindings.items()) for each in _of_driver(driver, how)]


def _of_driver(driver: str, how: Mapping[str, Any]) -> list[dict[str, Any]]:
    named, failures = json.dumps(driver), how.get("failures", 0)
    waits = f".status.allocation.devices.results[]? | select(.driver == {named} and .bindingConditions) | .device"
    reported = f".status.devices[]? | select(.driver == {named}) | .device"
    match = [exists(waits), absent(reported), absent(".metadata.deletionTimestamp")]
    outcomes = (
        ("ready", "bindingConditions", "the device is ready", 1 - failures),
        ("failed", "bindingFailureConditions", "the device could not be made ready", failures),
    )
    return [
        stage(
            f"device-{outcome}-{driver}",
            "ResourceClaim",
            match,
            {
                "weight": weight,
                "delay": delay("", _SINCE, str(seconds(how.get("after", "0s")))),
                "steps": [{"apply": {"template": template, "subresource": "status"}}],
            },
            group=_CLAIM,
        )
        for outcome, conditions, message, share in outcomes
        if (weight := round(1000 * share))
        and (template := _TEMPLATE.format(api=_CLAIM, driver=named, conditions=conditions, message=message))
    ]
