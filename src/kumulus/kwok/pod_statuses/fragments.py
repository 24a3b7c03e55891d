"""The pieces of a pod's statuses, as Go templates of YAML: conditions, and lists of containers.

Each may use ``$now`` and ``$root``, which :data:`NOW` sets. A list of containers' statuses is written anew: from the
statuses that there are, so that what else they have is kept, or the first time from the spec.
"""

import json
import re
from typing import Any

from kumulus.model.lifecycles import EMULATED_CONDITION, EXIT_CODE_ASSUMED


def filled(template: str, **parts: str) -> str:
    """A template in which lines such as `<<PLACE>>` are the part of that name."""
    return re.sub(r"^<<(\w+)>>\n", lambda found: parts[found[1]], template, flags=re.MULTILINE)


NOW = "{{ $now := Now }}{{ $root := . }}"
OBSERVED = "observedGeneration: {{ or $root.metadata.generation 0 }}"


def condition(kind: str, status: str, reason: str = "null", message: str = "null", *, changed: bool = True) -> str:
    """A condition; its time is left out if its status is known to be unchanged."""
    since = "lastTransitionTime: {{ $now | Quote }}, " if changed else ""
    rest = f"reason: {reason}, message: {message}, {OBSERVED}"
    return f'- {{{since}status: "{status}", type: {kind}, {rest}}}\n'


_NAMES = "[{{ range $i, $c := %s }}{{ if $i }} {{ end }}{{ $c.name }}{{ end }}]"
_UNREADY = f"'containers with unready status: {_NAMES % '.spec.containers'}'"
NOT_READY = condition("Ready", "False", "ContainersNotReady", _UNREADY) + condition(
    "ContainersReady", "False", "ContainersNotReady", _UNREADY
)
# Afterwards $closed has what is said of the readiness gates that their controllers have not opened.
GATES = """
{{ $closed := list }}
{{ range $gate := .spec.readinessGates }}
{{ $is := "" }}
{{ range $root.status.conditions }}{{ if eq .type $gate.conditionType }}{{ $is = .status }}{{ end }}{{ end }}
{{ $name := print "pod readiness gate " ($gate.conditionType | Quote) }}
{{ if not $is }}
{{ $closed = append $closed (print "corresponding condition of " $name " does not exist.") }}
{{ else if ne $is "True" }}
{{ $closed = append $closed (print "the status of " $name " is not \\"True\\", but " $is) }}
{{ end }}
{{ end }}
"""
READY_BY_GATES = (
    "{{ if $closed }}\n"
    + condition("Ready", "False", "ReadinessGatesNotReady", '{{ join ", " $closed | Quote }}')
    + "{{ else }}\n"
    + condition("Ready", "True")
    + "{{ end }}\n"
)
READY = GATES + READY_BY_GATES + condition("ContainersReady", "True")
# The scheduler's condition, if it is there: a kubelet notes in it, too, which generation of the pod it has seen.
SCHEDULED = """\
{{ range .status.conditions }}
{{ if eq .type "PodScheduled" }}
- {type: PodScheduled, OBSERVED}
{{ end }}
{{ end }}
""".replace("OBSERVED", OBSERVED)
SANDBOX = condition("PodReadyToStartContainers", "True") + SCHEDULED
NO_SANDBOX = condition("PodReadyToStartContainers", "False", "PodSandboxNotReady", "pod sandbox is not ready")


def _emulated(reason: str, message: str) -> str:
    return condition(EMULATED_CONDITION, "True", reason, f"no container has run; {message}")


ASSUMED = _emulated(EXIT_CODE_ASSUMED, "nobody has declared that it exits with 0")
"""On a pod that has ended: nobody has declared how."""
REFUSES = _emulated("MustRun", "a check does not pass by assumption")
"""On a pod that is there to find out whether something works, and so must not pretend to run."""
FAILED_CHECK: dict[str, Any] = {
    "exit_code": 1,
    "reason": "Emulated",
    "message": "emulated; a check that has not run fails",
}
"""How the container of such a pod ends."""
DECLARED = _emulated("ExitCodeDeclared", "its end is declared")
"""On a pod that has ended as a lifecycle, a fault, an annotation or its command says."""
INITIALIZED = condition("Initialized", "True")


def uninitialized(names: str) -> str:
    """The condition of a pod whose init containers, those with these names, have not succeeded."""
    message = f"'containers with incomplete status: {names}'"
    return condition("Initialized", "False", "ContainersNotInitialized", message)


UNINITIALIZED = uninitialized(_NAMES % ".spec.initContainers")

# Resources at the level of the pod. What its containers sum up to is left out: templates cannot add quantities.
POD_RESOURCES = """
{{ with .spec.resources }}
resources: {{ toJson . }}
{{ with .requests }}
allocatedResources: {{ toJson . }}
{{ end }}
{{ end }}
"""

# The pod's addresses and start time, as a kubelet writes them with the first status. An address that it has stays: a
# second one of a family is refused.
PLACE = filled(
    """
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ if not .status.podIP }}
{{ $ownIP := not .spec.hostNetwork }}
{{ with PodIPsWith .spec.nodeName (not $ownIP) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ end }}
startTime: {{ $now | Quote }}
<<POD_RESOURCES>>
""",
    POD_RESOURCES=POD_RESOURCES,
)

