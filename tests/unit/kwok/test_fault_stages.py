"""Faults of pods: which share they hit and when, by the very jq of their stages, over 10,000 pods."""

import json
import math
import random
import re
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jq
import pytest
import yaml

from kumulus.kwok import base_stages
from kumulus.kwok.fault_stages import pod_stages
from kumulus.kwok.pod_statuses import fault
from kumulus.model.fault_effects import ACTIONS, PodEffects
from kumulus.model.plain import made_from
from tests.support.draws import fits

COUNT = 10_000
SINCE = "2026-01-01T00:00:00Z"
RANDOM = random.Random(6)
UIDS = [str(uuid.UUID(int=RANDOM.getrandbits(128), version=4)) for _ in range(COUNT)]
BASE = [each for each in base_stages.stages() if each["spec"]["resourceRef"]["kind"] == "Pod"]
TEXTS = [
    "UNSUPPORTED ARCHITECTURE",
    "MESSAGE of REASON: EXIT_CODE, HIT in STATUSES of CONTAINERS",
    "PULL_REASON PULL_MESSAGE",
    "GPU \U0001f525 on \u706b, \\ud83d and \\u007b",
    "quotes \", ' and \\, {{ .spec }}, {{{ and }}, # : - %s",
    "two\nlines,\ttabs, \u0085 and \u2028",
]


def stage(effects: PodEffects, name: str = "kumulus-fault-x") -> dict[str, Any]:
    spec: dict[str, Any] = next(
        each for each in pod_stages("x", effects, (), SINCE) if each["metadata"]["name"] == name
    )["spec"]
    return spec


def waits(effects: PodEffects, pods: list[dict[str, Any]], name: str = "kumulus-fault-x") -> list[float]:
    """How long each pod is left in peace, in seconds from the moment at which it is asked."""
    program = jq.compile(stage(effects, name)["delay"]["durationFrom"]["jq"]["expression"])
    return [seconds(program.input_value(each).first()) for each in pods]


def due(effects: PodEffects) -> tuple[list[float], list[float]]:
    """When the fault comes to each of 10,000 pods, in seconds after its start: not before, and not after."""
    program = jq.compile(stage(effects)["delay"]["durationFrom"]["jq"]["expression"])
    start = int(time.time())
    earliest, latest = [], []
    for uid in UIDS:
        asked = time.time()
        wait = seconds(program.input_value(running(uid, start)).first())
        earliest.append(asked + wait - start)
        latest.append(time.time() + wait - start)
    return earliest, latest


def seconds(written: str) -> float:
    return float(written.removesuffix("ms")) / 1000 if written.endswith("ms") else float(written.removesuffix("s"))


def running(uid: str, since: float = 0.0, **status: Any) -> dict[str, Any]:
    began = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"state": {"running": {"startedAt": began}}, **status}
    return {"metadata": {"uid": uid}, "status": {"phase": "Running", "containerStatuses": [container]}}


@pytest.mark.parametrize("percent", [1, 10, 50, 99.9])
def test_the_share_of_the_pods_that_are_hit_is_as_said(percent: float) -> None:
    (match,) = stage(PodEffects("stuck", percent=percent))["selector"]["matchExpressions"][1:]
    hit = sum(fits(match, {"metadata": {"uid": uid}}) for uid in UIDS)
    share = percent / 100
    # Five standard deviations of a binomial distribution.
    assert abs(hit - COUNT * share) < 5 * math.sqrt(COUNT * share * (1 - share))


def test_a_fault_comes_after_its_delay_and_up_to_the_jitter_later() -> None:
    earliest, latest = due(PodEffects("fail", delay=6000, jitter=3000))
    assert min(latest) >= 6000
    assert max(earliest) <= 9000
    # All of the jitter is used, evenly: five standard errors of the mean.
    assert min(earliest) < 6010
    assert max(latest) > 8990
    error = 5 * 3000 / math.sqrt(12 * COUNT)
    assert sum(earliest) / COUNT - error < 7500 < sum(latest) / COUNT + error


def test_when_it_comes_has_nothing_to_do_with_whether_it_comes() -> None:
    (match,) = stage(PodEffects("stuck", percent=20))["selector"]["matchExpressions"][1:]
    times = due(PodEffects("fail", jitter=3000))[0]
    found = [when for uid, when in zip(UIDS, times, strict=True) if fits(match, running(uid))]
    assert abs(sum(found) / len(found) - 1500) < 20 + 5 * 3000 / math.sqrt(12 * len(found))


def test_time_that_has_gone_by_is_not_waited_for_again() -> None:
    now = time.time()
    pods = [running(UIDS[0], now - 2000), running(UIDS[0], now - 9000)]
    late, overdue = waits(PodEffects("fail", delay=6000), pods)
    assert 3000 < late < 4001
    assert overdue == 0


