"""A recording: its steps, and the pods that there were. It may come from anyone, so everything in it is checked."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.manifests import manifest_problems, pod_templates
from kumulus.model.errors import Problem, SpecError

API_VERSION, KIND = "kumulus.io/v1alpha1", "Recording"
IMAGE = "captured"
"""The image of all containers, as their own images are not kept."""
MOST_STEPS = 1_000_000
MOST_BYTES = 1024**3
_MOST_LINE = 1024**2
_MOST_PROBLEMS = 10
_LONGEST = 366 * 86_400.0
_KINDS = frozenset(
    (
        ("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"), ("batch/v1", "Job"), ("policy/v1", "PodDisruptionBudget"), ("v1", "ResourceQuota"),
        ("v1", "LimitRange"), ("resource.k8s.io/v1", "ResourceClaim"), ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    )
)  # fmt: skip
_CHANGES = frozenset(("replicas", "parallelism", "suspend", "paused", "template"))
_DOINGS = frozenset(("create", "change", "delete", "evict", "drain", "cordon", "uncordon"))


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A recorded request."""

    at: float
    do: str
    """Create, change, delete, evict, drain, cordon or uncordon."""
    job: str
    """The workload that it is about, or the node's name."""
    queue: str = ""
    """The one in which a created workload waits."""
    ran: float | None = None
    """How many seconds its pods ran when recorded; None if that is not known, or they did not end."""
    over: float | None = None
    """Seconds from its creation to the end of its last pod, or of the recording; None if that is not known."""
    what: Mapping[str, Any] = field(default_factory=dict)
    """The object that is created, or the fields of its spec that change."""


@dataclass(frozen=True, slots=True)
class PodThen:
    """What became of a recorded pod: seconds from the recording's beginning, milli-CPU, MiB, GPUs, and its node."""

    queue: str
    at: float
    bound: float | None
    ended: float | None
    preempted: bool
    cpu: float
    memory: float
    gpus: float
    node: str = ""


@dataclass
class Recording:
    """A recording.

    Attributes:
        steps: in the order of their times.
        priorities: the values of its pods' priority classes, by name.
        left_out: what was recorded but cannot be replayed, and how often.
    """

    steps: list[RecordedStep] = field(default_factory=list)
    pods: list[PodThen] = field(default_factory=list)
    priorities: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def lasted(self) -> float:
        """Seconds from its beginning to its last step."""
        return self.steps[-1].at if self.steps else 0.0


@cache
def recorded_kinds() -> frozenset[tuple[str, str]]:
    """What a recording may create; anything else in it is refused."""
    ours = (kind for kind in registry.object_kinds() if kind.replayed)
    return _KINDS | {(kind.api_version(version), kind.name) for kind in ours for version in kind.versions}


def recording(text: str, source: str) -> Recording:
    """Read a recording."""
    found, problems = Recording(), list[Problem]()
    made: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            _take(found, _value(line), number == 1, made)
        except (_Wrong, OverflowError) as error:
            problems.append(Problem(f"line {number}", str(error), "import it again: kumulus replay import"))
            if number == 1 or len(problems) >= _MOST_PROBLEMS:
                break
    if not problems and not found.steps:
        problems.append(Problem("", "has no steps", "import it again: kumulus replay import"))
    if problems:
        raise SpecError(problems, source)
    found.steps.sort(key=lambda step: step.at)
    return found


class _Wrong(Exception):
    pass


def _value(line: str) -> Mapping[str, Any]:
    if len(line) > _MOST_LINE:
        raise _Wrong(f"has more than {_MOST_LINE:,} characters")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise _Wrong("is no JSON") from None
    if not isinstance(value, Mapping):
        raise _Wrong("is no mapping")
    return value


