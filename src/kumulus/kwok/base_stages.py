"""The KWOK stages of an emulated cluster: what KWOK does to nodes and pods, and when.

They follow KWOK's own ``node/fast``, ``node/heartbeat-with-lease`` and ``pod/fast`` (kwok v0.8.0), with these
differences:

- a pod of a Job, of batch/v1 alone where it has no delay, completes after the delay in its annotation
  ``pod-complete.stage.kwok.x-k8s.io/delay`` (a Go duration).
  KWOK would count the delay from the last change of the pod, and again after a restart of its controller; here it is
  anchored to the pod's ``status.startTime``;
- the delay has no jitter: KWOK takes a jitter smaller than the delay for the delay itself;
- a faulted node is left as the fault wants it; one that reboots comes back when its time is up;
- a completed container keeps its start time, and the pod is no longer Ready, as a kubelet reports it;
- a deleted pod ends before it is removed: its containers are terminated, its phase is Failed or Succeeded, and it is
  not Ready. A pod that a finalizer keeps stays like that.

Where KWOK was installed from its charts, stage-fast has installed KWOK's own stages. :func:`node_stages_above` and
:func:`pod_stages_above` are those of ours that have to come before them: KWOK passes over stages without a weight where
one with a weight matches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kumulus.kwok.pod_statuses.base import COMPLETE, READY, TERMINATED
from kumulus.kwok.stages import FOR_EVER, absent, exists, is_in, not_in, pod_removed, pod_status, stage
from kumulus.model.active_faults import BOOT_ID_ANNOTATION, FAULTS_ANNOTATION, REBOOT_ANNOTATION
from kumulus.model.nodes import EMULATED, LOCALHOST
from kumulus.model.offer_effects import RECLAIM_ANNOTATION
from kumulus.model.owner_kinds import BATCH_JOB

_FAULTS = f'.metadata.annotations["{FAULTS_ANNOTATION}"]'
_RECLAIMED = f'.metadata.annotations["{RECLAIM_ANNOTATION}"]'
_BOOT_ID = f'.metadata.annotations["{BOOT_ID_ANNOTATION}"]'
DELAY_ANNOTATION = "pod-complete.stage.kwok.x-k8s.io/delay"

# jq: the milliseconds left of the delay, as a Go duration. Without the annotation, or if its value is no Go duration,
# there is no delay left: KWOK then completes the pod at once, as its own stage does.
_REMAINING = """
(.metadata.annotations["DELAY_ANNOTATION"] // "") as $delay
| if ($delay | test("^([0-9]+(\\\\.[0-9]*)?(h|m|s|ms|us|µs|ns))+$")) then
    ([$delay | match("([0-9]+(?:\\\\.[0-9]*)?)(ms|us|µs|ns|h|m|s)"; "g")
      | (.captures[0].string | tonumber)
        * ({"h": 3600, "m": 60, "s": 1, "ms": 0.001, "us": 0.000001, "µs": 0.000001, "ns": 0.000000001}
           [.captures[1].string])]
     | add) as $seconds
    | (((.status.startTime | fromdate) + $seconds - now) * 1000 | ceil) as $left
    | if $left > 0 then "\\($left)ms" else "0s" end
  else "0s" end
""".strip().replace("DELAY_ANNOTATION", DELAY_ANNOTATION)


_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

_NODE_CONDITIONS = """
{{ $now := Now }}
{{ $lastTransitionTime := or .metadata.creationTimestamp $now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $lastTransitionTime | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
"""

_NODE_INITIALIZE = (
    _NODE_CONDITIONS
    + """
addresses:
- LOCALHOST
{{ if not .status.addresses }}
- address: {{ .metadata.name | Quote }}
  type: Hostname
{{ with NodeIP }}
- address: {{ . | Quote }}
  type: InternalIP
{{ end }}
{{ end }}
{{ with NodePort }}
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ . }}
{{ end }}
phase: Running
"""
).replace("LOCALHOST", json.dumps(LOCALHOST))

_NODE_MADE = (
    _NODE_CONDITIONS
    + """
addresses:
- address: {{ .metadata.name | Quote }}
  type: Hostname
- LOCALHOST
phase: Running
nodeInfo:
  bootID: {{ .metadata.uid | Quote }}
  machineID: {{ .metadata.uid | Quote }}
  systemUUID: {{ .metadata.uid | Quote }}
"""
).replace("LOCALHOST", json.dumps(LOCALHOST))

_NODE_REBOOTED = (
    _NODE_CONDITIONS
    + """
nodeInfo:
  bootID: {{ index .metadata.annotations "BOOT_ID" | Quote }}
"""
).replace("BOOT_ID", BOOT_ID_ANNOTATION)

# With the address, for nodes that an earlier version made.
_NODE_HEARTBEAT = (
    _NODE_CONDITIONS
    + """
addresses:
- LOCALHOST
{{ with NodePort }}
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ . }}
{{ end }}
"""
).replace("LOCALHOST", json.dumps(LOCALHOST))

_FAULTED = [exists(_FAULTS), absent(_BOOT_ID)]
_REBOOTED = [exists(_BOOT_ID), not_in(_READY, "True")]
_RUNS = [absent(".metadata.deletionTimestamp"), is_in(".status.phase", "Running")]
# Of Kubernetes' own Jobs, and of Volcano's, which are called Job too, those that say how long they take.
_OF_A_JOB = is_in(".metadata.ownerReferences.[].kind", "Job")
_ENDS = f"({BATCH_JOB.jq()} or (.metadata.annotations // {{}} | has({json.dumps(DELAY_ANNOTATION)})) | tostring)"
_COMPLETES = [*_RUNS, _OF_A_JOB, is_in(_ENDS, "true")]
_STAYS = [*_RUNS, _OF_A_JOB, is_in(_ENDS, "false")]
_DELETED = exists(".metadata.deletionTimestamp")
_OVER = ("Succeeded", "Failed")
# With a grace period of 0, only finalizers keep a pod: deleting it again would do nothing. One that none keeps must not
# even be patched: such a patch removes it (k8s.io/apiserver, ShouldDeleteDuringUpdate) by name, or what has come in its
# place.
_GRACE = "(.metadata.deletionGracePeriodSeconds | tostring)"
_LEAVES = (
    f"(.status.phase == {' or .status.phase == '.join(map(json.dumps, _OVER))} or (.metadata.finalizers // []) == [])"
)
_TERMINATES = [_DELETED, not_in(".status.phase", *_OVER), not_in(_GRACE, "0")]
_IS_KILLED = [_DELETED, is_in(_GRACE, "0"), is_in(f"({_LEAVES} | tostring)", "false")]
_LEFT_ALONE = [_DELETED, is_in(_GRACE, "0"), is_in(f"({_LEAVES} | tostring)", "true")]
_ENDED = [_DELETED, is_in(".status.phase", *_OVER), not_in(_GRACE, "0")]
# In case that kwok-controller was killed after the patch. The delay is cut off when the pod is gone, as it mostly is.
_REMOVE: dict[str, Any] = {
    "delay": {"durationMilliseconds": 1_000},
    **pod_removed("  annotations:\n    kumulus.io/ended: {{ Now | Quote }}"),
}
# It does nothing; matching it cancels what KWOK has scheduled for a node that has just become faulted. With a weight
# it keeps KWOK from stages without one.
_NOTHING: dict[str, Any] = {"delay": {"durationMilliseconds": FOR_EVER}, "next": {}}
_REBOOT: dict[str, Any] = {
    "delay": {"durationFrom": {"expressionFrom": f'.metadata.annotations["{REBOOT_ANNOTATION}"]'}},
    "next": {"statusTemplate": _NODE_REBOOTED},
}
_COMPLETE: dict[str, Any] = {
    "delay": {"durationFrom": {"jq": {"expression": _REMAINING}}},
    **pod_status(COMPLETE),
}
_ABOVE = "kumulus-"
_HEAVY = {"weight": 1_000}


def stages() -> list[dict[str, Any]]:
    """Return the stages as KWOK ``Stage`` documents."""
    return [
        stage(
            "node-initialize",
            "Node",
            [not_in(_READY, "True"), absent(_FAULTS)],
            {"next": {"statusTemplate": _NODE_INITIALIZE}},
        ),
        stage(
            "node-heartbeat-with-lease",
            "Node",
            [is_in(".status.phase", "Running"), is_in(_READY, "True"), absent(_FAULTS)],
            {
                "delay": {"durationMilliseconds": 600_000, "jitterDurationMilliseconds": 610_000},
                "next": {"statusTemplate": _NODE_HEARTBEAT},
            },
        ),
        stage("node-faulted", "Node", _FAULTED, _NOTHING),
        stage("node-rebooted", "Node", _REBOOTED, _REBOOT),
        stage(
            "pod-ready",
            "Pod",
            [absent(".metadata.deletionTimestamp"), is_in(".status.phase", "Pending"), not_in(_READY, "True")],
            pod_status(READY),
        ),
        stage("pod-complete", "Pod", _COMPLETES, _COMPLETE),
        stage("pod-terminate", "Pod", _TERMINATES, pod_removed(TERMINATED, "status")),
        stage("pod-kill", "Pod", _IS_KILLED, pod_status(TERMINATED)),
        stage("pod-delete", "Pod", _ENDED, _REMOVE),
    ]


def node_initialize(name: str, labels: Mapping[str, str], having: str, info: Mapping[str, str]) -> dict[str, Any]:
    """The stage that makes a node Ready that Kumulus did not create, and fills in its node info.

    Args:
        having: the key of a label that they also have, with any value.
        info: architecture, operatingSystem and kubeletVersion of `status.nodeInfo`.
    """
    match = [not_in(_READY, "True"), absent(_FAULTS), exists(f'.metadata.labels["{having}"]'), absent(_RECLAIMED)]
    match += [is_in(f'.metadata.labels["{key}"]', value) for key, value in labels.items()]
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in sorted({**info, **EMULATED}.items()))
    return stage(name, "Node", match, {**_HEAVY, "next": {"statusTemplate": f"{_NODE_MADE}{lines}"}})


def node_reclaimed(name: str, having: str) -> dict[str, Any]:
    """The stage that deletes a node when its machine is reclaimed, even if finalizers are left on it.

    Args:
        having: the key of a label that such nodes have, with any value.
    """
    due = {"durationFrom": {"expressionFrom": _RECLAIMED}}
    match = [exists(_RECLAIMED), exists(f'.metadata.labels["{having}"]')]
    return stage(name, "Node", match, {**_HEAVY, "delay": due, "next": {"finalizers": {"empty": True}, "delete": True}})


def node_stages_above() -> list[dict[str, Any]]:
    """The stages of nodes for a cluster that has the chart stage-fast.

    They match only nodes with an active fault, which are always a stack's own, no matter who installed KWOK.
    """
    # KWOK's heartbeat would revert the conditions that a fault has changed.
    ready = [exists(_FAULTS), is_in(_READY, "True")]
    return [
        stage(f"{_ABOVE}node-faulted", "Node", _FAULTED, {**_HEAVY, **_NOTHING}),
        stage(f"{_ABOVE}node-rebooted", "Node", _REBOOTED, {**_HEAVY, **_REBOOT}),
        stage(f"{_ABOVE}node-faulted-ready", "Node", ready, {**_HEAVY, **_NOTHING}),
    ]


def pod_stages_above(elsewhere: str) -> list[dict[str, Any]]:
    """The stages of pods for a cluster that has the chart stage-fast.

    They are those of :func:`stages`, and one for the pods that stage-fast would complete at once.

    Args:
        elsewhere: a condition of pods that other stages complete.
    """
    other = absent(f'.status.conditions.[] | select( .type == "{elsewhere}" )')
    return [
        stage(f"{_ABOVE}pod-complete", "Pod", [*_COMPLETES, other], {"weight": 1, **_COMPLETE}),
        stage(f"{_ABOVE}pod-stays", "Pod", [*_STAYS, other], {"weight": 1, **_NOTHING}),
        stage(f"{_ABOVE}pod-terminate", "Pod", _TERMINATES, {"weight": 1, **pod_removed(TERMINATED, "status")}),
        stage(f"{_ABOVE}pod-kill", "Pod", _IS_KILLED, {"weight": 1, **pod_status(TERMINATED)}),
        stage(f"{_ABOVE}pod-delete", "Pod", _ENDED, {"weight": 1, **_REMOVE}),
        stage(f"{_ABOVE}pod-leave", "Pod", _LEFT_ALONE, {"weight": 1, **_NOTHING}),
    ]
