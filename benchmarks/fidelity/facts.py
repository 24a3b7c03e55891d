"""What was seen of a situation as plain texts by path, and what differs between two places: pure functions."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = "absent"
"""In the place of a value that is not there."""
Facts = Mapping[str, Mapping[str, int]]
"""By path: how many runs had which value."""

# What another pod, node or run has another of. Only that it is there can be compared.
_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "‹time›"),
    (re.compile(r"(?<![0-9a-z])([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b"), "‹uid›"),
    (re.compile(r"\b[a-z0-9./_-]*(containerd://|sha256:)[0-9a-f]{8,}"), "‹id›"),
    (re.compile(r"\b(\d{1,3}\.){3}\d{1,3}\b"), "‹address›"),
    # Of the account's volume, and of what a controller made.
    (re.compile(r"\b(kube-api-access|w|w-[0-9a-f]{8,10}|w-\d+)-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1-‹suffix›"),
    (re.compile(r"\bw-\d{8,}\b"), "w-‹minute›"),
)


@dataclass(frozen=True)
class Difference:
    """A path whose value in one place occurs in no run of the other."""

    path: str
    """Of the fact."""
    real: Mapping[str, int]
    """How many runs had each value, on real kubelets."""
    emulated: Mapping[str, int]
    """Likewise, on emulated nodes."""


@dataclass(frozen=True)
class Comparison:
    """What comparing came to."""

    equal: int
    """Paths with one value in every run of both places."""
    within: int
    """Paths whose real value varies, and every emulated value is one of these."""
    differences: Sequence[Difference]
    """All others."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many are equal, within the spread, and different."""
        return self.equal, self.within, len(self.differences)


def flat(value: Any, names: Mapping[str, str], at: str = "") -> dict[str, str]:
    """The leaves of a document by their paths; an element of a list goes by its type, its name or its place.

    Args:
        names: texts that differ from run to run, and what stands for them.
        at: the path of the value.
    """
    if isinstance(value, dict):
        parts = [(f"{at}.{key}".lstrip("."), each) for key, each in value.items()]
    elif isinstance(value, list):
        parts = [(f"{at}[{_key(each, place)}]", each) for place, each in enumerate(value)]
    elif at.endswith(".resourceVersion"):
        return {at: "‹version›"}
    else:
        return {} if value is None or value == "" else {at: masked(_text(value), names)}
    return {path: text for name, each in parts for path, text in flat(each, names, masked(name, names)).items()}


def masked(text: str, names: Mapping[str, str]) -> str:
    """A text without what is different in every run."""
    for name, instead in sorted(names.items(), key=lambda each: -len(each[0])):
        text = text.replace(name, instead)
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def state(pod: Mapping[str, Any]) -> str:
    """What a pod is doing, in the words of `kubectl get pods`: phase, containers, whether it is Ready or leaving."""
    status = pod["status"]
    said = [status.get("phase", "Pending")] if pod["spec"].get("nodeName") else ["unbound"]
    for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for kind, details in each.get("state", {}).items():
            said.append(details.get("reason", kind))
    if any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", [])):
        said.append("Ready")
    if pod["metadata"].get("deletionTimestamp"):
        said.append("leaving")
    return " ".join(said)


def sequence(states: Sequence[str]) -> str:
    """The states that a watch saw, each once until it changed."""
    kept = [each for place, each in enumerate(states) if place == 0 or each != states[place - 1]]
    return " → ".join(kept)


def counted(runs: Sequence[Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """In how many of several runs each fact had each value."""
    paths = sorted({path for run in runs for path in run})
    return {path: dict(Counter(run.get(path, ABSENT) for run in runs)) for path in paths}


def compare(real: Facts, emulated: Facts) -> Comparison:
    """Compare the facts of one situation in both places, each counted over several runs.

    Args:
        real: on real kubelets.
        emulated: on emulated nodes.
    """
    equal = within = 0
    found = []
    for path in sorted({*real, *emulated}):
        there, here = (facts.get(path) or {ABSENT: 1} for facts in (real, emulated))
        if not set(here) <= set(there):
            found.append(Difference(path, there, here))
        elif len(there) == 1:
            equal += 1
        else:
            within += 1
    return Comparison(equal, within, found)


def _key(element: Any, place: int) -> str:
    if isinstance(element, dict) and "effect" in element:
        return f"{element.get('key', '')}:{element['effect']}"
    if isinstance(element, dict):
        return str(element.get("type") or element.get("name") or place)
    return str(place)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
