"""How long the pods of a real cluster pulled, started and ran, and the lifecycles in which emulated ones do likewise.

Times are those that a kubelet writes into a pod's status, in whole seconds. Pure functions.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kumulus.model.distributions import Distribution

_ENDED = ("Ready", "ContainersReady", "PodReadyToStartContainers")
FEWEST = 5
"""Of fewer pods, no distribution is distinguished from another."""


@dataclass
class Lives:
    """What was seen of pods that are alike; all times in seconds."""

    selector: Mapping[str, Any]
    """Of the lifecycle that they get."""
    pods: int = 0
    pulls: list[float] = field(default_factory=list)
    """From a pod's start to that of its first container."""
    inits: list[float] = field(default_factory=list)
    """Of each init container."""
    starts: list[float] = field(default_factory=list)
    """From the last container's start until the pod was ready, of pods that are and were never restarted."""
    runs: list[float] = field(default_factory=list)
    """Of pods whose containers ended with 0, until the kubelet had said so: only then is their room free for others."""
    failures: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    """The same of all others, by exit code and reason."""
    runs_on: int = 0
    """Pods that still run, whose end is not known."""

    def add(self, pod: Mapping[str, Any]) -> None:
        """Add what a pod's status says."""
        status = pod.get("status") or {}
        self.pods += 1
        first = [_span(each) for each in status.get("initContainerStatuses") or ()]
        main = status.get("containerStatuses") or []
        begun = min((span[0] for span in (*first, *map(_span, main)) if span), default=None)
        if begun is not None and status.get("startTime"):
            self.pulls.append(begun - _time(status["startTime"]))
        self.inits += [ended - start for span in first if span for start, ended in [span] if ended is not None]
        restarted = any(each.get("restartCount") for each in main)
        if status.get("phase") == "Running":
            self.runs_on += 1
            ready = _since(status, "Ready")
            running = [span[0] for each in main if (span := _span(each))]
            if ready is not None and running and not restarted:
                self.starts.append(ready - max(running))
        if status.get("phase") in ("Succeeded", "Failed"):
            # A pod that was given up with its node is Failed, and its containers still run by its status.
            spans = [(each["state"].get("terminated") or {}, *span) for each in main if (span := _span(each))]
            ends = [(how, start, end) for how, start, end in spans if end is not None]
            if ends:
                # A pod ends once: as its container that failed does, and when all of them have ended.
                how, start, _ = max(ends, key=lambda each: (bool(each[0].get("exitCode")), each[2]))
                code, until = int(how.get("exitCode") or 0), max(_said(status), *(end for *_, end in ends))
                of = self.failures.setdefault((code, str(how.get("reason") or "Error")), []) if code else self.runs
                of.append(until - start)

    def lifecycle(self, name: str) -> dict[str, Any]:
        """The lifecycle in the form of a stack file, with what is known; without any such, only name and selector.

        What ends runs from its start on: how much of that is start-up is not in its status any more.
        """
        ended = len(self.runs) + sum(map(len, self.failures.values()))
        found: dict[str, Any] = {"name": name, "selector": dict(self.selector)}
        steps = {"imagePull": self.pulls, "init": self.inits, "startUp": [] if ended else self.starts, "run": self.runs}
        for step, seen in steps.items():
            if seen and max(seen) > 0:
                found[step] = written(fitted(seen))
        if self.failures:
            found["failures"] = [
                {
                    # Rounded down: together they are not more than all.
                    "share": len(seen) * 10_000 // ended / 10_000,
                    "exitCode": code,
                    "reason": reason,
                    "after": written(fitted(seen)),
                }
                for (code, reason), seen in sorted(self.failures.items())
            ]
        return found

    def about(self) -> str:
        """How much the lifecycle is made of."""
        of = {"ended": len(self.runs), "failed": sum(map(len, self.failures.values())), "still run": self.runs_on}
        return f"{self.pods} pods: " + ", ".join(f"{number} {what}" for what, number in of.items())


