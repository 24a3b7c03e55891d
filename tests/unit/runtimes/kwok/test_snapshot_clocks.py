"""What runs by the clock in a snapshot's objects is put forward, and nothing else of them is changed."""

from typing import Any

import pytest

from kumulus.extras.snapshots.kwok import _TABLES, moved
from kumulus.kube.message_tables import classes_of
from kumulus.kube.messages import MAGIC, OBSERVED

# More than the product's own tables name: what it passes over has to stay.
_CLASSES = classes_of(
    {
        **_TABLES,
        **{name: OBSERVED[name] for name in ("TypeMeta", "ObjectMeta", "OwnerReference")},
        "Unknown": {"typeMeta": (1, "TypeMeta"), "raw": (2, "bytes"), "contentType": (4, "string")},
        "Time": {"seconds": (1, "int64"), "nanos": (2, "int32")},
        "Waiting": {"reason": (1, "string")},
        "ContainerState": {"waiting": (1, "Waiting"), **_TABLES["ContainerState"]},
        "ContainerStatus": {"name": (1, "string"), **_TABLES["ContainerStatus"]},
        "PodSpec": {"nodeName": (10, "string")},
        "PodStatus": {**_TABLES["PodStatus"], "conditions": (2, "*Condition"), "podIP": (6, "string")},
        "Condition": {"type": (1, "string"), **_TABLES["Condition"]},
        "Pod": {"metadata": (1, "ObjectMeta"), "spec": (2, "PodSpec"), "status": (3, "PodStatus")},
        "Job": {"metadata": (1, "ObjectMeta"), "status": (3, "JobStatus")},
        "Taint": {"key": (1, "string"), "timeAdded": (4, "Time")},
        "Node": {"metadata": (1, "ObjectMeta"), "spec": (2, "NodeSpec")},
    }
)


def stored(item: Any) -> bytes:
    kind = type(item).__name__
    envelope = _CLASSES["Unknown"](
        typeMeta={"apiVersion": "v1", "kind": kind}, raw=item.SerializeToString(), contentType=""
    )
    return MAGIC + bytes(envelope.SerializeToString())


def opened(kind: str, value: bytes) -> Any:
    envelope = _CLASSES["Unknown"].FromString(value[len(MAGIC) :])
    assert (envelope.typeMeta.kind, envelope.HasField("contentType")) == (kind, True)
    return _CLASSES[kind].FromString(envelope.raw)


def pod(phase: str) -> Any:
    first = {"name": "init", "state": {"terminated": {"startedAt": {"seconds": 90}, "finishedAt": {"seconds": 95}}}}
    main = {"name": "main", "state": {"running": {"startedAt": {"seconds": 101, "nanos": 7}}}}
    waits = {"name": "side", "state": {"waiting": {"reason": "PodInitializing"}}}
    return _CLASSES["Pod"](
        metadata={"name": "p", "creationTimestamp": {"seconds": 80}, "labels": {"app": "a"}},
        spec={"nodeName": "n"},
        status={
            "phase": phase,
            "podIP": "10.0.0.1",
            "startTime": {"seconds": 100},
            "initContainerStatuses": [first],
            "containerStatuses": [main, waits],
            "conditions": [{"type": "Ready", "lastTransitionTime": {"seconds": 102}}],
        },
    )


def test_a_pod_that_runs_has_run_for_as_long_as_it_had_then() -> None:
    found = opened("Pod", moved(b"/registry/pods/x/p", stored(pod("Running")), 1000))
    wanted = pod("Running")
    wanted.status.startTime.seconds = 1100
    wanted.status.initContainerStatuses[0].state.terminated.startedAt.seconds = 1090
    wanted.status.initContainerStatuses[0].state.terminated.finishedAt.seconds = 1095
    wanted.status.containerStatuses[0].state.running.startedAt.seconds = 1101
    assert found == wanted


def test_a_job_s_deadline_and_its_removal_count_on() -> None:
    complete = {"type": "Complete", "lastProbeTime": {"seconds": 50}, "lastTransitionTime": {"seconds": 51}}
    status = {"startTime": {"seconds": 10}, "completionTime": {"seconds": 50}, "conditions": [complete]}
    job = _CLASSES["Job"](metadata={"name": "j"}, status=status)
    found = opened("Job", moved(b"/registry/jobs/x/j", stored(job), 7)).status
    assert (found.startTime.seconds, found.completionTime.seconds) == (17, 57)
    assert (found.conditions[0].lastProbeTime.seconds, found.conditions[0].lastTransitionTime.seconds) == (57, 58)
    assert found.conditions[0].type == "Complete"


def test_a_taint_that_is_tolerated_for_a_while_is_as_old_as_then() -> None:
    taints = [{"key": "a", "timeAdded": {"seconds": 5}}, {"key": "b"}]
    node = _CLASSES["Node"](metadata={"name": "n", "creationTimestamp": {"seconds": 1}}, spec={"taints": taints})
    found = opened("Node", moved(b"/registry/minions/n", stored(node), 9))
    assert found.spec.taints[0].timeAdded.seconds == 14
    assert not found.spec.taints[1].HasField("timeAdded")
    assert found.metadata == node.metadata


@pytest.mark.parametrize(
    ("key", "value", "seconds"),
    [
        (b"/registry/pods/x/p", stored(pod("Succeeded")), 10),
        (b"/registry/pods/x/p", stored(pod("Running")), 0),
        (b"/registry/pods/x/p", stored(_CLASSES["Pod"](metadata={"name": "pending"})), 10),
        (b"/registry/secrets/x/p", stored(pod("Running")), 10),
        (b"/registry/pods/x/p", b'{"kind":"Pod"}', 10),
        (b"/registry/pods/x/p", MAGIC + b"\xff\xff", 10),
        (b"/registry/pods/x/p", b"", 10),
    ],
    ids=["ended", "at once", "not begun", "another kind", "JSON", "cut off", "empty"],
)
def test_everything_else_is_what_it_was(key: bytes, value: bytes, seconds: int) -> None:
    assert moved(key, value, seconds) == value
