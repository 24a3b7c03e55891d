"""An experiment file as a model, and the one way from a plain mapping to it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, model_validator

from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.file.fields import LabelKey, Name, Needed, Seconds
from kumulus.extras.lab.file.rules import rule_problems
from kumulus.extras.lab.file.timeline import TimelineEvent
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.scaling.section import AutoscalerPool
from kumulus.extras.schedulers import NAMES
from kumulus.model.checks import problem
from kumulus.model.fields import FORM, DurationField, Section, malformed, whole
from kumulus.model.fields.validation import validated, with_rules
from kumulus.model.gfd import GPU_PRODUCT_LABEL

OWN = "default"
"""The cluster's own scheduler."""
if TYPE_CHECKING:
    SchedulerName = str
else:
    # The names are the registry's; a type checker could not read them from there.
    SchedulerName = Literal[(OWN, *NAMES)]


# An experiment's settings of the stack's autoscaler for its run, in place of the stack's own.
class RunAutoscaler(Section):
    """Settings of the stack's autoscaler for this run; afterwards the stack's own apply again."""

    name: Literal["karpenter"] = Field(default="karpenter", examples=["karpenter"])
    """The stack's autoscaler."""
    nodePools: list[AutoscalerPool] = Field(
        default_factory=list,
        examples=["[{name: default, spec: {disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}}}]"],
    )
    """NodePools in place of the stack's; their `requirements` choose from the stack's machines."""
    registrationDelay: DurationField | None = Field(default=None, examples=["{lognormal: {median: 40s, sigma: 0.3}}"])
    """How long a machine takes until its node exists, as in a stack file; drawn by the seed."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.nodePools and "nodePools" in self.model_fields_set:
            raise malformed(
                [problem(("nodePools",), "is empty", "write at least one, or leave it out for the stack's")]
            )
        if not self.nodePools and self.registrationDelay is None:
            raise malformed([problem((), "changes nothing", "write nodePools or registrationDelay, or leave it out")])
        names = [pool.name for pool in self.nodePools]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise malformed([problem(("nodePools", at, "name"), f"{name} is there twice", "write another name")])
        return self


_LARGEST_SEED = 2**31 - 1


class SchedulerSpec(Section):
    """Which scheduler places the pods."""

    model_config = ConfigDict(json_schema_extra={FORM: "schedulerRules"})

    name: SchedulerName = Field(default=OWN, examples=["default"])
    """The cluster's own scheduler (default), or one that is started next to it for the experiment."""
    config: str = Field(default="", examples=["schedulers/mine.yaml"])
    """The scheduler's configuration file, relative to the experiment file; by default the scheduler's own."""
    binary: str = Field(default="", examples=["/usr/local/bin/kube-scheduler"])
    """Path of a program to use instead of the pinned one, relative to the experiment file."""


class Beginning(Section):
    """What every repetition begins with."""

    snapshot: Needed = Field(examples=["full"])
    """A snapshot of the stack, by its name in `kumulus snapshot save`; restored before each repetition."""
    allowDeletion: bool = Field(default=False, examples=["true"])
    """Whether the restore may delete what was created since in the snapshot's namespaces: needed on a cluster that
    outlives the stack."""


class About(Section):
    """Where an experiment is from, and how to read its results."""

    source: str = Field(default="", examples=["KEMU, gcp-large"])
    """Who did it first, and where it is described."""
    expected: str = Field(default="", examples=["all GPUs are allocated"])
    """The known outcome."""
    emulation: str = Field(default="", examples=["how fast the jobs would train"])
    """What an emulated cluster cannot tell about it."""


