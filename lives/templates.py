"""What a kubelet writes into a pod's status as the pod goes through its life: KWOK's templates of Go and YAML.

Modelled on k8s.io/kubernetes v1.35, pkg/kubelet/status/generate.go and kubelet_pods.go (convertToAPIContainerStatuses,
generateAPIPodStatus). A template is a status patch: conditions are merged by their type, lists of containers replaced.
"""

from __future__ import annotations

import json

from spec.lifecycles import Failure

_NOW = "{{ $now := Now }}{{ $root := . }}"


def _condition(kind: str, status: str, reason: str = "null", message: str = "null", *, changed: bool = True) -> str:
    """A condition; its time stays when its status is known to be as it was."""
    since = "lastTransitionTime: {{ $now | Quote }}, " if changed else ""
    return f'- {{{since}status: "{status}", type: {kind}, reason: {reason}, message: {message}}}\n'


_NAMES = "[{{ range $i, $c := %s }}{{ if $i }} {{ end }}{{ $c.name }}{{ end }}]"
_UNREADY = f"'containers with unready status: {_NAMES % '.spec.containers'}'"
_INCOMPLETE = f"'containers with incomplete status: {_NAMES % '.spec.initContainers'}'"
_NOT_READY = _condition("Ready", "False", "ContainersNotReady", _UNREADY) + _condition(
    "ContainersReady", "False", "ContainersNotReady", _UNREADY
)
_READY = (
    _condition("Ready", "True")
    + _condition("ContainersReady", "True")
    + "{{ range .spec.readinessGates }}\n"
    + _condition("{{ .conditionType | Quote }}", "True")
    + "{{ end }}\n"
)
_SANDBOX = _condition("PodReadyToStartContainers", "True")
_INITIALIZED = _condition("Initialized", "True")
_UNINITIALIZED = _condition("Initialized", "False", "ContainersNotInitialized", _INCOMPLETE)

# Where the pod is: as a kubelet writes it with the first status.
_PLACE = """
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ $ownIP := not .spec.hostNetwork }}
{{ with PodIPsWith .spec.nodeName (not $ownIP) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
startTime: {{ $now | Quote }}
"""

_WAITING = """
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  started: false
  state: {waiting: {reason: %s}}
{{ end }}
"""

_INIT_WAITING = """
initContainerStatuses:
{{ range .spec.initContainers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  started: false
  state: {waiting: {reason: PodInitializing}}
{{ end }}
"""

# Ends the init container that runs and starts the next one; $done says that there is none.
_INIT_NEXT = """
initContainerStatuses:
{{ range $index, $container := .spec.initContainers }}
{{ $was := dict }}
{{ if $root.status.initContainerStatuses }}{{ $was = index $root.status.initContainerStatuses $index }}{{ end }}
{{ $sidecar := eq (or $container.restartPolicy "") "Always" }}
{{ $since := dig "state" "running" "startedAt" "" $was }}
- image: {{ $container.image | Quote }}
  name: {{ $container.name | Quote }}
  restartCount: 0
{{ if dig "state" "terminated" "finishedAt" "" $was }}
  ready: true
  started: false
  state: {terminated: {{ $was.state.terminated | toJson }}}
{{ else if and $since (not $sidecar) }}
  ready: true
  started: false
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $since | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ else if $done }}
  ready: {{ $sidecar }}
  started: true
  state: {running: {startedAt: {{ or $since $now | Quote }}}}
{{ if not $sidecar }}{{ $done = false }}{{ end }}
{{ else }}
  ready: false
  started: false
  state: {waiting: {reason: PodInitializing}}
{{ end }}
{{ end }}
"""

# All init containers at once, for lifecycles that say nothing of them.
_INIT_ALL = """
initContainerStatuses:
{{ range .spec.initContainers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
{{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ else }}
  started: false
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
{{ end }}
"""

_RUNNING = """
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: %(ready)s
  restartCount: 0
  started: %(ready)s
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
phase: Running
"""

# A container that has ended is kept as it is; one that runs ends now. Whether it will run again is in $again.
_ENDING = """
{{ $policy := or .spec.restartPolicy "Always" }}
{{ $failing := %(failing)s }}
{{ $again := or (eq $policy "Always") %(again)s }}
containerStatuses:
{{ range .status.containerStatuses }}
{{ $failed := eq .name $failing }}
{{ $restarts := printf "%%v" .restartCount | int }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: {{ $restarts }}
{{ $since := dig "state" "running" "startedAt" "" . }}
{{ if not $since }}
  state: {{ .state | toJson }}
  lastState: {{ or .lastState dict | toJson }}
{{ else }}
{{ $end := dict "exitCode" 0 "reason" "Completed" "startedAt" $since "finishedAt" $now }}
{{ if $failed }}{{ $end = merge (%(failure)s | fromJson) $end }}{{ end }}
{{ if and (gt $restarts 0) (or (eq $policy "Always") (and $failed (eq $policy "OnFailure"))) }}
  state: {waiting: {reason: CrashLoopBackOff, message: {{ print "back-off restarting " .name | Quote }}}}
  lastState: {terminated: {{ $end | toJson }}}
{{ else }}
  state: {terminated: {{ $end | toJson }}}
  lastState: {{ or .lastState dict | toJson }}
{{ end }}
{{ end }}
{{ end }}
{{ if not $again }}
{{ with .status.initContainerStatuses }}
initContainerStatuses:
{{ range . }}
{{ $since := dig "state" "running" "startedAt" "" . }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  restartCount: {{ .restartCount }}
  ready: {{ if $since }}false{{ else }}{{ .ready }}{{ end }}
  started: false
{{ if $since }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $since | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ else }}
  state: {{ .state | toJson }}
{{ end }}
{{ end }}
{{ end }}
{{ end }}
"""

