"""The statuses of pods: running and completed for those without a lifecycle of their own, and ended for deleted ones.

The first two follow KWOK's own ``pod/fast`` (kwok v0.8.0), with the differences listed in `kumulus.kwok.base_stages`.
"""

from __future__ import annotations

from kumulus.kwok.pod_statuses.fragments import ASSUMED, NO_SANDBOX

READY = """
{{ $now := Now }}
conditions:
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: PodReadyToStartContainers}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Initialized}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Ready}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: ContainersReady}
{{ range .spec.readinessGates }}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: {{ .conditionType | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state:
    running:
      startedAt: {{ $now | Quote }}
  {{ else }}
  state:
    terminated:
      exitCode: 0
      finishedAt: {{ $now | Quote }}
      reason: Completed
      startedAt: {{ $now | Quote }}
  {{ end }}
{{ end }}
{{ $hostIPs := NodeIPsWith .spec.nodeName }}
{{ with $hostIPs }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ $hostNetwork := or .spec.hostNetwork false }}
{{ $uid := or .metadata.uid "" }}
{{ $podIPs := PodIPsWith .spec.nodeName $hostNetwork $uid ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
{{ with $podIPs }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
phase: Running
startTime: {{ $now | Quote }}
"""

COMPLETE = (
    """
{{ $now := Now }}
{{ $root := . }}
conditions:
"""
    + NO_SANDBOX
    + ASSUMED
    + """
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Initialized, reason: PodCompleted}
- {lastTransitionTime: {{ $now | Quote }}, status: "False", type: Ready, reason: PodCompleted}
- {lastTransitionTime: {{ $now | Quote }}, status: "False", type: ContainersReady, reason: PodCompleted}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      finishedAt: {{ $now | Quote }}
      reason: Completed
      message: emulated; the exit code is assumed
      startedAt: {{ $root.status.startTime | Quote }}
{{ end }}
phase: Succeeded
"""
)

# What a kubelet writes when it has ended the containers of a deleted pod (k8s.io/kubernetes v1.35, pkg/kubelet:
# syncTerminatingPod, getPhase, and TerminatePod of the status manager; recorded of v1.37.2 in tests/data/kubelet). What
# had ended before stays as it ended; a container that waits for its restart has its last end; one that never started is
# lost, unless the pod was not yet initialized. A process ends at the first signal, SIGTERM, which a kubelet sends even
# if the grace period is 0.
TERMINATED = (
    """
{{ $now := Now }}
{{ $root := . }}
{{ $killed := dict "exitCode" 143 "reason" "Error" "finishedAt" $now }}
{{ $lost := dict "exitCode" 137 "reason" "ContainerStatusUnknown"
  "message" "The container could not be located when the pod was terminated" }}
{{ $initialized := not .spec.initContainers }}
{{ range .status.conditions }}
{{ if and (eq .type "Initialized") (eq .status "True") }}{{ $initialized = true }}{{ end }}
{{ end }}
{{ $succeeded := true }}
containerStatuses:
{{ range .spec.containers }}
{{ $name := .name }}
{{ $waiting := dict "waiting" (dict "reason" "PodInitializing") }}
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
{{ with .status.initContainerStatuses }}
initContainerStatuses:
{{ range . }}
{{ $status := . }}
{{ $end := dig "lastState" "terminated" dict $status }}
{{ with dig "state" "running" dict $status }}{{ $end = merge (dict "startedAt" .startedAt) $killed }}{{ end }}
{{ if and $end (not (dig "state" "terminated" dict $status)) }}
{{ $_ := set $status "state" (dict "terminated" $end) }}
{{ $_ := set $status "ready" false }}
{{ $_ := set $status "started" false }}
{{ end }}
- {{ $status | toJson }}
{{ end }}
{{ end }}
phase: {{ if $succeeded }}Succeeded{{ else }}Failed{{ end }}
{{ $reason := ternary "PodCompleted" "PodFailed" $succeeded }}
conditions:
{{ range $type := list "Ready" "ContainersReady" }}
{{ $since := $now }}
{{ range $root.status.conditions }}
{{ if and (eq .type $type) (eq .status "False") }}{{ $since = .lastTransitionTime }}{{ end }}
{{ end }}
- {type: {{ $type }}, status: "False", reason: {{ $reason }}, message: null, lastTransitionTime: {{ $since | Quote }}}
{{ end }}
{{ if $succeeded }}
- {type: Initialized, status: "True", reason: PodCompleted}
{{ end }}
"""
    + NO_SANDBOX
)
