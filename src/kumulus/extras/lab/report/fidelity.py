"""What a run is not to be trusted for: the lines of docs/fidelity.md that concern it.

The lines are in fidelity.yaml, of which that page is made, too; replay_errors.json is written with it, and says how far
off a trace was that was replayed faster.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.schedulers.manifests import pod_templates

RULES = Path(__file__).with_name("fidelity.yaml")
REPLAYS = Path(__file__).with_name("replay_errors.json")
Spec = Mapping[str, Any]


@dataclass(frozen=True)
class FidelityRule:
    """A line of fidelity.yaml, whose head says what is what."""

    match: str
    name: str
    weight: int
    consequence: str = ""
    example: str = ""
    concerns: str = ""


@cache
def rules() -> tuple[FidelityRule, ...]:
    """All of them, in the file's order."""
    return tuple(FidelityRule(**each) for each in yaml.safe_load(RULES.read_text(encoding="utf-8")))


def concerning(experiment: ExperimentSpec, plan: RepetitionPlan) -> list[str]:
    """The lines that concern a run, the heaviest first, as sentences."""
    specs = [spec for job in plan.jobs for each in job.objects for spec in _specs(each)]
    there = {sign for sign, shows in _SIGNS.items() if any(map(shows, specs))}
    lines = sorted((rule for rule in rules() if rule.concerns in there), key=lambda rule: -rule.weight)
    found = [f"this run is not to be trusted where it {rule.consequence} (docs/fidelity.md)" for rule in lines]
    return [*found, *(line for speed in sorted(speeds(experiment)) for line in _hurried(speed))]


def _specs(made: Mapping[str, Any]) -> Iterator[Spec]:
    return (template.get("spec") or {} for template in pod_templates(made))


def _containers(spec: Spec) -> Iterable[Mapping[str, Any]]:
    return (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))


def _probed(spec: Spec) -> bool:
    probes = ("readinessProbe", "livenessProbe", "startupProbe")
    return any(container.get(probe) for container in _containers(spec) for probe in probes)


def _refers(spec: Spec) -> bool:
    words = json.dumps([spec.get("volumes"), *_containers(spec)])
    return any(f'"{kind}' in words for kind in ("configMap", "secret")) or bool(spec.get("nodeName"))


# By the word that a line has as `concerns`: which pods it concerns.
_SIGNS: Mapping[str, Callable[[Spec], bool]] = {
    "probes": _probed,
    "references": _refers,
    "several containers": lambda spec: len(spec.get("containers") or ()) > 1 and spec.get("restartPolicy") == "Never",
    "restarts": lambda spec: spec.get("restartPolicy") == "OnFailure",
}
CONCERNS = tuple(_SIGNS)
"""What a line may concern."""


def speeds(experiment: ExperimentSpec) -> set[float]:
    """The factors by which its workloads are replayed faster than they were recorded."""
    played = [each.replay or each.arrival.trace for each in experiment.workloads]
    return {each.speed for each in played if each is not None}


def _hurried(speed: float) -> Iterator[str]:
    """What a speed costs, if it is beyond those at which a replay was exact."""
    known = json.loads(REPLAYS.read_text(encoding="utf-8"))
    if speed <= known["exact"]:
        return
    factor, worst = max(
        (each for each in known["worst"].items() if int(each[0]) <= speed),
        key=lambda each: int(each[0]),
        default=min(known["worst"].items(), key=lambda each: int(each[0])),
    )
    yield (
        f"speed {speed:g}: a replay at ×{factor}, with jobs of {worst['seconds']:g} s, was off by up to "
        f"{worst['error']:.0%} ({worst['measure']}); up to ×{known['exact']} it is exact within 1% (docs/fidelity.md)"
    )
