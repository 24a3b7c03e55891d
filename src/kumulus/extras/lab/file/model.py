"""An experiment file as a model, and the one way from a plain mapping to it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, model_validator

from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.file.fields import LabelKey, Name, Needed, Seconds
from kumulus.extras.lab.file.rules import rule_problems
from kumulus.extras.lab.file.timeline import Event
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.schedulers import NAMES
from kumulus.model.checks import problem
from kumulus.model.fields import FORM, DurationField, Section, found, whole
from kumulus.model.fields.validation import validated, with_rules
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.stackfile.autoscaler import AutoscalerPool

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

    name: Literal["karpenter"] = Field(
        default="karpenter", description="The stack's autoscaler.", examples=["karpenter"]
    )
    nodePools: list[AutoscalerPool] = Field(
        default_factory=list,
        description="NodePools in place of the stack's; their `requirements` choose from the stack's machines.",
        examples=["[{name: default, spec: {disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}}}]"],
    )
    registrationDelay: DurationField | None = Field(
        default=None,
        description="How long a machine takes until its node exists, as in a stack file; drawn by the seed.",
        examples=["{lognormal: {median: 40s, sigma: 0.3}}"],
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.nodePools and "nodePools" in self.model_fields_set:
            raise found([problem(("nodePools",), "is empty", "write at least one, or leave it out for the stack's")])
        if not self.nodePools and self.registrationDelay is None:
            raise found([problem((), "changes nothing", "write nodePools or registrationDelay, or leave it out")])
        names = [pool.name for pool in self.nodePools]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise found([problem(("nodePools", at, "name"), f"{name} is there twice", "write another name")])
        return self


_LARGEST_SEED = 2**31 - 1


class Scheduler(Section):
    """Which scheduler places the pods."""

    model_config = ConfigDict(json_schema_extra={FORM: "schedulerRules"})

    name: SchedulerName = Field(
        default=OWN,
        description="The cluster's own scheduler (default), or one that is started next to it for the experiment.",
        examples=["default"],
    )
    config: str = Field(
        default="",
        description=(
            "The scheduler's configuration file, relative to the experiment file; by default the scheduler's own."
        ),
        examples=["schedulers/mine.yaml"],
    )
    binary: str = Field(
        default="",
        description="Path of a program to use instead of the pinned one, relative to the experiment file.",
        examples=["/usr/local/bin/kube-scheduler"],
    )


class Beginning(Section):
    """What every repetition begins with."""

    snapshot: Needed = Field(
        description="A snapshot of the stack, by its name in `kumulus snapshot save`; restored before each repetition.",
        examples=["full"],
    )
    allowDeletion: bool = Field(
        default=False,
        description=(
            "Whether the restore may delete what was created since in the snapshot's namespaces: needed on a cluster "
            "that outlives the stack."
        ),
        examples=["true"],
    )


class About(Section):
    """Where an experiment is from, and how to read its results."""

    source: str = Field(
        default="", description="Who did it first, and where it is described.", examples=["KEMU, gcp-large"]
    )
    expected: str = Field(default="", description="The known outcome.", examples=["all GPUs are allocated"])
    emulation: str = Field(
        default="",
        description="What an emulated cluster cannot tell about it.",
        examples=["how fast the jobs would train"],
    )


class Experiment(Section):
    """An experiment, as its file describes it."""

    name: Name = Field(
        description="The experiment's name; runs of the same name are one series.", examples=["gpu-fill"]
    )
    description: str = Field(
        default="", description="What it should show, in a sentence.", examples=["all GPUs are allocated"]
    )
    about: About = Field(
        default_factory=About,
        description="Where it is from, what is expected, and what emulation cannot tell.",
        examples=["{source: …, expected: …, emulation: …}"],
    )
    stack: str = Field(
        default="",
        description="The stack it is written for; used when the command names none.",
        examples=["quickstart"],
    )
    stackFile: str = Field(
        default="",
        description=(
            "The stack file, relative to the experiment file, whose machines a run without a cluster uses; by default "
            "the project's `stacks/Pulumi.<stack>.yaml`."
        ),
        examples=["openb.yaml"],
    )
    policy: str = Field(
        default="",
        description=(
            "The policy that places the pods: one of the FGD paper's (Random, DotProd, GpuClustering, GpuPacking, "
            "BestFit, FGD); KubeScheduler, which accounts for parts of GPUs and lets kube-scheduler's scores choose; "
            "or a Python file relative to the experiment file."
        ),
        examples=["FGD"],
    )
    policyTimeout: Seconds = Field(
        default=10.0, description="How long a call of the policy may take before it counts as failed.", examples=["1s"]
    )
    onPolicyError: Literal["end", "skip"] = Field(
        default="end",
        description=(
            "What happens when the policy raises, takes too long or answers nonsense: the run ends, or the pod counts "
            "as not placed and the run continues."
        ),
        examples=["skip"],
    )
    policyTies: Literal["name", "random"] = Field(
        default="name",
        description=(
            "Which of the nodes that a policy finds equally good gets the pod: the first in an order that the seed "
            "determines, or one drawn at random, on a cluster by kube-scheduler itself."
        ),
        examples=["random"],
    )
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(
        default=0, description="The same seed creates the same workloads.", examples=["1"]
    )
    repetitions: Annotated[int, whole(1, 100)] = Field(
        default=1, description="How often it runs; thresholds apply to each repetition.", examples=["3"]
    )
    from_: Beginning | None = Field(
        default=None,
        alias="from",
        description="What every repetition begins with; by default the cluster as it is.",
        examples=["{snapshot: full}"],
    )
    scheduler: Scheduler = Field(
        default_factory=Scheduler, description="The scheduler that places the pods.", examples=["{name: volcano}"]
    )
    autoscaler: RunAutoscaler | None = Field(
        default=None,
        description="Settings of the stack's autoscaler for this run, in place of the stack's own.",
        examples=["{nodePools: [{name: default, spec: {limits: {cpu: 100}}}]}"],
    )
    why: bool = Field(
        default=False,
        description=(
            "Whether kube-scheduler logs how it decides, for `kumulus experiment why`; if the file names none, one is "
            "started for the run. Logging costs throughput."
        ),
        examples=["true"],
    )
    whyPolicy: str = Field(
        default="",
        description=(
            "With `why: true`, a policy as in `policy`, whose scores are shown next to kube-scheduler's but decide "
            "nothing."
        ),
        examples=["FGD"],
    )
    setup: list[str] = Field(
        default_factory=list,
        description=(
            "Files with objects to create before the workloads, such as queues, relative to the experiment file."
        ),
        examples=["[queues.yaml]"],
    )
    workloads: list[Workload] = Field(
        json_schema_extra={"minItems": 1},
        description="What is created.",
        examples=["[{name: training, jobs: 10, workers: 8}]"],
    )
    timeline: list[Event] = Field(
        default_factory=list, description="What happens during the run.", examples=["[{at: 30s, scheduler: restart}]"]
    )
    until: Literal["scheduled", "running", "completed", "steady"] = Field(
        default="scheduled",
        description=(
            "When it ends: when every pod has a node or was found to fit nowhere; when all pods with a node run; when "
            "all have completed; or when no pod or node has appeared, gone or been cordoned for the time `settle`."
        ),
        examples=["scheduled"],
    )
    settle: Seconds = Field(
        default=5.0,
        description="How long nothing must change before it ends with pods pending, or as steady.",
        examples=["5s"],
    )
    timeout: Seconds = Field(default=600.0, description="After how long it ends in any case.", examples=["10m"])
    productLabel: LabelKey = Field(
        default=GPU_PRODUCT_LABEL,
        description="The node label that tells GPUs apart; nodes without it are told apart by their group.",
        examples=["nvidia.com/gpu.product"],
    )
    expect: list[Expectation] = Field(
        default_factory=list,
        description="What must hold in every repetition.",
        examples=["[{measure: allocation.gpu, atLeast: 99%}]"],
    )

    baseline: str = Field(
        default="",
        description=(
            "A run of before, relative to the experiment file, as `kumulus experiment baseline RUN FILE` writes it: "
            "what `within` of an expectation refers to."
        ),
        examples=["gate.baseline.json"],
    )

    @model_validator(mode="wrap")
    @classmethod
    def _everything_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return with_rules(cls, data, handler, rule_problems(data))

    @classmethod
    def checked(cls, raw: object, source: str = "") -> Experiment:
        """An experiment from a plain mapping, as YAML gives it.

        Args:
            raw: the mapping.
            source: the file it is from, for the error's first line.

        Raises:
            SpecError: with every problem.
        """
        return validated(cls, raw, source)