class ExperimentSpec(Section):
    """An experiment, as its file describes it."""

    name: Name = Field(examples=["gpu-fill"])
    """The experiment's name; runs of the same name are one series."""
    description: str = Field(default="", examples=["all GPUs are allocated"])
    """What it should show, in a sentence."""
    about: About = Field(default_factory=About, examples=["{source: …, expected: …, emulation: …}"])
    """Where it is from, what is expected, and what emulation cannot tell."""
    stack: str = Field(default="", examples=["quickstart"])
    """The stack it is written for; used when the command names none."""
    stackFile: str = Field(default="", examples=["openb.yaml"])
    """The stack file, relative to the experiment file, whose machines a run without a cluster uses; by default the
    project's `stacks/Pulumi.<stack>.yaml`."""
    policy: str = Field(default="", examples=["FGD"])
    """The policy that places the pods: one of the FGD paper's (Random, DotProd, GpuClustering, GpuPacking, BestFit,
    FGD); KubeScheduler, which accounts for parts of GPUs and lets kube-scheduler's scores choose; or a Python file
    relative to the experiment file."""
    policyTimeout: Seconds = Field(default=10.0, examples=["1s"])
    """How long a call of the policy may take before it counts as failed."""
    onPolicyError: Literal["end", "skip"] = Field(default="end", examples=["skip"])
    """What happens when the policy raises, takes too long or answers nonsense: the run ends, or the pod counts as not
    placed and the run continues."""
    policyTies: Literal["name", "random"] = Field(default="name", examples=["random"])
    """Which of the nodes that a policy finds equally good gets the pod: the first in an order that the seed determines,
    or one drawn at random, on a cluster by kube-scheduler itself."""
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(default=0, examples=["1"])
    """The same seed creates the same workloads."""
    repetitions: Annotated[int, whole(1, 100)] = Field(default=1, examples=["3"])
    """How often it runs; thresholds apply to each repetition."""
    from_: Beginning | None = Field(default=None, alias="from", examples=["{snapshot: full}"])
    """What every repetition begins with; by default the cluster as it is."""
    scheduler: SchedulerSpec = Field(default_factory=SchedulerSpec, examples=["{name: volcano}"])
    """The scheduler that places the pods."""
    autoscaler: RunAutoscaler | None = Field(
        default=None, examples=["{nodePools: [{name: default, spec: {limits: {cpu: 100}}}]}"]
    )
    """Settings of the stack's autoscaler for this run, in place of the stack's own."""
    why: bool = Field(default=False, examples=["true"])
    """Whether kube-scheduler logs how it decides, for `kumulus experiment why`; if the file names none, one is started
    for the run. Logging costs throughput."""
    whyPolicy: str = Field(default="", examples=["FGD"])
    """With `why: true`, a policy as in `policy`, whose scores are shown next to kube-scheduler's but decide nothing."""
    setup: list[str] = Field(default_factory=list, examples=["[queues.yaml]"])
    """Files with objects to create before the workloads, such as queues, relative to the experiment file."""
    workloads: list[Workload] = Field(
        json_schema_extra={"minItems": 1}, examples=["[{name: training, jobs: 10, workers: 8}]"]
    )
    """What is created."""
    timeline: list[TimelineEvent] = Field(default_factory=list, examples=["[{at: 30s, scheduler: restart}]"])
    """What happens during the run."""
    until: Literal["scheduled", "running", "completed", "steady"] = Field(default="scheduled", examples=["scheduled"])
    """When it ends: when every pod has a node or was found to fit nowhere; when all pods with a node run; when all have
    completed; or when no pod or node has appeared, gone or been cordoned for the time `settle`."""
    settle: Seconds = Field(default=5.0, examples=["5s"])
    """How long nothing must change before it ends with pods pending, or as steady."""
    timeout: Seconds = Field(default=600.0, examples=["10m"])
    """After how long it ends in any case."""
    productLabel: LabelKey = Field(default=GPU_PRODUCT_LABEL, examples=["nvidia.com/gpu.product"])
    """The node label that distinguishes GPUs; nodes without it are distinguished by their group."""
    expect: list[Expectation] = Field(default_factory=list, examples=["[{measure: allocation.gpu, atLeast: 99%}]"])
    """What must hold in every repetition."""

    baseline: str = Field(default="", examples=["gate.baseline.json"])
    """A run of before, relative to the experiment file, as `kumulus experiment baseline RUN FILE` writes it: what
    `within` of an expectation refers to."""

    @model_validator(mode="wrap")
    @classmethod
    def _everything_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return with_rules(cls, data, handler, rule_problems(data))

    @classmethod
    def checked(cls, raw: object, source: str = "") -> ExperimentSpec:
        """An experiment from a plain mapping, as YAML gives it.

        Args:
            source: the file it is from, for the error's first line.

        Raises:
            SpecError: with every problem.
        """
        return validated(cls, raw, source)
