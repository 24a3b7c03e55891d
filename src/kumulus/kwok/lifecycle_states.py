"""Which pods a lifecycle means, their states, and when each began, in jq.

A pod's lifecycle is fixed by its first stage, which records it in a condition of the pod's status. So a pod that ran
before keeps its old life, and a changed selector does not affect a pod that has begun.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from kumulus.kwok import stages as kwok_stages
from kumulus.kwok.pod_statuses.followed import RESIZE_ANNOTATION
from kumulus.kwok.stages import jq
from kumulus.model.lifecycles import PodSelection
from kumulus.model.owner_kinds import belongs_to

CONDITION = "kumulus.io/lifecycle"

State = Literal["pulling", "initializing", "starting", "ready", "ended"]

_SIDECARS = '[.spec.initContainers[]? | select(.restartPolicy == "Always") | .name]'
_INITIALIZING = (
    f"({_SIDECARS} as $sidecars | [.status.initContainerStatuses[]? | select(.state.running)"
    " | select(.name as $name | $sidecars | index([$name]) | not)] | .[0])"
)
_STATE = f"""\
if .status.phase == "Pending" then (if {_INITIALIZING} then "initializing" else "pulling" end)
elif .status.phase != "Running" then "over"
else [.status.containerStatuses[]? | select(.state.running) | .ready]
  | if length == 0 then "ended" elif all then "ready" else "starting" end end"""

STARTED = ".status.startTime"
INIT_STARTED = f"({_INITIALIZING} | .state.running.startedAt)"
INIT_NAME = f"({_INITIALIZING} | .name)"
CONTAINERS_STARTED = "([.status.containerStatuses[].state.running.startedAt // empty] | max)"
CONTAINERS_ENDED = (
    "([.status.containerStatuses[] | (.state.terminated // .lastState.terminated).finishedAt // empty] | max)"
)

# After a run that was this long, a kubelet begins with the shortest back-off again.
_LONG_RUN_S = 600
BACK_OFF = f"""\
([.status.containerStatuses[] | select(.state.running | not)] | max_by(.restartCount)) as $last
| ($last.state.terminated // $last.lastState.terminated) as $end
| (if ($end.finishedAt | fromdate) - ($end.startedAt | fromdate) >= {_LONG_RUN_S} then 0
   elif $last.restartCount == 0 then 0
   else [300, 10 * pow(2; $last.restartCount - 1)] | min end)"""
"""Seconds that a kubelet waits before it restarts a container: 0, 10, 20, … 300 (kubelet v1.35)."""

RESIZE_PENDING = '(.status.conditions[]? | select(.type == "PodResizePending"))'
RESIZED = f"""\
[.status.containerStatuses[]?, .status.initContainerStatuses[]?] as $all
| (.metadata.generation // 0) > (.status.observedGeneration // 0)
  and (.metadata.annotations // {{}} | has({json.dumps(RESIZE_ANNOTATION)}) | not)
  and any(.spec.containers[], .spec.initContainers[]?;
    . as $new | any($all[]; .name == $new.name and (.resources // $new.resources) != $new.resources))
| tostring"""
"""Whether a container is to have other resources, and nothing but its lifecycle says what becomes of that."""
RESIZE_NAME = '("resize " + (.metadata.generation | tostring))'
"""What is drawn of a resize: each has its own generation of the pod."""

GRACE = ".metadata.deletionGracePeriodSeconds"
# The timestamp is that of the end of the grace period.
DELETED = f"((.metadata.deletionTimestamp | fromdate) - {GRACE} | todate)"
SEEN = "(.status.observedGeneration // 0) >= (.metadata.generation // 0) | tostring"
"""Whether the last change of a pod has been seen; its deletion is one."""
_RUNS = "any(.status.containerStatuses[]?, .status.initContainerStatuses[]?; .state.running) | tostring"

# Kubernetes truncates times to whole seconds. Half a second more makes the recorded duration, and on average the real
# one, the wanted one: a stage that is due at 20.5 and comes up to half a second late is recorded at 20.
_DUE = """\
def due($since; $seconds):
  (($since | fromdate) + if $seconds > 0 then $seconds + 0.5 else 0 end) as $time
  | ($time | floor) as $whole
  | ($whole | todate | .[:-1]) + "." + ("00" + (($time - $whole) * 1000 | floor | tostring) | .[-3:]) + "Z";"""


def delay(functions: str, since: str, seconds: str) -> dict[str, Any]:
    """A stage's delay until so many seconds after a time in the pod's status.

    All three are jq: the definitions of functions, which may be empty, and two expressions that may use them. KWOK
    restarts a duration at each change of the pod and at its own start; a point in time stays the same.
    """
    expression = f"{functions}\n{_DUE}\n({seconds}) as $seconds | {since} as $since\n| due($since; $seconds)"
    return {"durationFrom": {"jq": {"expression": expression.strip()}}}


def begins(labels: dict[str, str], condition: str) -> dict[str, Any]:
    """The selector of pods that have not begun, have these labels, and for which a jq expression is true."""
    expressions = [
        jq(kwok_stages.is_in(".status.phase", "Pending")),
        jq(kwok_stages.absent(".status.startTime")),
        jq(kwok_stages.absent(".metadata.deletionTimestamp")),
        *([] if condition == "true" else [jq(kwok_stages.is_in(condition, "true"))]),
    ]
    return {**({"matchLabels": labels} if labels else {}), "matchExpressions": expressions}


def is_in(lifecycle: str, state: State) -> dict[str, Any]:
    """The selector of a lifecycle's pods in a state."""
    alive = kwok_stages.absent(".metadata.deletionTimestamp")
    return _of(lifecycle, alive, kwok_stages.is_in(_STATE, state))


def is_terminating(lifecycle: str) -> dict[str, Any]:
    """The selector of a lifecycle's pods that were deleted with a grace period, and of which something runs."""
    graceful = kwok_stages.not_in(f"({GRACE} | tostring)", "0")
    return _of(lifecycle, kwok_stages.exists(".metadata.deletionTimestamp"), graceful, kwok_stages.is_in(_RUNS, "true"))


def _of(lifecycle: str, *match: kwok_stages.Match) -> dict[str, Any]:
    mark = f".status.conditions[]? | select(.type == {json.dumps(CONDITION)}) | .reason"
    return {"matchExpressions": [jq(each) for each in (kwok_stages.is_in(mark, lifecycle), *match)]}


def narrowed(selector: dict[str, Any], expression: str, value: str) -> dict[str, Any]:
    """A selector narrowed to pods for which a jq expression has a value."""
    return {**selector, "matchExpressions": [*selector["matchExpressions"], jq(kwok_stages.is_in(expression, value))]}


# Which pods a selection means, in jq.


def condition(selection: PodSelection) -> str:
    """A jq expression that is true for the pods of a selection and false for all others."""
    parts = [f".metadata.labels[{json.dumps(key)}]? == {json.dumps(value)}" for key, value in selection.labels.items()]
    if selection.namespaces:
        parts.append(_any(f".metadata.namespace == {json.dumps(name)}" for name in selection.namespaces))
    if selection.owner_kinds:
        parts.append(_any(map(belongs_to, selection.owner_kinds)))
    return " and ".join(parts) or "true"


def first_condition(selections: Sequence[PodSelection], index: int) -> str:
    """Like :func:`condition`, for the pods that no earlier selection selects."""
    mine = selections[index]
    earlier = [condition(other) for other in selections[:index] if not other.apart_from(mine)]
    return (
        f"({condition(mine)}) and ({' or '.join(f'({each})' for each in earlier)} | not)"
        if earlier
        else condition(mine)
    )


def _any(parts: Iterable[str]) -> str:
    return f"({' or '.join(parts)})"
