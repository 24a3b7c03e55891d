"""Pod lifecycles as the stack file has them: how long pods pull, initialise, start and run, and how they end."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from spec.checks import problem
from spec.distributions import DurationField
from spec.errors import Problem, Where, shown
from spec.fields import Section, checked, found, short_label, whole
from spec.pod_selection import PodSelector, order_problems

LIFECYCLE_NAME_LENGTH = 40
_LARGEST_SEED = 2**31 - 1


def share_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a share of pods: a number from 0 to 1."""
    remedy = "write a number from 0 to 1, such as 0.05 for one pod in twenty"
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return [problem(where, f"is {shown(raw)}, not a share", remedy)]
    return [] if 0 <= raw <= 1 else [problem(where, f"is {shown(raw)}, not between 0 and 1", remedy)]


class Failure(Section):
    """One way in which a container ends with an error.

    Args:
        share: of the container's runs, from 0 to 1.
        exitCode: 1 to 255.
        reason: as a kubelet gives it, such as Error or OOMKilled.
        message: what the container's status says of it; may be empty.
        container: the container that fails; the pod's first when empty.
        after: how long it runs until then; as long as it would have run when None.
    """

    share: Annotated[float, checked(share_problems, float)] = Field(examples=["0.05"])
    exitCode: Annotated[int, whole(1, 255)] = Field(default=1, examples=["1"])
    reason: str = Field(default="Error", examples=["Error"])
    message: str = Field(default="", examples=["out of memory"])
    container: str = Field(default="", examples=["main"])
    after: DurationField | None = Field(default=None, examples=["{exponential: {mean: 1h}}"])


class PodLifecycle(Section):
    """How the pods of a selection live. What is not given is as in a cluster without lifecycles.

    Args:
        name: part of the names of its stages.
        selector: which pods; those of an earlier lifecycle are not this one's.
        seed: the same seed draws the same durations for the same pods.
        imagePull: from the pod's start until its images are there.
        init: how long each init container runs, one after the other.
        startUp: how long the containers run until they are ready.
        run: how long they run from then on; None means without end.
        failures: how they fail instead; the rest of them succeeds.
    """

    name: Annotated[str, short_label(LIFECYCLE_NAME_LENGTH)] = Field(examples=["training"])
    selector: PodSelector = Field(default_factory=PodSelector, examples=["{labels: {app: training}}"])
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(default=0, examples=["1"])
    imagePull: DurationField | None = Field(default=None, examples=["20s"])
    init: DurationField | None = Field(default=None, examples=["5s"])
    startUp: DurationField | None = Field(default=None, examples=["10s"])
    run: DurationField | None = Field(default=None, examples=["{lognormal: {median: 10m, sigma: 0.5}}"])
    failures: list[Failure] = Field(default_factory=list, examples=["[{share: 0.05, exitCode: 1}]"])

    @model_validator(mode="after")
    def _ends(self) -> Self:
        wrong: list[Problem] = []
        total = sum(failure.share for failure in self.failures)
        if total > 1 + 1e-9:
            remedy = "make the shares come to 1 or less; what is left of 1 succeeds"
            wrong.append(problem(("failures",), f"has shares that come to {total:g}, more than 1", remedy))
        for index, failure in enumerate(self.failures):
            if failure.after is None and self.run is None:
                remedy = f"write after: 10m there, or run: 10m in {self.name}"
                wrong.append(problem(("failures", index), "has no time: its pods run without end", remedy))
        if not self.failures and not any((self.imagePull, self.init, self.startUp, self.run)):
            wrong.append(problem((), "says nothing of how its pods live", "write run: 10m, or leave it out"))
        if wrong:
            raise found(wrong)
        return self


def _ruled(lifecycles: list[PodLifecycle]) -> list[PodLifecycle]:
    if wrong := order_problems("podLifecycles", [(each.name, each.selector) for each in lifecycles]):
        raise found(wrong)
    return lifecycles


PodLifecycles = Annotated[list[PodLifecycle], AfterValidator(_ruled)]