_RESTARTING = """
containerStatuses:
{{ range .status.containerStatuses }}
{{ $end := or (dig "state" "terminated" dict .) (dig "lastState" "terminated" dict .) }}
{{ $waits := dig "state" "waiting" "reason" "" . }}
{{ $code := printf "%%v" $end.exitCode }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
{{ if or $waits (eq (or $root.spec.restartPolicy "Always") "Always") (ne $code "0") }}
  ready: %(ready)s
  started: %(ready)s
  restartCount: {{ add1 (printf "%%v" .restartCount | int) }}
  state: {running: {startedAt: {{ $now | Quote }}}}
  lastState: {terminated: {{ $end | toJson }}}
{{ else }}
  ready: false
  started: false
  restartCount: {{ .restartCount }}
  state: {{ .state | toJson }}
  lastState: {{ or .lastState dict | toJson }}
{{ end }}
{{ end }}
"""

_MADE_READY = """
containerStatuses:
{{ range .status.containerStatuses }}
{{ $runs := dig "state" "running" "startedAt" "" . }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: {{ if $runs }}true{{ else }}false{{ end }}
  started: {{ if $runs }}true{{ else }}false{{ end }}
  restartCount: {{ .restartCount }}
  state: {{ .state | toJson }}
  lastState: {{ or .lastState dict | toJson }}
{{ end }}
"""


def beginning(mark: str, lifecycle: str) -> str:
    """The first status, in which containers wait for their images.

    Args:
        mark: the condition by which the pod is known to be of the lifecycle.
        lifecycle: its name.
    """
    initialized = "{{ if .spec.initContainers }}\n" + _UNINITIALIZED + "{{ else }}\n" + _INITIALIZED + "{{ end }}\n"
    conditions = _conditions(_marked(mark, lifecycle) + _SANDBOX + initialized + _NOT_READY)
    waiting = (
        "{{ if .spec.initContainers }}"
        + _INIT_WAITING
        + _WAITING % "PodInitializing"
        + "{{ else }}"
        + _WAITING % "ContainerCreating"
        + "{{ end }}"
    )
    return _NOW + conditions + waiting + _PLACE + "phase: Pending\n"


def started(*, first: tuple[str, str] | None, init: bool, start_up: bool) -> str:
    """The status when the images are there, or when an init container has ended.

    Args:
        first: mark and lifecycle, as for :func:`beginning`, where this is the first status.
        init: init containers run one after the other, and the containers when none is left.
        start_up: the containers run, but are not ready yet.
    """
    known, place = (_marked(*first) + _SANDBOX, _PLACE) if first else ("", "")
    running = _RUNNING % {"ready": "false" if start_up else "true"}
    if first:
        running += _conditions(known + _INITIALIZED + (_NOT_READY if start_up else _READY))
    elif start_up:
        # An empty list of conditions would remove those that are there.
        running += "{{ if .spec.initContainers }}\n" + _conditions(_INITIALIZED) + "{{ end }}\n"
    else:
        running += _conditions("{{ if .spec.initContainers }}\n" + _INITIALIZED + "{{ end }}\n" + _READY)
    if not init:
        return _NOW + "{{ if .spec.initContainers }}" + _INIT_ALL + "{{ end }}" + running + place
    waiting = _WAITING % "PodInitializing" + "phase: Pending\n"
    if first:
        waiting += _conditions(known + _UNINITIALIZED + _NOT_READY)
    some = "{{ $done := true }}{{ if .spec.initContainers }}" + _INIT_NEXT + "{{ end }}"
    return _NOW + some + "{{ if $done }}" + running + "{{ else }}" + waiting + "{{ end }}" + place


def made_ready() -> str:
    """The status when the containers have become ready."""
    return _NOW + _conditions(_READY) + _MADE_READY


def ended(failure: Failure | None) -> str:
    """The status when the containers have ended, successfully or one of them not; for every restartPolicy."""
    if failure is None:
        end, failing, again = "{}", '""', "false"
    else:
        end = json.dumps(
            {"exitCode": failure.exitCode, "reason": failure.reason}
            | ({"message": failure.message} if failure.message else {})
        )
        failing = json.dumps(failure.container) if failure.container else "(index .spec.containers 0).name"
        again = '(eq $policy "OnFailure")'
    values = {"failing": failing, "again": again, "failure": json.dumps(end)}
    phase = "Failed" if failure else "Succeeded"
    reason = "PodFailed" if failure else "PodCompleted"
    over = _conditions(
        _condition("PodReadyToStartContainers", "False")
        + _condition("Initialized", "True", "null" if failure else reason, changed=False)
        + _condition("Ready", "False", reason)
        + _condition("ContainersReady", "False", reason)
    )
    over += f"phase: {phase}\n"
    unready = _conditions(_NOT_READY)
    return _NOW + _ENDING % values + "{{ if $again }}\n" + unready + "{{ else }}\n" + over + "{{ end }}\n"


def restarted(*, start_up: bool) -> str:
    """The status when what has ended runs again."""
    if start_up:
        return _NOW + _RESTARTING % {"ready": "false"}
    # With restartPolicy OnFailure, a container that has ended well keeps its pod from being ready again.
    all_again = '{{ if or (eq (or .spec.restartPolicy "Always") "Always") (eq (len .spec.containers) 1) }}\n'
    return _NOW + all_again + _conditions(_READY) + "{{ end }}\n" + _RESTARTING % {"ready": "true"}


def _conditions(entries: str) -> str:
    return f"conditions:\n{entries}"


def _marked(mark: str, lifecycle: str) -> str:
    return _condition(mark, "True", json.dumps(lifecycle))
