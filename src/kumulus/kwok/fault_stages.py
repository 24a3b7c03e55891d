"""A fault of pods as KWOK's ``Stage`` objects: when it happens, and what the pod's status then says.

KWOK draws one of the stages that match, in proportion to their weights, and passes over those without a weight where
one with a weight matches (pkg/utils/lifecycle, v0.8.0): these weigh so much that another one is hardly ever drawn.
Whether a pod is hit, and how much later than the delay, follows from its UID: nothing has to be stored, and a restarted
kwok-controller finds the same. A time is counted from the start of the pod or of its container.
"""

import json
from collections.abc import Collection
from typing import Any

from kumulus.kwok.pod_statuses import fault as pod_statuses
from kumulus.kwok.stages import FOR_EVER, Match, absent, exists, is_in, pod_status, stage
from kumulus.model.active_faults import FAULT_LABEL
from kumulus.model.fault_effects import PodEffects
from kumulus.model.owner_kinds import belongs_to

_WEIGHT = 1_000_000
# Those that end deleted pods weigh as much.
_ABOVE_LIFECYCLES = 10**12
_FIRST_BACK_OFF_S, _LONGEST_BACK_OFF_S = 10, 300
_CRASHED = "CrashLoopBackOff"
# The last four hexadecimal digits of the UID, which are random, as a number from 0 to 65,535.
_DRAW = (
    "(.metadata.uid | explode | .[-4:] | map(if . > 96 then . - 87 else . - 48 end)"
    " | reduce .[] as $digit (0; . * 16 + $digit))"
)
# The four digits before those, which do not decide whether the pod is hit.
_SPREAD = _DRAW.replace(".[-4:]", ".[-8:-4]")

Object = dict[str, Any]


def pod_stages(name: str, effects: PodEffects, nodes: Collection[str], since: str) -> list[Object]:
    """The stages of a fault since a time, RFC 3339 in UTC, for pods on these nodes, or on all if there are none."""
    match = _selected(effects, nodes)
    if not effects.repeat:
        match.append(is_in(f'(.metadata.creationTimestamp <= "{since}" | tostring)', "true"))
    if effects.action == "stuck":
        held = exists(".metadata.deletionTimestamp")
        rest = {"weight": _ABOVE_LIFECYCLES, "delay": {"durationMilliseconds": FOR_EVER}, "next": {}}
        return [_stage(name, "", [held, *match], rest)]
    alive = absent(".metadata.deletionTimestamp")
    match = [alive, *match]
    if effects.action == "imagePull":
        return _image_pull(name, effects, match)
    if effects.action == "evict":
        running = is_in(".status.phase", "Running")
        return [_stage(name, "", [running, *match], {**_after(effects), **pod_status(pod_statuses.evicted(effects))})]
    return _failing(name, effects, match)


def _failing(name: str, effects: PodEffects, match: list[Match]) -> list[Object]:
    """A container fails; where the pod restarts it, it is started again after a back-off, and fails again."""
    init = effects.action == "failInit"
    phase = is_in(".status.phase", "Pending" if init else "Running")
    statuses = ".status.initContainerStatuses" if init else ".status.containerStatuses"
    waits = f'([{statuses}[]?.state.waiting.reason] | any(. == "{_CRASHED}") | tostring)'
    first = [phase, is_in(waits, "false")]
    if not init:
        first.append(is_in(f'(if ({statuses} // []) == [] then "none" else "some" end)', "some"))
    if not effects.repeat:
        first.append(is_in(f"([{statuses}[]?.restartCount] | add // 0 | tostring)", "0"))
    fails = _stage(name, "", [*first, *match], {**_after(effects), **pod_status(pod_statuses.failed(effects, init))})
    again = {
        "delay": {"durationFrom": {"jq": {"expression": _back_off(statuses)}}},
        **pod_status(pod_statuses.restarted(effects, init)),
    }
    return [fails, _stage(name, ".restart", [phase, is_in(waits, "true"), *match], again)]


def _image_pull(name: str, effects: PodEffects, match: list[Match]) -> list[Object]:
    """An image cannot be pulled: the kubelet tries, backs off, and tries again."""
    # Of the containers whose image is missing: the others wait for them.
    reason = '([.status.containerStatuses[]?.state.waiting.reason // "" | select(test("ImagePull"))] | first // "")'
    pending = is_in(".status.phase", "Pending")
    tries = _stage(
        name,
        "",
        [pending, is_in(f'({reason} | . == "ErrImagePull" | tostring)', "false"), *match],
        {
            "delay": {
                "durationFrom": {
                    "jq": {"expression": f'{reason} | if . == "ImagePullBackOff" then "20s" else "0s" end'}
                }
            },
            **pod_status(pod_statuses.unpulled(effects, "ErrImagePull")),
        },
    )
    backs_off = _stage(
        name,
        ".back-off",
        [pending, is_in(reason, "ErrImagePull"), *match],
        {"delay": {"durationMilliseconds": 2_000}, **pod_status(pod_statuses.unpulled(effects, "ImagePullBackOff"))},
    )
    return [tries, backs_off]


def _stage(name: str, suffix: str, match: list[Match], rest: Object) -> Object:
    # A fault's name has no dot: no other fault's stage has this name.
    labels = {FAULT_LABEL: name}
    return stage(f"kumulus-fault-{name}{suffix}", "Pod", match, {"weight": _WEIGHT, **rest}, labels)


def _selected(effects: PodEffects, nodes: Collection[str]) -> list[Match]:
    """The conditions of the pods that the fault hits."""
    found = [is_in(f".metadata.labels[{json.dumps(key)}]", value) for key, value in sorted(effects.labels.items())]
    if effects.namespaces:
        found.append(is_in(".metadata.namespace", *effects.namespaces))
    if effects.owner_kinds:
        owned = " or ".join(map(belongs_to, effects.owner_kinds))
        found.append(is_in(f"({owned} | tostring)", "true"))
    if effects.images:
        tested = f"any(.spec.{effects.containers_key}[]?.image; test({json.dumps(effects.image_pattern)}))"
        found.append(is_in(f"({tested} | tostring)", "true"))
    if nodes:
        found.append(is_in(".spec.nodeName", *sorted(nodes)))
    if effects.percent < 100:
        found.append(is_in(f"({_DRAW} < {round(655.36 * effects.percent)} | tostring)", "true"))
    return found


def _after(effects: PodEffects) -> Object:
    """The delay, as milliseconds left from now: KWOK restarts its count whenever the pod changes."""
    anchor = "([.status.containerStatuses[]?.state.running.startedAt // empty] | max) // .status.startTime // now"
    # The spread is taken first, while `.` is still the pod: it changes along a pipe.
    expression = (
        f". as $pod | ($pod | {_SPREAD}) as $spread"
        f' | (({anchor}) | if type == "string" then fromdate else . end)'
        f" + {effects.delay} + {effects.jitter} * $spread / 65536 - now"
        ' | . * 1000 | ceil | if . > 0 then "\\(.)ms" else "0s" end'
    )
    return {"delay": {"durationFrom": {"jq": {"expression": expression}}}}


def _back_off(statuses: str) -> str:
    """A jq expression: 10 s, doubled after each further failure, up to five minutes, as a kubelet waits."""
    return (
        f"([{statuses}[]?.restartCount] | add // 0) as $count"
        f' | "\\([{_FIRST_BACK_OFF_S} * pow(2; [$count - 1, 0] | max), {_LONGEST_BACK_OFF_S}] | min | floor)s"'
    )
