"""What a kubelet writes into a pod's status during the pod's life, as Go templates of YAML for KWOK.

Modelled on k8s.io/kubernetes v1.35, pkg/kubelet/status/generate.go and kubelet_pods.go (convertToAPIContainerStatuses,
generateAPIPodStatus). A template is a status patch: conditions are merged by type, lists of containers replaced.
"""

import json

from kumulus.kwok.pod_statuses.followed import KUBELETS
from kumulus.kwok.pod_statuses.fragments import (
    DECLARED,
    ENDING,
    INIT_ALL,
    INIT_NEXT,
    INIT_WAITING,
    INITIALIZED,
    MADE_READY,
    NO_SANDBOX,
    NOT_READY,
    NOW,
    OBSERVED,
    PLACE,
    READY,
    REFUSES,
    RESTARTING,
    RUNNING,
    SANDBOX,
    SCHEDULED,
    UNINITIALIZED,
    WAITING,
    condition,
    conditions,
    marked,
    uninitialized,
)
from kumulus.model.lifecycles import ContainerFailure

_PROBED = """
{{ $probed := list }}
{{ range .spec.containers }}{{ if .startupProbe }}{{ $probed = append $probed .name }}{{ end }}{{ end }}
"""


INIT_WAS = """\
{{ $was := dict }}
{{ range $root.status.initContainerStatuses }}{{ if eq .name $container.name }}{{ $was = . }}{{ end }}{{ end }}
"""
"""The status until now of the init container ``$container`` as ``$was``; empty if it has none."""
INIT_AFTER_FAILED = """
{{ if $failed }}
  ready: false
  started: false
  restartCount: 0
  state: {waiting: {reason: PodInitializing}}
"""
"""The init containers after the one that has failed wait; a template goes on with ``else``, for the others."""
INIT_FAILED_REST = (
    "{{ if not .status.startTime }}\n"
    + PLACE
    + "{{ end }}\n"
    + WAITING % "PodInitializing"
    + conditions(
        uninitialized('[{{ join " " $incomplete }}]')
        + "{{ if $ends }}\n"
        + NO_SANDBOX
        + SCHEDULED
        + DECLARED
        + condition("Ready", "False", "PodFailed")
        + condition("ContainersReady", "False", "PodFailed")
        + "{{ else }}\n"
        + SANDBOX
        + NOT_READY
        + "{{ end }}\n"
    )
    + "phase: {{ if $ends }}Failed{{ else }}Pending{{ end }}\n"
)
"""What follows the init containers where one has failed: ``$ends`` tells whether the pod ends with it, and
``$incomplete`` has the names from it on."""


def beginning(mark: str, lifecycle: str, must_run: bool = False) -> str:
    """The first status, in which containers wait for their images: for ever, if they must not pretend to run.

    The mark is the type of the condition that names the pod's lifecycle.
    """
    why = 'MustRun, message: "emulated; no container can run"' if must_run else ""
    initialized = "{{ if .spec.initContainers }}\n" + UNINITIALIZED + "{{ else }}\n" + INITIALIZED + "{{ end }}\n"
    begun = conditions(marked(mark, lifecycle) + (REFUSES if must_run else "") + SANDBOX + initialized + NOT_READY)
    waiting = (
        "{{ if .spec.initContainers }}"
        + INIT_WAITING % (why or "PodInitializing")
        + WAITING % (why or "PodInitializing")
        + "{{ else }}"
        + WAITING % (why or "ContainerCreating")
        + "{{ end }}"
    )
    return NOW + begun + waiting + PLACE + "phase: Pending\n"


