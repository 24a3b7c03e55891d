"""The statuses of pods without a lifecycle of their own: running, completed, restarted; and ended for deleted ones.

They differ from KWOK's own ``pod/fast`` (kwok v0.8.0) as listed in `kumulus.kwok.base_stages`.
"""

import json

from kumulus.kwok.endings import EXIT_CODE, FAILING
from kumulus.kwok.pod_statuses.fragments import (
    ASSUMED,
    CONTAINER,
    DECLARED,
    FAILED_CHECK,
    INIT_ALL,
    INITIALIZED,
    NO_SANDBOX,
    NOT_READY,
    NOW,
    OBSERVED,
    PLACE,
    REFUSES,
    RUNNING,
    SANDBOX,
    conditions,
    filled,
)
from kumulus.kwok.pod_statuses.fragments import READY as IS_READY
from kumulus.kwok.pod_statuses.lifecycle import (
    INIT_AFTER_FAILED,
    INIT_FAILED_REST,
    INIT_WAS,
    ending_as,
    made_ready,
    over,
    restarted,
)
from kumulus.model.lifecycles import DELAY_ANNOTATION, ContainerFailure

# Of a container in the spec: how long after its start its startup probe begins, and the first of its probes.
_STARTUP_PROBED = '(dig "startupProbe" "initialDelaySeconds" 0 .)'
_PROBED = f'(or (dig "readinessProbe" "initialDelaySeconds" 0 .) {_STARTUP_PROBED})'

READY = (
    NOW
    + f"""
{{{{ $later := false }}}}
{{{{ range .spec.containers }}}}{{{{ if {_PROBED} }}}}{{{{ $later = true }}}}{{{{ end }}}}{{{{ end }}}}
"""
    + conditions(SANDBOX + INITIALIZED + "{{ if $later }}\n" + NOT_READY + "{{ else }}\n" + IS_READY + "{{ end }}\n")
    + "{{ if .spec.initContainers }}"
    + INIT_ALL
    + "{{ end }}"
    + RUNNING % {"ready": f"{{{{ not {_PROBED} }}}}", "started": f"{{{{ not {_STARTUP_PROBED} }}}}"}
    + PLACE
)
# An init container has failed, and not for the first time if it has a status.
INIT_FAILED = NOW + filled(
    """
{{ $ends := eq (or .spec.restartPolicy "Always") "Never" }}
{{ $failed := false }}{{ $incomplete := list }}
initContainerStatuses:
{{ range $container := .spec.initContainers }}
<<INIT_WAS>>
<<EXIT_CODE>>
<<CONTAINER>>
<<INIT_AFTER_FAILED>>
{{ else if eq (or .restartPolicy "") "Always" }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ dig "state" "running" "startedAt" $now $was | Quote }}}}
{{ else }}
{{ $reason := ternary "Error" "Completed" (ne $code 0) }}
{{ $end := dict "exitCode" $code "reason" $reason "startedAt" $now "finishedAt" $now }}
  ready: {{ eq $code 0 }}
  started: false
{{ if and $was (ne $code 0) }}
  restartCount: {{ add1 (printf "%v" $was.restartCount | int) }}
  state: {waiting: {reason: CrashLoopBackOff, message: {{ print "back-off restarting " .name | Quote }}}}
  lastState: {terminated: {{ $end | toJson }}}
{{ else }}
  restartCount: 0
  state: {terminated: {{ dig "state" "terminated" $end $was | toJson }}}
{{ end }}
{{ if ne $code 0 }}{{ $failed = true }}{{ end }}
{{ end }}
{{ if $failed }}{{ $incomplete = append $incomplete .name }}{{ end }}
{{ end }}
<<INIT_FAILED_REST>>
""",
    INIT_WAS=INIT_WAS,
    EXIT_CODE=EXIT_CODE,
    CONTAINER=CONTAINER,
    INIT_AFTER_FAILED=INIT_AFTER_FAILED,
    INIT_FAILED_REST=INIT_FAILED_REST,
)
MADE_READY = made_ready()
# A Job's pod that completes is over, also one of another kind of Job that Kubernetes would let restart for ever.
_OVER = '{{ $policy = "Never" }}'
# Unless the pod has the annotation, by which somebody has declared its end.
_UNLESS_DECLARED = f'{{{{ if not (dig {json.dumps(DELAY_ANNOTATION)} "" (or $root.metadata.annotations dict)) }}}}'
COMPLETE = over(
    f'{_OVER}{_UNLESS_DECLARED}{{{{ $_ := set $end "message" "emulated; the exit code is assumed" }}}}{{{{ end }}}}',
    f"{_UNLESS_DECLARED}\n{ASSUMED}{{{{ else }}}}\n{DECLARED}{{{{ end }}}}\n",
)
REFUSED = over(f"{_OVER}{ending_as(ContainerFailure(1.0, **FAILED_CHECK))}", REFUSES)
EXITED = over(FAILING, DECLARED)
RESTARTED = restarted(start_up=False)

