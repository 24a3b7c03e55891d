"""The status of a pod that a fault has hit: Go templates of YAML for KWOK, with the fault's values.

Modelled on what a kubelet writes (docs: Pod Lifecycle; k8s.io/kubernetes pkg/kubelet/kubelet_pods.go).
"""

import json
import re

from kumulus.kwok.pod_statuses.fragments import (
    CONTAINER,
    DECLARED,
    INIT_ALL,
    INITIALIZED,
    NOT_READY,
    PLACE,
    SANDBOX,
    conditions,
    filled,
)
from kumulus.kwok.pod_statuses.fragments import READY as IS_READY
from kumulus.kwok.pod_statuses.lifecycle import INIT_AFTER_FAILED, INIT_FAILED_REST, INIT_WAS
from kumulus.model.fault_effects import PodEffects


def _filled(template: str, effects: PodEffects, **more: str) -> str:
    """A template with its parts, and with the fault's values in place of words such as ``REASON``.

    No value can end a string or begin a template.
    """
    hit = "eq $index 0"
    if effects.container:
        hit = f"eq .name {json.dumps(effects.container)}"
    elif effects.images:
        hit = f"regexMatch {json.dumps(effects.image_pattern)} .image"
    words = {
        "EXIT_CODE": str(effects.exit_code),
        "REASON": _text(effects.reason or "Error"),
        "MESSAGE": _text(effects.message),
        "HIT": hit,
        **more,
    }
    # In one pass, as a value may contain another's word; the longer ones first, as a word may contain another.
    anywhere = "|".join(sorted(words, key=len, reverse=True))
    return re.sub(anywhere, lambda found: words[found[0]], filled(template, **_PARTS))


def _text(text: str) -> str:
    """A text as a YAML string in a Go template; it must not begin a template itself."""
    return f'"{"".join(map(_character, text))}"'


def _character(one: str) -> str:
    if one == "{" or ord(one) > 0xFFFF:
        # YAML does not know the two halves in which JSON writes the latter.
        return f"\\U{ord(one):08X}"
    return json.dumps(one)[1:-1]


_NOT_READY = """
- {type: Ready, status: "False", reason: WHY, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: WHY, lastTransitionTime: {{ $now | Quote }}}
"""

# How the container that is hit ends; $ends says whether its pod does, and $count how often it was restarted before.
_ENDED = """
  {{ if $ends }}
  restartCount: {{ $count }}
  state:
  {{ else }}
  restartCount: {{ add1 $count }}
  state: {waiting: {reason: CrashLoopBackOff, message: back-off restarting failed container}}
  lastState:
  {{ end }}
    terminated:
      exitCode: EXIT_CODE
      reason: REASON
      message: MESSAGE
      startedAt: {{ or $root.status.startTime $now | Quote }}
      finishedAt: {{ $now | Quote }}
"""

# A container of a pod that has begun.
_FAILED = """\
<<BEGIN>>

{{ $ends := eq .spec.restartPolicy "Never" }}
{{ $why := "ContainersNotReady" }}
{{ if $ends }}{{ $why = "PodFailed" }}
phase: Failed
{{ end }}
startTime: {{ or .status.startTime $now | Quote }}
conditions:
<<NOT_READY_WHY>>
{{ if $ends }}
<<DECLARED>>

{{ end }}
containerStatuses:
{{ range $index, $container := .spec.containers }}
{{ $count := 0 }}
{{ range $root.status.containerStatuses }}
{{ if eq .name $container.name }}{{ $count = .restartCount }}{{ end }}
{{ end }}
{{ with $container }}
<<DOWN>>
  {{ if HIT }}
<<ENDED>>
  {{ else }}
  restartCount: {{ $count }}
  {{ if $ends }}
  state: {terminated: {exitCode: 143, reason: Error, finishedAt: {{ $now | Quote }}}}
  {{ else }}
  state: {running: {startedAt: {{ or $root.status.startTime $now | Quote }}}}
  {{ end }}
  {{ end }}
{{ end }}
{{ end }}
"""

