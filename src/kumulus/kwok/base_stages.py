"""The KWOK stages of an emulated cluster: what KWOK does to nodes and pods, and when.

They follow KWOK's own ``node/fast``, ``node/heartbeat-with-lease`` and ``pod/fast`` (kwok v0.8.0), with these
differences:

- a pod of a Job completes after the delay in its annotation ``pod-complete.stage.kwok.x-k8s.io/delay`` (a Go
  duration). Without one, its command decides how long it runs and how it ends, as for every pod that is not restarted
  for ever (`kumulus.kwok.endings`); where that is not understood, a pod of a Job of batch/v1 completes at once.
  KWOK would count a delay from the last change of the pod, and again after a restart of its controller; here it is
  anchored to times in the pod's status;
- the delay has no jitter: where a jitter is smaller than the delay, KWOK takes it as the delay;
- a pod becomes Ready when its probes begin, fails at its ``activeDeadlineSeconds``, is restarted after a failure where
  its restartPolicy says so, and follows changes of its spec; its readiness gates are its controllers';
- a faulted node is left as the fault wants it; one that reboots comes back when its time is up;
- a completed container keeps its start time, and the pod is no longer Ready, as a kubelet reports it;
- a pod by which KAI reserves a GPU, to share it out in fractions, says which one it has got;
- a deleted pod ends before it is removed: its containers are terminated, its phase is Failed or Succeeded, and it is
  not Ready. A pod that a finalizer keeps stays like that.

Where KWOK was installed from its charts, stage-fast has installed KWOK's own stages. :func:`node_stages_above` and
:func:`pod_stages_above` are those of ours that have to come before them: KWOK passes over stages without a weight where
one with a weight matches.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.kwok.endings import HAS_PROBES, INIT_FAILS, next_is, when_init_fails, when_next
from kumulus.kwok.pod_statuses import base as statuses
from kumulus.kwok.pod_statuses.followed import ANNOTATED, RESIZE_ANNOTATION, followed
from kumulus.kwok.stages import (
    FOR_EVER,
    Match,
    absent,
    exists,
    is_in,
    not_in,
    pod_annotated,
    pod_removed,
    pod_status,
    stage,
    with_events,
)
from kumulus.model.active_faults import BOOT_ID_ANNOTATION, FAULTS_ANNOTATION, REBOOT_ANNOTATION
from kumulus.model.fault_effects import RECLAIM_ANNOTATION
from kumulus.model.nodes import EMULATED_NODE_INFO, LOCALHOST

_FAULTS = f'.metadata.annotations["{FAULTS_ANNOTATION}"]'
_RECLAIMED = f'.metadata.annotations["{RECLAIM_ANNOTATION}"]'
_BOOT_ID = f'.metadata.annotations["{BOOT_ID_ANNOTATION}"]'

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

# Extended resources are advertised by whoever patches them into the capacity; a kubelet lets pods have them.
_NODE_ADVERTISED = """
{{ $root := . }}
allocatable:
{{ range $name, $amount := .status.capacity }}
{{ if and (contains "/" $name) (not (hasKey (or $root.status.allocatable dict) $name)) }}
  {{ $name | Quote }}: {{ $amount | Quote }}
{{ end }}
{{ end }}
"""

_FAULTED = [exists(_FAULTS), absent(_BOOT_ID)]
_NOT_ALLOCATABLE = (
    '[.status.capacity // {} | keys[] | select(contains("/"))] - (.status.allocatable // {} | keys) != []'
)
_ADVERTISED = [absent(_FAULTS), is_in(f"({_NOT_ALLOCATABLE} | tostring)", "true")]
_REBOOTED = [exists(_BOOT_ID), not_in(_READY, "True")]
_RUNS = [absent(".metadata.deletionTimestamp"), is_in(".status.phase", "Running")]
_BEGINS = [absent(".metadata.deletionTimestamp"), is_in(".status.phase", "Pending")]
_OF_A_JOB = is_in(".metadata.ownerReferences.[].kind", "Job")
_DELETED = exists(".metadata.deletionTimestamp")
_OVER = ("Succeeded", "Failed")
# With a grace period of 0, only finalizers keep a pod: deleting it again would do nothing. One that none keeps must not
# even be patched: such a patch removes it (k8s.io/apiserver, ShouldDeleteDuringUpdate) by name, or what has come in its
# place.
_GRACE = "(.metadata.deletionGracePeriodSeconds | tostring)"
# In jq: it has ended, or nothing keeps it.
_NEEDS_NOTHING = (
    f"(.status.phase == {' or .status.phase == '.join(map(json.dumps, _OVER))} or (.metadata.finalizers // []) == [])"
)
_TERMINATES = [_DELETED, not_in(".status.phase", *_OVER), not_in(_GRACE, "0")]
_IS_KILLED = [_DELETED, is_in(_GRACE, "0"), is_in(f"({_NEEDS_NOTHING} | tostring)", "false")]
_LEFT_ALONE = [_DELETED, is_in(_GRACE, "0"), is_in(f"({_NEEDS_NOTHING} | tostring)", "true")]
_ENDED = [_DELETED, is_in(".status.phase", *_OVER), not_in(_GRACE, "0")]
# Of a pod that has ended and is still there, as when kwok-controller was killed between the patch of pod-terminate and
# its deletion. Mostly the pod is gone before the delay is over.
_REMOVE: dict[str, Any] = {
    "delay": {"durationMilliseconds": 1_000},
    **pod_removed("  annotations:\n    kumulus.io/ended: {{ Now | Quote }}"),
}
# Of a stage that does nothing. A node or pod that comes to match it loses what KWOK has scheduled for it before. With a
# weight, it keeps KWOK from stages without one.
_NOTHING: dict[str, Any] = {"delay": {"durationMilliseconds": FOR_EVER}, "next": {}}
_REBOOT: dict[str, Any] = {
    "delay": {"durationFrom": {"expressionFrom": f'.metadata.annotations["{REBOOT_ANNOTATION}"]'}},
    "next": {"statusTemplate": _NODE_REBOOTED},
}

# The stages of a running pod: a condition that rules most other pods out, what is next for the pod (see
# :func:`next_is`), and the status that it then has.
_LIFE = {
    "pod-probed": (HAS_PROBES, "starts", statuses.MADE_READY),
    "pod-complete": (_OF_A_JOB, "completes", statuses.COMPLETE),
    "pod-refuse": (_OF_A_JOB, "refuses", statuses.REFUSED),
    "pod-exit": (is_in(".spec.restartPolicy", "Never", "OnFailure"), "exits", statuses.EXITED),
    "pod-deadline": (exists(".spec.activeDeadlineSeconds"), "exceeds", statuses.DEADLINE_EXCEEDED),
    "pod-restart": (is_in(".spec.restartPolicy", "OnFailure"), "restarts", statuses.RESTARTED),
}
# KAI's binder makes a pod to reserve the GPU that others have fractions of; the program in it says which GPU it got.
_GPU_INDEX = "run.ai/reserve_for_gpu_index"
_RESERVES = [
    *_RUNS,
    is_in('.metadata.labels["app"]', "kai-resource-reservation"),
    absent(f".metadata.annotations[{json.dumps(_GPU_INDEX)}]"),
]
_RESERVE: dict[str, Any] = pod_annotated({_GPU_INDEX: "GPU-{{ .metadata.uid }}"})
# In jq, whether a pod's status lags behind. Its spec has changed; or a gate was opened or closed; or the controller of
# nodes took Ready from it while its node was away (KWOK acts on no pod of a silent node); or its resize is no longer
# held up.
_LAGS = f"""
((.metadata.generation // 0) > (.status.observedGeneration // 0)
  or ([.status.conditions[]? | select(.type == "Ready").status][0] as $ready
    | [.status.conditions[]? | select(.status == "True").type] as $true
    | if [.spec.readinessGates[]?.conditionType] - $true == []
      then $ready == "False" and any($true[]; . == "ContainersReady")
      else $ready == "True" end)
  or (any(.status.conditions[]?; .type == "PodResizePending" and .message == {json.dumps(ANNOTATED)})
    and (.metadata.annotations // {{}} | has({json.dumps(RESIZE_ANNOTATION)}) | not))
) | tostring""".strip()
# Above the stages of lifecycles and faults, which go on with the pod as it then is.
_FOLLOW = stage(
    "pod-follow", "Pod", [*_RUNS, is_in(_LAGS, "true")], {"weight": 1_000_000_000, **pod_status(followed())}
)
_ABOVE = "kumulus-"
_HEAVY = {"weight": 1_000}


def stages(*, events: bool = False) -> list[dict[str, Any]]:
    """Return the stages as KWOK ``Stage`` documents, with the events that a kubelet writes, or without."""
    found = [
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
        stage("node-advertised", "Node", _ADVERTISED, {"weight": 1, "next": {"statusTemplate": _NODE_ADVERTISED}}),
        stage("node-faulted", "Node", _FAULTED, _NOTHING),
        stage("node-rebooted", "Node", _REBOOTED, _REBOOT),
        stage(
            "pod-ready",
            "Pod",
            [*_BEGINS, not_in(_READY, "True"), is_in(INIT_FAILS, "false")],
            pod_status(statuses.READY),
        ),
        stage("pod-reserve-gpu", "Pod", _RESERVES, _RESERVE),
        stage(
            "pod-init-fail",
            "Pod",
            [*_BEGINS, is_in(INIT_FAILS, "true")],
            {"delay": when_init_fails(), **pod_status(statuses.INIT_FAILED)},
        ),
        *(_life(name) for name in _LIFE),
        _FOLLOW,
        stage("pod-terminate", "Pod", _TERMINATES, pod_removed(statuses.TERMINATED, "status")),
        stage("pod-kill", "Pod", _IS_KILLED, pod_status(statuses.TERMINATED)),
        stage("pod-delete", "Pod", _ENDED, _REMOVE),
    ]
    return [with_events(each) for each in found] if events else found


def _life(name: str, prefix: str = "", also: Sequence[Match] = (), rest: Mapping[str, Any] = {}) -> dict[str, Any]:
    """One of :data:`_LIFE`, with a prefix of its name, further conditions, and more of its spec."""
    mostly, what, status = _LIFE[name]
    match = [*_RUNS, mostly, next_is(what), *also]
    return stage(f"{prefix}{name}", "Pod", match, {**rest, "delay": when_next(), **pod_status(status)})


def node_initialize(name: str, labels: Mapping[str, str], having: str, info: Mapping[str, str]) -> dict[str, Any]:
    """The stage that makes nodes Ready that Kumulus did not create, and adds to their ``status.nodeInfo``.

    The nodes have these labels, and one of the key ``having``, whatever its value.
    """
    match = [not_in(_READY, "True"), absent(_FAULTS), exists(f'.metadata.labels["{having}"]'), absent(_RECLAIMED)]
    match += [is_in(f'.metadata.labels["{key}"]', value) for key, value in labels.items()]
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in sorted({**info, **EMULATED_NODE_INFO}.items()))
    return stage(name, "Node", match, {**_HEAVY, "next": {"statusTemplate": f"{_NODE_MADE}{lines}"}})


def node_reclaimed(name: str, having: str) -> dict[str, Any]:
    """The stage that deletes a node when its machine is reclaimed, in spite of finalizers.

    The node has a label of the key ``having``, whatever its value.
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


def pod_stages_above(lifecycle_condition: str) -> list[dict[str, Any]]:
    """The stages of pods for a cluster that has the chart stage-fast.

    They are those of :func:`stages`, one for the pods that stage-fast would complete at once, and one for those that it
    must leave alone. Pods with the condition of a lifecycle are completed by the lifecycle's stages.
    """
    no_lifecycle = absent(f'.status.conditions.[] | select( .type == "{lifecycle_condition}" )')
    stays = [*_RUNS, _OF_A_JOB, next_is("stays"), no_lifecycle]
    return [
        *(_life(name, _ABOVE, [no_lifecycle], {"weight": 1}) for name in _LIFE),
        stage(f"{_ABOVE}pod-stays", "Pod", stays, {"weight": 1, **_NOTHING}),
        {**_FOLLOW, "metadata": {"name": f"{_ABOVE}pod-follow"}},
        stage(
            f"{_ABOVE}pod-terminate", "Pod", _TERMINATES, {"weight": 1, **pod_removed(statuses.TERMINATED, "status")}
        ),
        stage(f"{_ABOVE}pod-kill", "Pod", _IS_KILLED, {"weight": 1, **pod_status(statuses.TERMINATED)}),
        stage(f"{_ABOVE}pod-delete", "Pod", _ENDED, {"weight": 1, **_REMOVE}),
        stage(f"{_ABOVE}pod-leave", "Pod", _LEFT_ALONE, {"weight": 1, **_NOTHING}),
    ]