@pytest.mark.parametrize(("restarts", "wait"), [(1, 10), (2, 20), (3, 40), (6, 300), (9, 300)])
def test_a_container_that_failed_is_started_again_after_the_kubelets_back_off(restarts: int, wait: float) -> None:
    crashed = running(UIDS[0], restartCount=restarts)
    assert waits(PodEffects("fail"), [crashed], "kumulus-fault-x.restart") == [wait]


def test_a_fault_that_is_not_repeated_hits_the_pods_that_are_there_once() -> None:
    matches = stage(PodEffects("fail", repeat=False))["selector"]["matchExpressions"]

    def hits(created: str, restarts: int) -> bool:
        found = {**running(UIDS[0], restartCount=restarts)}
        found["metadata"]["creationTimestamp"] = created
        return all(fits(match, found) for match in matches)

    assert hits(SINCE, 0)
    assert not hits("2026-01-01T00:00:01Z", 0)
    assert not hits(SINCE, 1)


def test_no_two_faults_have_a_stage_of_the_same_name() -> None:
    names = ("x", "x-restart", "x-back-off", "x-restart-restart")
    effects = [PodEffects(action) for action in ACTIONS]
    made = [
        {each["metadata"]["name"] for one in effects for each in pod_stages(name, one, (), SINCE)} for name in names
    ]
    assert sum(map(len, made)) == len(set().union(*made)) == 3 * len(names)


def patches(stage: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a stage patches, whichever of its forms it has."""
    following = stage["spec"].get("next", {})
    yield from following.get("patches", [])
    yield from (step["patch"] for step in stage["spec"].get("steps", []) if "patch" in step)


@pytest.mark.parametrize("stage", BASE, ids=[each["metadata"]["name"] for each in BASE])
def test_a_patch_is_of_the_pod_that_kwok_has_seen_and_of_no_other_or_later_one(stage: dict[str, Any]) -> None:
    found = list(patches(stage))
    assert found
    for patch in found:
        lines = patch["template"].splitlines()[:3]
        assert lines == [
            "metadata:",
            "  uid: {{ .metadata.uid | Quote }}",
            "  resourceVersion: {{ .metadata.resourceVersion | Quote }}",
        ]


def said(template: str, key: str) -> list[str]:
    """The texts after a key in a template, as YAML has them."""
    found = re.findall(rf'\b{key}: ("(?:[^"\\]|\\.)*")', template)
    return [yaml.load(each, Loader=yaml.CSafeLoader) for each in found]


@pytest.mark.parametrize("text", TEXTS)
def test_a_faults_texts_arrive_as_they_are(text: str) -> None:
    effects = PodEffects("fail", container="trainer", exit_code=3, reason=text, message=text)
    for init in (False, True):
        template = fault.failed(effects, init)
        assert said(template, "message") == said(template, "reason") == [text]
        assert 'eq .name "trainer"' in template
        assert "exitCode: 3" in template
    assert said(fault.evicted(effects), "message") == [text] * 2
    template = fault.unpulled(effects, "ErrImagePull")
    assert said(template, "message") == [text]
    assert "reason: ErrImagePull" in template
    # A text never begins an action of a template.
    for template in (fault.failed(effects, False), fault.evicted(effects), fault.unpulled(effects, "ErrImagePull")):
        assert "{{" not in re.sub(r"\{\{ (?:end|else|if|with|range|or|add1|index|toJson|\$|\.)[^}]*\}\}", "", template)
        assert "{{ .spec }}" not in template


@pytest.mark.parametrize(
    ("image", "hit"),
    [
        ("webserver:404", True),
        ("webserver:4045", False),
        ("docker.io/webserver:404", False),
        ("down.example.com/team/app:1@sha256:0", True),
        ("down-example.com/team/app", False),
    ],
)
def test_a_fault_of_images_hits_the_pods_that_have_one_and_the_containers(image: str, hit: bool) -> None:
    effects = PodEffects("imagePull", images=("webserver:404", "down.example.com/*"))
    (match,) = (
        each for each in stage(effects)["selector"]["matchExpressions"] if ".spec.containers[]" in each.get("key", "")
    )
    found = {"spec": {"containers": [{"image": "busybox"}, {"image": image}], "initContainers": [{"image": "x"}]}}
    assert fits(match, found) is hit
    assert bool(re.search(effects.image_pattern, image)) is hit
    assert f"regexMatch {json.dumps(effects.image_pattern)} .image" in fault.unpulled(effects, "ErrImagePull")
    assert made_from(PodEffects, effects.to_plain()) == effects
    assert "images" not in PodEffects("imagePull").to_plain()