def grouped(pods: Iterable[Mapping[str, Any]], label: str = "") -> tuple[dict[str, Lives], int]:
    """The lives of pods that are alike, by name; and how many pods are of no group, or not as kubectl writes them.

    Groups differ in the value of ``label``; without one, in the kind of the pods' owner.
    """
    found: dict[str, Lives] = {}
    others = 0
    for pod in pods:
        try:
            metadata = pod.get("metadata") or {}
            owner: Mapping[str, Any] = next(
                (each for each in metadata.get("ownerReferences") or () if each.get("controller")), {}
            )
            kind = str((metadata.get("labels") or {}).get(label, "") if label else owner.get("kind") or "")
            if kind:
                selector = {"labels": {label: kind}} if label else {"ownerKinds": [kind]}
                found.setdefault(kind, Lives(selector)).add(pod)
        except (AttributeError, KeyError, TypeError, ValueError):
            kind = ""
        others += not kind
    return found, others


def fitted(seen: Sequence[float]) -> Distribution:
    """The distribution that durations are nearest to: the greatest distance of the two cumulative shares is least."""
    known = sorted(max(0.0, each) for each in seen)
    if len(known) < FEWEST:
        return Distribution("fixed", statistics.median(known))
    mean, sigma = statistics.fmean(known), statistics.stdev(known)
    if known[-1] - known[0] <= 1:
        # Of times cut to whole seconds, the mean is right; their median may be off by half a second.
        return Distribution("fixed", mean)
    normal = statistics.NormalDist(mean, sigma)
    shares: dict[Distribution, Callable[[float], float]] = {
        Distribution("uniform", known[0], known[-1]): lambda x: (x - known[0]) / (known[-1] - known[0]),
        Distribution("normal", mean, sigma): normal.cdf,
        Distribution("exponential", mean): lambda x: 1 - math.exp(-x / mean),
    }
    if known[0] > 0:
        logs = statistics.NormalDist.from_samples([math.log(each) for each in known])
        shares[Distribution("lognormal", math.exp(logs.mean), logs.stdev)] = lambda x: logs.cdf(math.log(x))
    return min(shares, key=lambda each: _distance(known, shares[each]))


def _distance(known: Sequence[float], share: Callable[[float], float]) -> float:
    """Times are whole seconds: a value stands for all within half a second, of which the middle is compared."""
    count, below, worst = len(known), 0, 0.0
    for value, same in sorted(Counter(known).items()):
        worst = max(worst, abs((below + same / 2) / count - share(value)))
        below += same
    return worst


def written(distribution: Distribution) -> Any:
    """A distribution in the form of a stack file."""
    first, second = _seconds(distribution.first), _seconds(distribution.second)
    match distribution.kind:
        case "fixed":
            return first
        case "uniform":
            return {"uniform": {"from": first, "to": second}}
        case "normal":
            return {"normal": {"mean": first, "sigma": second}}
        case "lognormal":
            return {"lognormal": {"median": first, "sigma": round(distribution.second, 3)}}
        case "exponential":
            return {"exponential": {"mean": first}}


def _seconds(amount: float) -> str:
    return f"{amount:.3f}".rstrip("0").rstrip(".") + "s"


def _span(container: Mapping[str, Any]) -> tuple[float, float | None] | None:
    """When a container began and ended; None if it has not begun."""
    state = container.get("state") or {}
    running, ended = state.get("running") or {}, state.get("terminated") or {}
    began = running.get("startedAt") or ended.get("startedAt")
    return (_time(began), _time(ended["finishedAt"]) if ended.get("finishedAt") else None) if began else None


def _said(status: Mapping[str, Any]) -> float:
    """When the kubelet last changed a condition of an ended pod: its sandbox is gone, it is about to say its end."""
    times = (each.get("lastTransitionTime") for each in status.get("conditions") or () if each.get("type") in _ENDED)
    return max((_time(each) for each in times if each), default=-math.inf)


def _since(status: Mapping[str, Any], kind: str) -> float | None:
    """Since when a condition is true; None if it is not."""
    for each in status.get("conditions") or ():
        if each.get("type") == kind and each.get("status") == "True" and each.get("lastTransitionTime"):
            return _time(each["lastTransitionTime"])
    return None


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