# Those before it have succeeded, sidecars run, and whatever comes after it waits.
_INIT_FAILED = """\
<<BEGIN>>

{{ $ends := eq .spec.restartPolicy "Never" }}
{{ $failed := false }}{{ $incomplete := list }}
initContainerStatuses:
{{ range $index, $container := .spec.initContainers }}
<<INIT_WAS>>
{{ $count := printf "%v" (or $was.restartCount 0) | int }}
{{ $since := dig "state" "running" "startedAt" $now $was }}
<<CONTAINER>>
<<INIT_AFTER_FAILED>>
{{ else if HIT }}
  {{ $failed = true }}
  ready: false
  started: false
<<ENDED>>

{{ else if ne (or .restartPolicy "") "Always" }}
  {{ $end := dict "exitCode" 0 "reason" "Completed" "startedAt" $since "finishedAt" $now }}
  ready: true
  started: false
  restartCount: {{ $count }}
  state: {terminated: {{ dig "state" "terminated" $end $was | toJson }}}
{{ else }}
  ready: {{ not $ends }}
  started: {{ not $ends }}
  restartCount: {{ $count }}
  {{ if $ends }}
  state: {terminated: {exitCode: 143, reason: Error, startedAt: {{ $since | Quote }}, finishedAt: {{ $now | Quote }}}}
  {{ else }}
  state: {running: {startedAt: {{ $since | Quote }}}}
  {{ end }}
{{ end }}
{{ if $failed }}{{ $incomplete = append $incomplete .name }}{{ end }}
{{ end }}
<<INIT_FAILED_REST>>
"""

_RESTARTED = """\
<<BEGIN>>

STATUSES:
{{ range .status.STATUSES }}
{{ if RESTARTS }}
{{ $_ := set . "state" (dict "running" (dict "startedAt" $now)) }}
{{ $_ := set (set . "ready" READY) "started" true }}
{{ end }}
- {{ . | toJson }}
{{ end }}
"""
_READY_AGAIN = conditions(IS_READY)

_EVICTED = """\
<<BEGIN>>

phase: Failed
reason: Evicted
message: MESSAGE
conditions:
- type: DisruptionTarget
  status: "True"
  reason: TerminationByKubelet
  message: MESSAGE
  lastTransitionTime: {{ $now | Quote }}
<<NOT_READY_FAILED>>

containerStatuses:
{{ range .spec.containers }}
<<DOWN>>
  restartCount: 0
  state: {terminated: {exitCode: 137, reason: Error, finishedAt: {{ $now | Quote }}}}
{{ end }}
"""

# It has been like that since it started.
_UNPULLED = """\
{{ $root := . }}{{ $now := or .status.startTime Now }}
<<NOT_STARTED>>
{{ if and .spec.initContainers (not .status.initContainerStatuses) }}
<<INIT_ALL>>
{{ end }}

containerStatuses:
{{ range $index, $container := .spec.containers }}
{{ with $container }}
<<DOWN>>
  restartCount: 0
  {{ if HIT }}
  state: {waiting: {reason: PULL_REASON, message: PULL_MESSAGE}}
  {{ else }}
  state: {waiting: {reason: ContainerCreating}}
  {{ end }}
{{ end }}
{{ end }}
<<PLACE>>
"""
_PARTS = {
    "BEGIN": "\n{{ $now := Now }}\n{{ $root := . }}\n",
    "DOWN": f"{CONTAINER}  ready: false\n  started: false\n",
    "ENDED": _ENDED,
    "CONTAINER": CONTAINER,
    "DECLARED": DECLARED,
    "PLACE": PLACE,
    "INIT_ALL": INIT_ALL,
    "INIT_WAS": INIT_WAS,
    "INIT_AFTER_FAILED": INIT_AFTER_FAILED,
    "INIT_FAILED_REST": INIT_FAILED_REST,
    "NOT_READY_WHY": _NOT_READY.replace("WHY", "{{ $why }}"),
    "NOT_READY_FAILED": _NOT_READY.replace("WHY", "PodFailed"),
    "NOT_STARTED": conditions(SANDBOX + INITIALIZED + NOT_READY),
}


def failed(effects: PodEffects, init: bool) -> str:
    """A container has ended with an error; it is restarted later if the pod's restart policy says so."""
    return _filled(_INIT_FAILED if init else _FAILED, effects)


def restarted(effects: PodEffects, init: bool) -> str:
    """The containers run again; a pod whose init container runs is not ready yet."""
    waits = 'eq (dig "state" "waiting" "reason" "" .) "CrashLoopBackOff"'
    if init:
        return _filled(_RESTARTED, effects, STATUSES="initContainerStatuses", READY="false", RESTARTS=waits)
    return _filled(_RESTARTED + _READY_AGAIN, effects, STATUSES="containerStatuses", READY="true", RESTARTS="true")


def evicted(effects: PodEffects) -> str:
    """The kubelet has ended the pod to free what its node is short of."""
    return _filled(_EVICTED, effects)


def unpulled(effects: PodEffects, reason: str) -> str:
    """A container waits for its image; the reason is ``ErrImagePull`` or ``ImagePullBackOff``."""
    detail = effects.message or ("rpc error: image not found" if reason == "ErrImagePull" else "Back-off pulling image")
    return _filled(_UNPULLED, effects, PULL_REASON=reason, PULL_MESSAGE=_text(detail))
