"""The status of a running pod whose spec has changed: resized in place, restarted, with another container in it.

As a kubelet does it (k8s.io/kubernetes v1.37, pkg/kubelet/allocation, status/generate.go and status/status_manager.go):
containers are resized, or restarted where their resizePolicy or a new image asks for that, ephemeral ones start, and a
pod whose containers are ready is Ready as far as its readiness gates are open, whatever others wrote. A stage sees
neither the room on the node nor other pods: a resize has the outcome that the pod or its lifecycle declares, or it is
accepted.
"""

import json

from kumulus.kwok.pod_statuses.fragments import (
    GATES,
    NOW,
    OBSERVED,
    POD_RESOURCES,
    READY_BY_GATES,
    condition,
    conditions,
)

RESIZE_ANNOTATION = "kumulus.io/resize"
"""On a pod: ``deferred`` or ``infeasible``, what becomes of its in-place resizes."""

ANNOTATED = f"declared by the annotation {RESIZE_ANNOTATION}"
"""The message of a resize that is held up by the annotation."""

_OUTCOME = """
{{ $declared := DECLARED | title }}
{{ $held := has $declared (list "Deferred" "Infeasible") }}
{{ $waits := false }}
"""
_BY_ANNOTATION = f'dig "annotations" {json.dumps(RESIZE_ANNOTATION)} "" .metadata'

_CONTAINERS = """
{{ range $kind := list "container" "initContainer" }}
{{ with index $root.status (print $kind "Statuses") }}
{{ $kind }}Statuses:
{{ range $status := . }}
{{ range index $root.spec (print $kind "s") }}
{{ if eq .name $status.name }}
{{ $new := .resources }}
{{ $old := or $status.resources $new }}
{{ $again := ne .image $status.image }}
{{ if and $held (ne (toJson $old) (toJson $new)) }}
{{ $waits = true }}
{{ else }}
{{ range $resource := .resizePolicy }}
{{ range $part := list "requests" "limits" }}
{{ $was := dig $part $resource.resourceName "" $old }}
{{ $is := dig $part $resource.resourceName "" $new }}
{{ if and (ne $was $is) (eq $resource.restartPolicy "RestartContainer") }}{{ $again = true }}{{ end }}
{{ end }}
{{ end }}
{{ $_ := set $status "resources" $new }}
{{ with $new.requests }}{{ $_ := set $status "allocatedResources" . }}{{ end }}
{{ end }}
{{ $since := dig "state" "running" "startedAt" "" $status }}
{{ if and $again $since }}
{{ $end := dict "exitCode" 143 "reason" "Error" "startedAt" $since "finishedAt" $now }}
{{ $_ := set $status "lastState" (dict "terminated" $end) }}
{{ $_ := set $status "state" (dict "running" (dict "startedAt" $now)) }}
{{ $_ := set $status "restartCount" (add1 (printf "%v" $status.restartCount | int)) }}
{{ end }}
{{ $_ := set $status "image" .image }}
{{ end }}
{{ end }}
- {{ toJson $status }}
{{ end }}
{{ end }}
{{ end }}
{{ with .spec.ephemeralContainers }}
ephemeralContainerStatuses:
{{ range . }}
{{ $name := .name }}
{{ $runs := dict "running" (dict "startedAt" $now) }}
{{ $status := dict "name" .name "image" .image "imageID" "" "ready" false "restartCount" 0 "state" $runs }}
{{ range $root.status.ephemeralContainerStatuses }}{{ if eq .name $name }}{{ $status = . }}{{ end }}{{ end }}
- {{ toJson $status }}
{{ end }}
{{ end }}
"""

KUBELETS = 'has .type (list "PodReadyToStartContainers" "Initialized" "Ready" "ContainersReady" "PodScheduled")'
"""Within a range over a pod's conditions: whether it is one that a kubelet observes."""
# $flips: whether Ready changes. With closed gates, it does if it is True; with open ones, if it is False and the
# containers are ready.
_CONDITIONS = (
    """
{{ $flips := false }}
{{ $waited := false }}
{{ $true := list }}
{{ range .status.conditions }}{{ if eq .status "True" }}{{ $true = append $true .type }}{{ end }}{{ end }}
{{ range .status.conditions }}
{{ if eq .type "PodResizePending" }}{{ $waited = true }}{{ end }}
{{ if eq .type "Ready" }}
{{ $opens := and (eq .status "False") (has "ContainersReady" $true) }}
{{ $flips = ternary (eq .status "True") $opens (not (not $closed)) }}
{{ end }}
{{ $own := KUBELETS }}
{{ if and $own (not (and (eq .type "Ready") $flips)) }}
- {type: {{ .type }}, OBSERVED}
{{ end }}
{{ end }}
{{ if $flips }}
""".replace("OBSERVED", OBSERVED).replace("KUBELETS", KUBELETS)
    + READY_BY_GATES
    + "{{ end }}\n{{ if $waits }}\n"
    + condition("PodResizePending", "True", "{{ $declared }}", "WHY")
    + "{{ else if $waited }}\n- {type: PodResizePending, $patch: delete}\n{{ end }}\n"
)


def followed(outcome: str = "", why: str = ANNOTATED) -> str:
    """The status of a pod whose spec has changed.

    Its resize is ``accepted``, ``deferred`` or ``infeasible``, by default as the pod's annotation says; ``why`` is the
    message if it is not accepted.
    """
    return (
        NOW
        + GATES
        + _OUTCOME.replace("DECLARED", json.dumps(outcome) if outcome else _BY_ANNOTATION)
        + _CONTAINERS
        + "{{ if not $waits }}"
        + POD_RESOURCES
        + "{{ end }}\n"
        + conditions(_CONDITIONS.replace("WHY", json.dumps(why)))
    )
