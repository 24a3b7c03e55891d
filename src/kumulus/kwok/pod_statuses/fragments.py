"""The pieces of a pod's statuses, as Go templates of YAML: conditions, and lists of containers.

Each may use ``$now`` and ``$root``, which :data:`NOW` sets.
"""

from __future__ import annotations

import json

NOW = "{{ $now := Now }}{{ $root := . }}"


def condition(kind: str, status: str, reason: str = "null", message: str = "null", *, changed: bool = True) -> str:
    """A condition; its time is left out if its status is known to be unchanged."""
    since = "lastTransitionTime: {{ $now | Quote }}, " if changed else ""
    return f'- {{{since}status: "{status}", type: {kind}, reason: {reason}, message: {message}}}\n'


_NAMES = "[{{ range $i, $c := %s }}{{ if $i }} {{ end }}{{ $c.name }}{{ end }}]"
_UNREADY = f"'containers with unready status: {_NAMES % '.spec.containers'}'"
_INCOMPLETE = f"'containers with incomplete status: {_NAMES % '.spec.initContainers'}'"
NOT_READY = condition("Ready", "False", "ContainersNotReady", _UNREADY) + condition(
    "ContainersReady", "False", "ContainersNotReady", _UNREADY
)
READY = (
    condition("Ready", "True")
    + condition("ContainersReady", "True")
    + "{{ range .spec.readinessGates }}\n"
    + condition("{{ .conditionType | Quote }}", "True")
    + "{{ end }}\n"
)
SANDBOX = condition("PodReadyToStartContainers", "True")
NO_SANDBOX = condition("PodReadyToStartContainers", "False", "PodSandboxNotReady", "pod sandbox is not ready")
ASSUMED = condition(
    "kumulus.io/Emulated", "True", "ExitCodeAssumed", "no container has run; nobody has declared that it exits with 0"
)
"""On a pod that has ended: what it did is nobody's word."""
DECLARED = condition("kumulus.io/Emulated", "True", "ExitCodeDeclared", "no container has run; its end is declared")
"""Likewise: its end is that of a lifecycle or a fault."""
INITIALIZED = condition("Initialized", "True")
UNINITIALIZED = condition("Initialized", "False", "ContainersNotInitialized", _INCOMPLETE)

# The pod's addresses and start time, as a kubelet writes them with the first status.
PLACE = """
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

WAITING = """
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

INIT_WAITING = """
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

# Ends the running init container and starts the next one; afterwards $done tells whether there was none left.
INIT_NEXT = """
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

# All init containers at once, for lifecycles without an `init`.
INIT_ALL = """
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

RUNNING = """
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

# A container that has ended stays as it is; a running one ends now. $again tells whether the pod will run again.
ENDING = """
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

RESTARTING = """
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

MADE_READY = """
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


def conditions(entries: str) -> str:
    """The conditions of a status, from their entries."""
    return f"conditions:\n{entries}"


def marked(mark: str, lifecycle: str) -> str:
    """The condition that names a pod's lifecycle."""
    return condition(mark, "True", json.dumps(lifecycle))