# What a kubelet writes when it has ended the containers of a deleted pod (k8s.io/kubernetes v1.35, pkg/kubelet:
# syncTerminatingPod, getPhase, and TerminatePod of the status manager; recorded of v1.37.2 in tests/data/kubelet). What
# had ended before stays as it ended; a container that waits for its restart has its last end; one that never started is
# lost, unless the pod was not yet initialized. A process ends at the first signal, SIGTERM, which a kubelet sends even
# if the grace period is 0.
_TERMINATED = """
{{ $now := Now }}
{{ $root := . }}
{{ $killed := dict "exitCode" CODE "reason" "Error" "finishedAt" $now }}
{{ $lost := dict "exitCode" 137 "reason" "ContainerStatusUnknown"
  "message" "The container could not be located when the pod was terminated" }}
{{ $initialized := not .spec.initContainers }}
{{ range .status.conditions }}
{{ if and (eq .type "Initialized") (eq .status "True") }}{{ $initialized = true }}{{ end }}
{{ end }}
{{ $succeeded := SUCCEEDED }}
{{ $waiting := dict "waiting" (dict "reason" "PodInitializing") }}
containerStatuses:
{{ range .spec.containers }}
{{ $name := .name }}
{{ $status := dict "name" .name "image" .image "imageID" "" "restartCount" 0 "state" $waiting }}
{{ range $root.status.containerStatuses }}{{ if eq .name $name }}{{ $status = . }}{{ end }}{{ end }}
{{ $end := dig "state" "terminated" dict $status }}
{{ with dig "state" "running" dict $status }}{{ $end = merge (dict "startedAt" .startedAt) $killed }}{{ end }}
{{ if not $end }}
{{ $end = dig "lastState" "terminated" dict $status }}
{{ $_ := unset $status "lastState" }}
{{ if and (not $end) $initialized }}{{ $end = $lost }}{{ end }}
{{ end }}
{{ if $end }}{{ $_ := set $status "state" (dict "terminated" $end) }}{{ end }}
{{ if ne (printf "%v" $end.exitCode) "0" }}{{ $succeeded = false }}{{ end }}
{{ $_ := set $status "ready" false }}
{{ $_ := set $status "started" false }}
- {{ $status | toJson }}
{{ end }}
{{ if not .status.initContainerStatuses }}{{ with .spec.initContainers }}
initContainerStatuses:
{{ range . }}
{{ $status := dict "name" .name "image" .image "imageID" "" "restartCount" 0 "ready" false "started" false }}
- {{ set $status "state" $waiting | toJson }}
{{ end }}
{{ end }}{{ end }}
{{ range $list := list "initContainerStatuses" "ephemeralContainerStatuses" }}
{{ with index $root.status $list }}
{{ $list }}:
{{ range . }}
{{ $status := . }}
{{ $end := dig "lastState" "terminated" dict $status }}
{{ with dig "state" "running" dict $status }}{{ $end = merge (dict "startedAt" .startedAt) $killed }}{{ end }}
{{ if and $end (not (dig "state" "terminated" dict $status)) }}
{{ $_ := set $status "state" (dict "terminated" $end) }}
{{ $_ := set (set $status "ready" false) "started" false }}
{{ end }}
- {{ $status | toJson }}
{{ end }}
{{ end }}
{{ end }}
MORE
phase: {{ if $succeeded }}Succeeded{{ else }}Failed{{ end }}
{{ $reason := ternary "PodCompleted" "PodFailed" $succeeded }}
""" + conditions(
    """
{{ range $type := list "Ready" "ContainersReady" }}
{{ $since := $now }}
{{ range $root.status.conditions }}
{{ if and (eq .type $type) (eq .status "False") }}{{ $since = .lastTransitionTime }}{{ end }}
{{ end }}
- {type: {{ $type }}, status: "False", reason: {{ $reason }}, message: null, lastTransitionTime: {{ $since | Quote }},
  OBSERVED}
{{ end }}
{{ range $root.status.conditions }}
{{ if or (eq .type "PodScheduled") (and (eq .type "Initialized") (not $succeeded)) }}
- {type: {{ .type }}, OBSERVED}
{{ end }}
{{ end }}
{{ if $succeeded }}
- {type: Initialized, status: "True", reason: PodCompleted, OBSERVED}
{{ end }}
""".replace("OBSERVED", OBSERVED)
    + NO_SANDBOX
)


def _terminated(succeeded: str = "true", more: str = "", code: str = "143") -> str:
    """The status of a deleted pod whose running containers were ended.

    Args:
        succeeded: whether it has succeeded if no container has failed, ``true`` or ``false``.
        more: further lines of the status.
        code: the exit code of the containers that were ended.
    """
    return _TERMINATED.replace("SUCCEEDED", succeeded).replace("MORE", more).replace("CODE", code)


TERMINATED = _terminated()
KILLED = _terminated(code="137")
"""Likewise, of containers that have not ended when the grace period has."""
DEADLINE_EXCEEDED = _terminated(
    "false", "reason: DeadlineExceeded\nmessage: Pod was active on the node longer than the specified deadline"
)
