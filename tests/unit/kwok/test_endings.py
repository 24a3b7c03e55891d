"""What comes next for a running pod, by the very jq of the stages: its command, its annotation or its deadline."""

import re
from typing import Any

import pytest

from kumulus.kwok import base_stages
from kumulus.kwok.pod_statuses.followed import ANNOTATED
from tests.support.draws import compiled, fits

STAGES = {each["metadata"]["name"]: each["spec"] for each in base_stages.stages()}
LIFE = ("pod-probed", "pod-complete", "pod-refuse", "pod-exit", "pod-deadline", "pod-restart")
START = "2026-01-31T12:00:00Z"
JOB = {"kind": "Job", "apiVersion": "batch/v1", "name": "j"}


def pod(
    *commands: list[str], policy: str = "Never", owner: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A running and ready pod, a container for each command."""
    names = [f"c{index}" for index in range(len(commands))]
    containers = [
        {"name": name, "image": "busybox", "command": command} for name, command in zip(names, commands, strict=True)
    ]
    statuses = [{"name": name, "ready": True, "state": {"running": {"startedAt": START}}} for name in names]
    return {
        "metadata": {"name": "p", "namespace": "n", **({"ownerReferences": [owner]} if owner else {})},
        "spec": {"restartPolicy": policy, "containers": containers, **spec},
        "status": {"phase": "Running", "startTime": START, "containerStatuses": statuses},
    }


def due(found: dict[str, Any]) -> tuple[str, str]:
    """The only stage of its life that a pod has next, and when."""
    there = [name for name in LIFE if all(fits(each, found) for each in STAGES[name]["selector"]["matchExpressions"])]
    if not there:
        return "", ""
    (name,) = there
    when = compiled(STAGES[name]["delay"]["durationFrom"]["jq"]["expression"]).input_value(found).first()
    return name, when.removeprefix("2026-01-31T")


@pytest.mark.parametrize(
    ("command", "when"),
    [
        (["sleep", "30"], "12:00:30.500Z"),
        (["/bin/sleep", "1.5m"], "12:01:30.500Z"),
        (["true"], "12:00:00.000Z"),
        (["/bin/false"], "12:00:00.000Z"),
        (["sh", "-c", "echo begins; sleep 2 && sleep 3\nexit 4"], "12:00:05.500Z"),
        (["/bin/bash", "-ec", "sleep 1; false"], "12:00:01.500Z"),
    ],
)
@pytest.mark.parametrize("owner", [None, JOB])
def test_a_pod_ends_when_its_command_says(command: list[str], when: str, owner: dict[str, str] | None) -> None:
    assert due(pod(command, owner=owner)) == ("pod-exit", when)
    assert due(pod(command, ["true"], owner=owner)) == ("pod-exit", when)


@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "inf"],
        ["/bin/sleep", "infinity"],
        ["tail", "-f", "/dev/null"],
        ["/pause"],
        ["sh", "-c", "true; pause"],
    ],
)
@pytest.mark.parametrize("owner", [None, JOB])
def test_a_pod_whose_command_has_no_end_stays(command: list[str], owner: dict[str, str] | None) -> None:
    assert due(pod(command, owner=owner)) == ("", "")
    assert due(pod(["true"], command, owner=owner)) == ("", "")


def test_the_image_pause_needs_no_command() -> None:
    paused = pod([], owner=JOB)
    assert due(paused) == ("pod-complete", "12:00:00.000Z")
    paused["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.10"
    assert due(paused) == ("", "")


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["sh", "-c", "exit $(($RANDOM % 2))"],
        ["sh", "-c", "echo x; sleep 10 | cat"],
        ["sh", "-c", "false || exit 3"],
        ["sleep"],
        [],
    ],
)
def test_a_command_that_is_not_understood_ends_a_batch_jobs_pod_at_once_and_no_other(command: list[str]) -> None:
    assert due(pod(command, owner=JOB)) == ("pod-complete", "12:00:00.000Z")
    assert due(pod(command, ["sleep", "9"], owner=JOB)) == ("pod-complete", "12:00:00.000Z")
    assert due(pod(command)) == ("", "")
    assert due(pod(command, owner={**JOB, "apiVersion": "batch.volcano.sh/v1alpha1"})) == ("", "")


@pytest.mark.parametrize(
    ("name", "annotations"),
    [
        ("gpu-validator-x2x7d", {}),
        ("nccl-test-0", {}),
        ("k8s-conformance", {}),
        ("p", {"helm.sh/hook": "test"}),
        ("p", {"helm.sh/hook": "post-install, test"}),
    ],
)
def test_no_check_passes_by_assumption(name: str, annotations: dict[str, str]) -> None:
    found = pod(["./check"], owner=JOB)
    found["metadata"] |= {"name": name, "annotations": annotations}
    assert due(found) == ("pod-refuse", "12:00:00.000Z")
    found["metadata"]["annotations"] = {"helm.sh/hook": "post-install"}
    assert due(found)[0] == ("pod-complete" if name == "p" else "pod-refuse")
    # What is declared holds.
    found["spec"]["containers"][0]["command"] = ["true"]
    assert due(found) == ("pod-exit", "12:00:00.000Z")
    found["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": "5s"}
    assert due(found) == ("pod-complete", "12:00:05.500Z")


def aicr() -> dict[str, Any]:
    """A pod of a Job as NVIDIA's AICR makes it for each of its checks (pkg/validator/job/deployer.go)."""
    found = pod([], owner=JOB)
    found["metadata"]["name"] = "aicr-operator-health-0a1b2c3d-x2x7d"
    found["metadata"]["labels"] = {"app.kubernetes.io/component": "validation"}
    image = "ghcr.io/nvidia/aicr-validators/deployment:v1.2.0"
    found["spec"]["containers"] = [{"name": "validator", "image": image, "args": ["operator-health"]}]
    return found


def test_a_check_is_known_by_a_label_a_container_or_an_image() -> None:
    assert due(aicr()) == ("pod-refuse", "12:00:00.000Z")
    found = aicr()
    found["metadata"]["labels"] = {}
    (container,) = found["spec"]["containers"]
    container["name"] = "main"
    assert due(found)[0] == "pod-refuse", "the image is one of validators"
    container["image"] = "ghcr.io/nvidia/aicr/deployment:v1-validated"
    assert due(found)[0] == "pod-complete", "a tag says nothing of it"
    container["name"] = "validator"
    assert due(found)[0] == "pod-refuse"
    container["name"] = "main"
    found["metadata"]["labels"] = {"app.kubernetes.io/component": "validation"}
    assert due(found)[0] == "pod-refuse"


def test_a_check_in_an_init_container_does_not_pass_by_the_command_that_follows_it() -> None:
    # As the GPU operator has its validations: the container only says that the init container has come to its end.
    check = {"name": "cuda-validation", "image": "nvcr.io/nvidia/gpu-operator-validator:v25", "command": ["vectorAdd"]}
    found = pod(["sh", "-c", "echo validation is successful"], owner=JOB, initContainers=[check])
    assert due(found) == ("pod-refuse", "12:00:00.000Z")
    assert due({**found, "metadata": {"name": "p"}}) == ("", ""), "a bare pod stays"
    check["command"] = ["true"]
    assert due(found)[0] == "pod-exit", "what is declared holds"
    # A sidecar does not check, and an init container of no check is not asked.
    check |= {"command": ["vectorAdd"], "restartPolicy": "Always"}
    assert due(found)[0] == "pod-exit"
    del check["restartPolicy"]
    check |= {"name": "wait", "image": "busybox"}
    assert due(found)[0] == "pod-exit"


def test_a_pod_that_is_always_restarted_ends_by_no_command() -> None:
    assert due(pod(["true"], policy="Always")) == ("", "")


@pytest.mark.parametrize(
    ("delay", "when"), [("1h2m", "13:02:00.500Z"), ("1500ms", "12:00:02.000Z"), ("soon", "12:00:00.000Z")]
)
@pytest.mark.parametrize("group", ["batch/v1", "batch.volcano.sh/v1alpha1"])
def test_the_delay_in_a_jobs_annotation_comes_before_its_command(delay: str, when: str, group: str) -> None:
    found = pod(["sleep", "9"], owner={**JOB, "apiVersion": group})
    found["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": delay}
    assert due(found) == ("pod-complete", when)


def test_a_pod_fails_at_its_deadline_unless_it_ends_before() -> None:
    assert due(pod(["sleep", "9"], activeDeadlineSeconds=5)) == ("pod-deadline", "12:00:05.500Z")
    assert due(pod(["sleep", "3"], activeDeadlineSeconds=5)) == ("pod-exit", "12:00:03.500Z")
    assert due(pod(["sleep", "3"], policy="Always", activeDeadlineSeconds=5)) == ("pod-deadline", "12:00:05.500Z")


def test_a_pod_is_ready_when_the_last_of_its_probes_begins() -> None:
    found = pod(["web"], ["web"], policy="Always")
    found["spec"]["containers"][0]["readinessProbe"] = {"initialDelaySeconds": 7}
    found["spec"]["containers"][1]["startupProbe"] = {"initialDelaySeconds": 9}
    assert due(found) == ("", "")
    for status in found["status"]["containerStatuses"]:
        status["ready"] = False
    assert due(found) == ("pod-probed", "12:00:09.500Z")


def test_what_has_failed_is_restarted_after_the_back_off_of_a_kubelet() -> None:
    found = pod(["false"], policy="OnFailure")
    end = {"exitCode": 1, "startedAt": START, "finishedAt": START}
    found["status"]["containerStatuses"] = [{"ready": False, "restartCount": 2, "state": {"terminated": end}}]
    assert due(found) == ("pod-restart", "12:00:20.500Z")


@pytest.mark.parametrize(
    ("change", "lags"),
    [
        ({}, False),
        ({"metadata": {"generation": 2}}, True),
        ({"gate": None, "ready": ("True", None)}, True),
        ({"gate": "True", "ready": ("True", None)}, False),
        ({"gate": None, "ready": ("False", "ReadinessGatesNotReady")}, False),
        ({"gate": "True", "ready": ("False", "ReadinessGatesNotReady")}, True),
        # The node's controller had marked it, as the node was lost.
        ({"gate": "True", "ready": ("False", None)}, True),
        ({"ready": ("False", None)}, True),
        ({"gate": None, "ready": ("False", None)}, False),
        ({"ready": ("False", "ContainersNotReady"), "unready": True}, False),
        ({"pending": ANNOTATED, "annotations": {"kumulus.io/resize": "deferred"}}, False),
        ({"pending": ANNOTATED}, True),
        ({"pending": "declared by resizes[0] of the lifecycle a"}, False),
    ],
)
def test_a_pod_is_followed_where_its_status_lags_behind(change: dict[str, Any], lags: bool) -> None:
    found = pod(["web"])
    annotations = {"annotations": change["annotations"]} if "annotations" in change else {}
    found["metadata"] |= {"generation": 1, **change.get("metadata", {}), **annotations}
    status, reason = change.get("ready", ("True", None))
    conditions = [
        {"type": "Ready", "status": status, **({"reason": reason} if reason else {})},
        {"type": "ContainersReady", "status": str(not change.get("unready"))},
    ]
    if "gate" in change:
        found["spec"]["readinessGates"] = [{"conditionType": "example.com/open"}]
        conditions += [{"type": "example.com/open", "status": "True"}] if change["gate"] else []
    pending = {"type": "PodResizePending", "status": "True", "message": change.get("pending")}
    conditions += [pending] if "pending" in change else []
    found["status"] |= {"observedGeneration": 1, "conditions": conditions}
    assert fits(STAGES["pod-follow"]["selector"]["matchExpressions"][-1], found) is lags


def test_events_follow_an_accepted_patch_and_come_before_the_pod_goes() -> None:
    told = {each["metadata"]["name"]: each["spec"] for each in base_stages.stages(events=True)}
    changed = {name for name, spec in told.items() if spec != STAGES[name]}
    assert changed == {"pod-ready", "pod-terminate"}
    for name, reasons in (("pod-ready", ["Pulled", "Created", "Started"]), ("pod-terminate", ["Killing"])):
        steps = told[name]["steps"]
        assert list(steps[0]) == ["patch"]
        written = [each["apply"]["template"] for each in steps[1 : 1 + len(reasons)]]
        assert [re.findall(r"^reason: (\w+)$", each, re.MULTILINE) for each in written] == [[each] for each in reasons]
        assert all("source: {component: kubelet" in each for each in written)
    assert told["pod-terminate"]["steps"][-1] == {"delete": True}
