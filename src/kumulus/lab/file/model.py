"""An experiment file as a model, and the one way from a plain mapping to it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from kumulus.fields import FORM, Section, found, whole
from kumulus.fields.validation import in_file_order, problems_of, validated
from kumulus.lab.file.autoscaler import RunAutoscaler
from kumulus.lab.file.expect import Expectation
from kumulus.lab.file.fields import LabelKey, Name, Needed, Seconds
from kumulus.lab.file.rules import rule_problems
from kumulus.lab.file.timeline import Event
from kumulus.lab.file.workload import Workload
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.schedulers import NAMES

OWN = "default"
"""The cluster's own scheduler."""
if TYPE_CHECKING:
    SchedulerName = str
else:
    # The names are the registry's; a type checker could not read them from there.
    SchedulerName = Literal[(OWN, *NAMES)]
_LARGEST_SEED = 2**31 - 1


class Scheduler(Section):
    """Which scheduler places the pods."""

    model_config = ConfigDict(json_schema_extra={FORM: "schedulerRules"})

    name: SchedulerName = Field(
        default=OWN,
        description="The cluster's own scheduler (default), or one that is started beside it for the experiment.",
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
        description="A program to use in place of the pinned one, relative to the experiment file.",
        examples=["/usr/local/bin/kube-scheduler"],
    )


class Beginning(Section):
    """What every repetition begins with."""

    snapshot: Needed = Field(
        description="The name of a snapshot of the stack, by `kumulus snapshot save`: put back before each repetition.",
        examples=["full"],
    )


class About(Section):
    """Where an experiment is from, and how to read what comes of it."""

    source: str = Field(
        default="", description="Who did it first, and where it is described.", examples=["KEMU, gcp-large"]
    )
    expected: str = Field(default="", description="What is known to come of it.", examples=["all GPUs are allocated"])
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
        default="", description="What it is to show, in a sentence.", examples=["all GPUs are allocated"]
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
            "The stack's file, relative to the experiment file: whose machines a run without a cluster has; "
            "`stacks/Pulumi.<stack>.yaml` of the project by default."
        ),
        examples=["openb.yaml"],
    )
    policy: str = Field(
        default="",
        description=(
            "The policy that places the pods: one of the FGD paper's (Random, DotProd, GpuClustering, GpuPacking, "
            "BestFit, FGD); KubeScheduler, whose own scores choose while parts of GPUs are accounted for; or a Python "
            "file relative to the experiment file."
        ),
        examples=["FGD"],
    )
    policyTimeout: Seconds = Field(
        default=10.0, description="How long a call of the policy may take, after which it has failed.", examples=["1s"]
    )
    onPolicyError: Literal["end", "skip"] = Field(
        default="end",
        description=(
            "What becomes of a run whose policy raises, takes too long or answers nonsense: it ends, or the pod counts "
            "as not placed and the run goes on."
        ),
        examples=["skip"],
    )
    policyTies: Literal["name", "random"] = Field(
        default="name",
        description=(
            "Which of the nodes that a policy finds equally good gets the pod: the first in an order that the seed "
            "draws, or one drawn at random; on a cluster kube-scheduler itself draws it."
        ),
        examples=["random"],
    )
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(
        default=0, description="The same seed creates the same workloads.", examples=["1"]
    )
    repetitions: Annotated[int, whole(1, 100)] = Field(
        default=1, description="How often it is repeated; thresholds hold for each.", examples=["3"]
    )
    from_: Beginning | None = Field(
        default=None,
        alias="from",
        description="What every repetition begins with; with the cluster as it is unless given.",
        examples=["{snapshot: full}"],
    )
    scheduler: Scheduler = Field(
        default_factory=Scheduler, description="The scheduler that places the pods.", examples=["{name: volcano}"]
    )
    autoscaler: RunAutoscaler | None = Field(
        default=None,
        description="What the stack's autoscaler has for this run, in place of what the stack says.",
        examples=["{nodePools: [{name: default, spec: {limits: {cpu: 100}}}]}"],
    )
    why: bool = Field(
        default=False,
        description=(
            "Whether kube-scheduler logs how it decides, for `kumulus experiment why`; one is started for the run "
            "where the file names none. It costs throughput."
        ),
        examples=["true"],
    )
    whyPolicy: str = Field(
        default="",
        description=(
            "With `why: true`, a policy as in `policy`, whose scores are shown beside those of kube-scheduler and "
            "decide nothing."
        ),
        examples=["FGD"],
    )
    setup: list[str] = Field(
        default_factory=list,
        description=(
            "Files with objects that are there before the workloads, such as queues, relative to the experiment file."
        ),
        examples=["[queues.yaml]"],
    )
    workloads: list[Workload] = Field(
        json_schema_extra={"minItems": 1},
        description="What is created.",
        examples=["[{name: training, jobs: 10, workers: 8}]"],
    )
    timeline: list[Event] = Field(
        default_factory=list, description="What happens meanwhile.", examples=["[{at: 30s, scheduler: restart}]"]
    )
    until: Literal["scheduled", "running", "completed", "steady"] = Field(
        default="scheduled",
        description=(
            "When it ends: when every pod has a node or was found to fit nowhere, when all that have one run, when all "
            "have completed, or when no pod and no node has come, gone or been cordoned for the time `settle`."
        ),
        examples=["scheduled"],
    )
    settle: Seconds = Field(
        default=5.0,
        description="How long nothing may have changed before it ends with pods pending, or steady.",
        examples=["5s"],
    )
    timeout: Seconds = Field(default=600.0, description="When it ends in any case.", examples=["10m"])
    productLabel: LabelKey = Field(
        default=GPU_PRODUCT_LABEL,
        description="The node label that tells GPUs apart; nodes without it are told apart by their group.",
        examples=["nvidia.com/gpu.product"],
    )
    expect: list[Expectation] = Field(
        default_factory=list,
        description="What has to hold, in every repetition.",
        examples=["[{measure: allocation.gpu, atLeast: 99%}]"],
    )

    @model_validator(mode="wrap")
    @classmethod
    def _everything_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        rules = rule_problems(data)
        try:
            experiment = handler(data)
        except ValidationError as error:
            raise found(in_file_order([*problems_of(error, cls), *rules])) from None
        if rules:
            raise found(in_file_order(rules))
        return experiment

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
