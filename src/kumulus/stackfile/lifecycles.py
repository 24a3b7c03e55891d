"""Pod lifecycles in the stack file: how long pods pull, initialise, start and run, and how they end."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kumulus.model import lifecycles as model
from kumulus.model.checks import problem, share_problems
from kumulus.model.errors import Problem
from kumulus.model.fields import FORM, DurationField, Section, checked, malformed, short_label, whole
from kumulus.stackfile.pod_selection import PodSelector, order_problems

LIFECYCLE_NAME_LENGTH = 40
STEPS = ("imagePull", "init", "startUp", "run", "failures", "resizes", "termination")
"""What a lifecycle says of its pods; at least one of it, or `mustRun`."""
_LARGEST_SEED = 2**31 - 1


class FailureSpec(Section):
    """One way in which a container ends with an error."""

    share: Annotated[float, checked(share_problems, float, form="share")] = Field(examples=["0.05"])
    """The share of the container's runs that end this way, from 0 to 1."""
    exitCode: Annotated[int, whole(1, 255)] = Field(default=1, examples=["1"])
    """The container's exit code."""
    reason: str = Field(default="Error", examples=["Error"])
    """The reason as a kubelet reports it, such as Error or OOMKilled."""
    message: str = Field(default="", examples=["out of memory"])
    """The message in the container's status."""
    container: str = Field(default="", examples=["main"])
    """The container that fails; by default the pod's first."""
    after: DurationField | None = Field(default=None, examples=["{exponential: {mean: 1h}}"])
    """How long it runs before it fails; by default as long as it would have run."""

    def failure(self) -> model.ContainerFailure:
        """The model from which KWOK's stages are made."""
        return model.ContainerFailure(self.share, self.exitCode, self.reason, self.message, self.container, self.after)


class ResizeSpec(Section):
    """One way in which a resize of a pod in place is not accepted."""

    share: Annotated[float, checked(share_problems, float, form="share")] = Field(examples=["0.2"])
    """The share of the resizes that it happens to, from 0 to 1."""
    outcome: Literal["deferred", "infeasible"] = Field(examples=["deferred"])
    """What a kubelet says of it: the node has no room now, or never has."""
    after: DurationField | None = Field(default=None, examples=["30s"])
    """How long it is deferred before it is accepted; by default until the pod is resized again."""

    def resize(self) -> model.ResizeRefusal:
        """The model from which KWOK's stages are made."""
        return model.ResizeRefusal(self.share, self.outcome, self.after)


class PodLifecycle(Section):
    """How long the selected pods run and how they end. Fields left out behave as without lifecycles."""

    model_config = ConfigDict(json_schema_extra={FORM: "lifecycleRules"})

    name: Annotated[str, short_label(LIFECYCLE_NAME_LENGTH)] = Field(examples=["training"])
    """The lifecycle's name, part of the names of its stages."""
    selector: PodSelector = Field(default_factory=PodSelector, examples=["{labels: {app: training}}"])
    """Which pods have this lifecycle; a pod has only the first that selects it."""
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(default=0, examples=["1"])
    """The same seed draws the same durations for the same pods."""
    imagePull: DurationField | None = Field(default=None, examples=["20s"])
    """From the pod's start until its images are pulled."""
    init: DurationField | None = Field(default=None, examples=["5s"])
    """How long each init container runs, one after the other."""
    startUp: DurationField | None = Field(default=None, examples=["10s"])
    """How long the containers run until they are ready."""
    run: DurationField | None = Field(default=None, examples=["{lognormal: {median: 10m, sigma: 0.5}}"])
    """How long the containers run once ready; by default without end."""
    failures: list[FailureSpec] = Field(default_factory=list, examples=["[{share: 0.05, exitCode: 1}]"])
    """How the containers fail instead; the share that is left of 1 succeeds."""
    resizes: list[ResizeSpec] = Field(default_factory=list, examples=["[{share: 0.2, outcome: deferred, after: 30s}]"])
    """What becomes of resizes of ready pods in place; the share that is left of 1 is accepted."""
    termination: DurationField | None = Field(default=None, examples=["20s"])
    """How long the containers of a deleted pod run on; at most its grace period, after which they are killed."""

    mustRun: Literal["fail", "pending"] | None = Field(default=None, examples=["fail"])
    """For pods that are there to find out whether something works, and must not succeed where nothing has run: they
    `fail`, or stay `pending`. Nothing else can be declared of them."""

    def lifecycle(self) -> model.Lifecycle:
        """The model from which KWOK's stages are made."""
        return model.Lifecycle(
            self.name,
            self.selector.selection(),
            self.seed,
            self.imagePull,
            self.init,
            self.startUp,
            self.run,
            tuple(each.failure() for each in self.failures),
            tuple(each.resize() for each in self.resizes),
            self.termination,
            self.mustRun or "",
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        wrong: list[Problem] = []
        for key, listed, rest in (("failures", self.failures, "succeeds"), ("resizes", self.resizes, "is accepted")):
            total = sum(each.share for each in listed)
            if total > 1 + 1e-9:
                remedy = f"make the shares come to 1 or less; what is left of 1 {rest}"
                wrong.append(problem((key,), f"has shares that come to {total:g}, more than 1", remedy))
        for index, failure in enumerate(self.failures):
            if failure.after is None and self.run is None:
                remedy = f"write after: 10m there, or run: 10m in {self.name}"
                wrong.append(problem(("failures", index), "has no time: its pods run without end", remedy))
        for index, resize in enumerate(self.resizes):
            if resize.after is not None and (resize.outcome == "infeasible" or self.run or self.failures):
                why = "its pods end" if resize.outcome == "deferred" else "nobody tries an infeasible resize again"
                wrong.append(problem(("resizes", index, "after"), f"has no effect: {why}", "leave it out"))
        lives = [name for name in STEPS if getattr(self, name)]
        if not lives and not self.mustRun:
            wrong.append(problem((), "says nothing of how its pods live", "write run: 10m, or leave it out"))
        if self.mustRun:
            message = "has no effect with mustRun, by which the pods do not run"
            wrong += [problem((name,), message, "leave one of them out") for name in lives]
        if wrong:
            raise malformed(wrong)
        return self


def _ordered(lifecycles: list[PodLifecycle]) -> list[PodLifecycle]:
    if wrong := order_problems("podLifecycles", [(each.name, each.selector) for each in lifecycles]):
        raise malformed(wrong)
    return lifecycles


PodLifecycles = Annotated[list[PodLifecycle], AfterValidator(_ordered)]