def started(*, first: tuple[str, str] | None, init: bool, start_up: bool) -> str:
    """The status when the images have been pulled, or when an init container has ended.

    Args:
        first: mark and lifecycle, as for :func:`beginning`, if the pod has no status yet.
        init: whether init containers run one after the other.
        start_up: whether the containers that run are not ready yet.
    """
    known, place = (marked(*first) + SANDBOX, PLACE) if first else ("", "")
    # Without a startup probe, a kubelet says of a container that it has started as soon as it runs.
    running = RUNNING % (
        {"ready": "false", "started": "{{ not .startupProbe }}"} if start_up else {"ready": "true", "started": "true"}
    )
    if first:
        running += conditions(known + INITIALIZED + (NOT_READY if start_up else READY))
    elif start_up:
        # An empty list of conditions would remove the existing ones.
        running += "{{ if .spec.initContainers }}\n" + conditions(INITIALIZED) + "{{ end }}\n"
    else:
        running += conditions("{{ if .spec.initContainers }}\n" + INITIALIZED + "{{ end }}\n" + READY)
    if not init:
        return NOW + "{{ if .spec.initContainers }}" + INIT_ALL + "{{ end }}" + running + place
    waiting = WAITING % "PodInitializing" + "phase: Pending\n"
    if first:
        waiting += conditions(known + UNINITIALIZED + NOT_READY)
    some = "{{ $done := true }}{{ if .spec.initContainers }}" + INIT_NEXT + "{{ end }}"
    return NOW + some + "{{ if $done }}" + running + "{{ else }}" + waiting + "{{ end }}" + place


def made_ready() -> str:
    """The status when the containers have become ready."""
    return NOW + conditions(READY) + MADE_READY


def deletion_seen() -> str:
    """The status when a kubelet has seen that the pod is deleted, whose containers still run: as ready as before."""
    known = "{{ if " + KUBELETS + " }}\n- {type: {{ .type }}, " + OBSERVED + "}\n{{ end }}\n"
    return NOW + conditions("{{ range .status.conditions }}\n" + known + "{{ end }}\n")


def ended(failure: ContainerFailure | None, must_run: bool = False) -> str:
    """The status when the containers have ended, all successfully or one with a failure; for every restartPolicy."""
    if failure is None:
        return over("", DECLARED)
    failing = json.dumps(failure.container) if failure.container else "(index $root.spec.containers 0).name"
    ends = "{{ if eq .name " + failing + " }}" + ending_as(failure) + "{{ end }}"
    return over(ends, REFUSES if must_run else DECLARED)


def ending_as(failure: ContainerFailure) -> str:
    """A template that makes ``$end``, how a container ends, this failure."""
    end = json.dumps(
        {"exitCode": failure.exit_code, "reason": failure.reason}
        | ({"message": failure.message} if failure.message else {})
    )
    return "{{ $end = merge (" + json.dumps(end) + " | fromJson) $end }}"


def over(failure: str, mark: str) -> str:
    """The status when the containers have ended.

    Args:
        failure: a template that may change ``$end``, how a container of the status ``$status`` ends.
        mark: the condition that says who has declared that end, such as :data:`DECLARED`.
    """
    succeeded = "{{ if $failed }}null{{ else }}PodCompleted{{ end }}"
    reason = "{{ if $failed }}PodFailed{{ else }}PodCompleted{{ end }}"
    ended = conditions(
        NO_SANDBOX
        + mark
        + condition("Initialized", "True", succeeded, changed=False)
        + condition("Ready", "False", reason)
        + condition("ContainersReady", "False", reason)
    )
    ended += "phase: {{ if $failed }}Failed{{ else }}Succeeded{{ end }}\n"
    unready = conditions(NOT_READY)
    return NOW + ENDING % {"failure": failure} + "{{ if $again }}\n" + unready + "{{ else }}\n" + ended + "{{ end }}\n"


def restarted(*, start_up: bool) -> str:
    """The status when the ended containers run again."""
    if start_up:
        return NOW + _PROBED + RESTARTING % {"ready": "false", "started": "(not (has .name $probed))"}
    # With restartPolicy OnFailure, a container that has succeeded keeps its pod from being ready again.
    all_again = '{{ if or (eq (or .spec.restartPolicy "Always") "Always") (eq (len .spec.containers) 1) }}\n'
    return NOW + all_again + conditions(READY) + "{{ end }}\n" + RESTARTING % {"ready": "true", "started": "true"}
