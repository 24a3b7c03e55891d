"""Times in an object of a snapshot, shifted by the time that has passed, so that whatever depends on them continues.

A pod should run for the rest of its duration, and not end at once because that would be over by now. So the times of
running pods, of Jobs, and of taints by which pods are evicted are moved. Sources of the numbers: ``generated.proto`` of
k8s.io/api/core/v1, k8s.io/api/batch/v1 and of k8s.io/apimachinery's pkg/apis/meta/v1 and pkg/runtime. Fields that the
tables do not name stay as they are.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import opened, sealed

_TABLES = tables_of(
    """
    Time: seconds 1 int64
    Condition: lastProbeTime 3 Time, lastTransitionTime 4 Time
    Running: startedAt 1 Time
    Terminated: startedAt 5 Time, finishedAt 6 Time
    ContainerState: running 2 Running, terminated 3 Terminated
    ContainerStatus: state 2 ContainerState, lastState 3 ContainerState
    PodStatus: phase 1 string, startTime 7 Time, containerStatuses 8 *ContainerStatus,
        initContainerStatuses 10 *ContainerStatus
    Pod: status 3 PodStatus
    JobStatus: conditions 1 *Condition, startTime 2 Time, completionTime 3 Time
    Job: status 3 JobStatus
    Taint: timeAdded 4 Time
    NodeSpec: taints 5 *Taint
    Node: spec 2 NodeSpec
    """
)
_ENDED = ("Succeeded", "Failed")


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_TABLES)


def moved(key: bytes, value: bytes, seconds: int) -> bytes:
    """A stored object whose clocks are put forward.

    Args:
        value: the object as the API server stores it.

    Returns:
        The object to store; the same one if nothing in it depends on the clock, or if it is not in protobuf.
    """
    kind = next((each for each in _KINDS if key.startswith(each)), None)
    if kind is None or seconds <= 0:
        return value
    name, times = _KINDS[kind]
    try:
        envelope = opened(value)
        item = _classes()[name].FromString(envelope.raw)
    except DecodeError:
        return value
    found = [time for time in times(item) if time.seconds]
    if not found:
        return value
    for time in found:
        time.seconds += seconds
    envelope.raw = item.SerializeToString()
    return sealed(envelope)


def _of_pod(pod: Any) -> Iterator[Any]:
    """The times of a pod that has not ended."""
    status = pod.status
    if status.phase in _ENDED:
        return
    yield status.startTime
    for each in (*status.initContainerStatuses, *status.containerStatuses):
        for state in (each.state, each.lastState):
            yield from (state.running.startedAt, state.terminated.startedAt, state.terminated.finishedAt)


def _of_job(job: Any) -> Iterator[Any]:
    """A Job's deadline counts from its start, and its removal (``ttlSecondsAfterFinished``) from its end."""
    status = job.status
    yield from (status.startTime, status.completionTime)
    for each in status.conditions:
        yield from (each.lastProbeTime, each.lastTransitionTime)


def _of_node(node: Any) -> Iterator[Any]:
    """Pods that tolerate a taint for some time are evicted that long after it was added."""
    for taint in node.spec.taints:
        yield taint.timeAdded


_KINDS: Mapping[bytes, tuple[str, Callable[[Any], Iterator[Any]]]] = {
    b"/registry/pods/": ("Pod", _of_pod),
    b"/registry/jobs/": ("Job", _of_job),
    b"/registry/minions/": ("Node", _of_node),
}