# The beginning of a container's status, within a range over the spec.
CONTAINER = """\
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  resources: {{ .resources | toJson }}
{{ with .resources.requests }}
  allocatedResources: {{ . | toJson }}
{{ end }}
{{ with .volumeMounts }}
  volumeMounts:
{{ range . }}
  - name: {{ .name | Quote }}
    mountPath: {{ .mountPath | Quote }}
{{ if .readOnly }}
    readOnly: true
    recursiveReadOnly: {{ if eq (or .recursiveReadOnly "Disabled") "Disabled" }}Disabled{{ else }}Enabled{{ end }}
{{ end }}
{{ end }}
{{ end }}
"""

_WAITS = filled(
    """\
<<CONTAINER>>
  ready: false
  restartCount: 0
  started: false
  state: {waiting: {reason: %s}}
""",
    CONTAINER=CONTAINER,
)
WAITING = "\ncontainerStatuses:\n{{ range .spec.containers }}\n" + _WAITS + "{{ end }}\n"
INIT_WAITING = "\ninitContainerStatuses:\n{{ range .spec.initContainers }}\n" + _WAITS + "{{ end }}\n"

# Ends the running init container and starts the next one; afterwards $done tells whether there was none left.
INIT_NEXT = filled(
    """
initContainerStatuses:
{{ range $index, $container := .spec.initContainers }}
{{ $was := dict }}
{{ if $root.status.initContainerStatuses }}{{ $was = index $root.status.initContainerStatuses $index }}{{ end }}
{{ $sidecar := eq (or $container.restartPolicy "") "Always" }}
{{ $since := dig "state" "running" "startedAt" "" $was }}
<<CONTAINER>>
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
""",
    CONTAINER=CONTAINER,
)

# All init containers at once, for pods whose lifecycle has no `init`.
INIT_ALL = filled(
    """
initContainerStatuses:
{{ range .spec.initContainers }}
<<CONTAINER>>
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
""",
    CONTAINER=CONTAINER,
)

RUNNING = filled(
    """
containerStatuses:
{{ range .spec.containers }}
<<CONTAINER>>
  ready: %(ready)s
  restartCount: 0
  started: %(started)s
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
phase: Running
""",
    CONTAINER=CONTAINER,
)

# A container that has ended stays as it is; a running one ends now, as `failure` has it, which may change $end.
# Afterwards $failed tells whether one has failed, and $again whether the pod will run again.
ENDING = """
{{ $policy := or .spec.restartPolicy "Always" }}
{{ $failed := false }}
containerStatuses:
{{ range $status := .status.containerStatuses }}
{{ $restarts := printf "%%v" .restartCount | int }}
{{ $since := dig "state" "running" "startedAt" "" . }}
{{ $end := dig "state" "terminated" dict . }}
{{ if $since }}
{{ $end = dict "exitCode" 0 "reason" "Completed" "startedAt" $since "finishedAt" $now }}
%(failure)s
{{ end }}
{{ $code := printf "%%v" (or $end.exitCode 0) }}
{{ if ne $code "0" }}{{ $failed = true }}{{ end }}
{{ $restarted := or (eq $policy "Always") (and (ne $code "0") (eq $policy "OnFailure")) }}
{{ if and $since $restarted (gt $restarts 0) }}
{{ $why := dict "reason" "CrashLoopBackOff" "message" (print "back-off restarting " .name) }}
{{ $_ := set . "state" (dict "waiting" $why) }}
{{ $_ := set . "lastState" (dict "terminated" $end) }}
{{ else if $since }}
{{ $_ := set . "state" (dict "terminated" $end) }}
{{ end }}
- {{ set (set . "ready" false) "started" false | toJson }}
{{ end }}
{{ $again := or (eq $policy "Always") (and $failed (eq $policy "OnFailure")) }}
{{ if not $again }}
{{ with .status.initContainerStatuses }}
initContainerStatuses:
{{ range . }}
{{ $since := dig "state" "running" "startedAt" "" . }}
{{ if $since }}
{{ $end := dict "exitCode" 143 "reason" "Error" "startedAt" $since "finishedAt" $now }}
{{ $_ := set (set . "state" (dict "terminated" $end)) "ready" false }}
{{ end }}
- {{ set . "started" false | toJson }}
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
{{ if or $waits (eq (or $root.spec.restartPolicy "Always") "Always") (ne $code "0") }}
{{ $_ := set . "restartCount" (add1 (printf "%%v" .restartCount | int)) }}
{{ $_ := set . "state" (dict "running" (dict "startedAt" $now)) }}
{{ $_ := set . "lastState" (dict "terminated" $end) }}
{{ $_ := set (set . "ready" %(ready)s) "started" %(started)s }}
{{ else }}
{{ $_ := set (set . "ready" false) "started" false }}
{{ end }}
- {{ toJson . }}
{{ end }}
"""

MADE_READY = """
containerStatuses:
{{ range .status.containerStatuses }}
{{ $runs := ne (dig "state" "running" "startedAt" "" .) "" }}
- {{ set (set . "ready" $runs) "started" $runs | toJson }}
{{ end }}
"""


def conditions(entries: str) -> str:
    """The conditions of a status, from their entries, and the generation of the spec that the status is about."""
    return f"{OBSERVED}\nconditions:\n{entries}"


def marked(mark: str, lifecycle: str) -> str:
    """The condition that names a pod's lifecycle."""
    return condition(mark, "True", json.dumps(lifecycle))