def _take(found: Recording, value: Mapping[str, Any], first: bool, made: set[str]) -> None:
    if first:
        if (value.get("apiVersion"), value.get("kind")) != (API_VERSION, KIND):
            raise _Wrong(f"is not the head of a recording, {{apiVersion: {API_VERSION}, kind: {KIND}}}")
        found.priorities = dict(_whole_numbers(value.get("priorities")))
        found.left_out = dict(_whole_numbers(value.get("leftOut")))
    elif isinstance(was := value.get("was"), Mapping):
        cpu, memory, gpus = (_number(was, key, 0.0, 1e15) or 0.0 for key in ("cpu", "memory", "gpus"))
        bound, ended = (_number(was, key, 0.0, _LONGEST) for key in ("bound", "ended"))
        at = _number(was, "at", 0.0, _LONGEST)
        if at is None:
            raise _Wrong("has no time")
        queue, preempted, node = _text(was, "queue"), was.get("preempted") is True, str(was.get("node") or "")
        found.pods.append(PodThen(queue, at, bound, ended, preempted, cpu, memory, gpus, node))
    else:
        if len(found.steps) >= MOST_STEPS:
            raise _Wrong(f"is step {MOST_STEPS + 1:,}; more are not read")
        found.steps.append(_step(value, made))


def _step(value: Mapping[str, Any], made: set[str]) -> RecordedStep:
    do, at = str(value.get("do")), _number(value, "at", 0.0, _LONGEST)
    if do not in _DOINGS or at is None:
        raise _Wrong("has no time, or does nothing that is known")
    job, what = _text(value, "job"), dict[str, Any]()
    if do == "create":
        if job in made:
            raise _Wrong(f"creates {job[:80]} a second time")
        made.add(job)
        what = _object(value.get("object"))
    elif do in ("change", "delete", "evict"):
        if job not in made:
            raise _Wrong(f"is about {job[:80]}, which is not created before")
        spec = value.get("spec")
        if do == "change":
            if not isinstance(spec, dict) or not spec or spec.keys() - _CHANGES:
                raise _Wrong(f"changes something else than {', '.join(sorted(_CHANGES))}")
            what = _sound({"spec": spec})["spec"]
    ran, over = (_number(value, key, 0.0, _LONGEST) for key in ("ran", "over"))
    return RecordedStep(at, do, job, str(value.get("queue") or ""), ran, over, what)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or (str(value.get("apiVersion")), str(value.get("kind"))) not in recorded_kinds():
        kind = value.get("kind") if isinstance(value, dict) else value
        raise _Wrong(f"creates something that no recording has: {str(kind)[:60]}")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not _namespace(metadata):
        raise _Wrong("creates an object without name and namespace")
    if not isinstance(value.get("spec", {}), dict):
        raise _Wrong("creates an object whose spec is no mapping")
    return _sound(value)


def _sound(value: dict[str, Any]) -> dict[str, Any]:
    """An object, or a part of one, in which what is read of it has the right form."""
    for each in manifest_problems((), value):
        raise _Wrong(f"has an object with a mistake: {each.path} {each.message}")
    # On real nodes, its pods must run nothing and mount nothing.
    for spec in (template["spec"] for template in pod_templates(value)):
        containers = (*spec["containers"], *(spec.get("initContainers") or ()))
        if strange := {str(each.get("image"))[:60] for each in containers} - {IMAGE}:
            raise _Wrong(f"has a pod with the image {min(strange)}; those of a recording have the image {IMAGE}")
        if spec.get("volumes"):
            raise _Wrong("has a pod with volumes, which no recording has")
    if (value.get("spec") or {}).get("volumeClaimTemplates"):
        raise _Wrong("has volumeClaimTemplates, which no recording has")
    return value


def _namespace(metadata: Mapping[str, Any]) -> bool:
    namespace = metadata.get("namespace")
    return isinstance(namespace, str) and bool(namespace) and "/" not in namespace and "/" not in metadata["name"]


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found:
        raise _Wrong(f"has no {key}")
    return found


def _number(value: Mapping[str, Any], key: str, least: float, most: float) -> float | None:
    found = value.get(key)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise _Wrong(f"has {key}, which is no number")
    if not least <= found <= most:
        raise _Wrong(f"has {key}, which is not from {least:g} to {most:g}")
    return float(found)


def _whole_numbers(value: Any) -> Iterator[tuple[str, int]]:
    for key, number in value.items() if isinstance(value, Mapping) else ():
        if isinstance(number, int) and not isinstance(number, bool):
            yield str(key), number
