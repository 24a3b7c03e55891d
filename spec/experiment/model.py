"""An experiment file as a model, and the one way from a plain mapping to it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator

from spec.experiment.expect import Expectation
from spec.experiment.fields import LabelKey, Name, Seconds
from spec.experiment.rules import rule_problems
from spec.experiment.timeline import Event
from spec.experiment.workload import Workload
from spec.fields import Section, found, whole
from spec.gfd import GPU_PRODUCT_LABEL
from spec.validation import in_file_order, problems_of, validated

SchedulerName = Literal["default", "kube-scheduler", "coscheduling", "volcano", "kueue", "yunikorn"]
_LARGEST_SEED = 2**31 - 1


class Scheduler(Section):
    """Which scheduler places the pods.

    Args:
        name: the cluster's own (default), or one that is started beside it for the experiment.
        config: its configuration file, relative to the experiment file; its own default when empty.
        binary: a program to use in place of the pinned one, likewise.
    """

    name: SchedulerName = Field(default="default", examples=["default"])
    config: str = Field(default="", examples=["schedulers/mine.yaml"])
    binary: str = Field(default="", examples=["/usr/local/bin/kube-scheduler"])


class About(Section):
    """Where an experiment is from, and how to read what comes of it.

    Args:
        source: who did it first, and where it is described.
        expected: what is known to come of it.
        emulation: what an emulated cluster cannot tell about it.
    """

    source: str = Field(default="", examples=["KEMU, gcp-large"])
    expected: str = Field(default="", examples=["all GPUs are allocated"])
    emulation: str = Field(default="", examples=["how fast the jobs would train"])


class Experiment(Section):
    """An experiment, as its file describes it.

    Args:
        name: its name; runs of the same name are one series.
        description: what it is to show, in a sentence.
        about: its source, what is expected, what emulation cannot tell.
        stack: the stack it is written for; used when the command names none.
        seed: the same seed creates the same workloads.
        repetitions: how often it is repeated; thresholds hold for each.
        scheduler: which scheduler places the pods.
        setup: files with objects that are there before the workloads, such as queues.
        workloads: what is created.
        timeline: what happens meanwhile.
        until: when it ends: when every pod has a node or was found to fit nowhere, when all that have one run, or when
            all have completed.
        settle: how long nothing may have changed before it ends with pods pending.
        timeout: when it ends in any case.
        productLabel: the node label that tells GPUs apart; nodes without it are told apart by their group.
        expect: what has to hold.
    """

    name: Name = Field(examples=["gpu-fill"])
    description: str = Field(default="", examples=["all GPUs are allocated"])
    about: About = Field(default_factory=About, examples=["{source: …, expected: …, emulation: …}"])
    stack: str = Field(default="", examples=["quickstart"])
    seed: Annotated[int, whole(0, _LARGEST_SEED)] = Field(default=0, examples=["1"])
    repetitions: Annotated[int, whole(1, 100)] = Field(default=1, examples=["3"])
    scheduler: Scheduler = Field(default_factory=Scheduler, examples=["{name: volcano}"])
    setup: list[str] = Field(default_factory=list, examples=["[queues.yaml]"])
    workloads: list[Workload] = Field(examples=["[{name: training, jobs: 10, workers: 8}]"])
    timeline: list[Event] = Field(default_factory=list, examples=["[{at: 30s, scheduler: restart}]"])
    until: Literal["scheduled", "running", "completed"] = Field(default="scheduled", examples=["scheduled"])
    settle: Seconds = Field(default=5.0, examples=["5s"])
    timeout: Seconds = Field(default=600.0, examples=["10m"])
    productLabel: LabelKey = Field(default=GPU_PRODUCT_LABEL, examples=["nvidia.com/gpu.product"])
    expect: list[Expectation] = Field(default_factory=list, examples=["[{measure: allocation.gpu, atLeast: 99%}]"])

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
            SpecError: with every problem there is.
        """
        return validated(cls, raw, source)
